"""The desired state of a package, and the work that a change of it requires (spec/runtime §1.4, §2.2).

A desired state is compared with the former one, field by field. Each difference is a :class:`Change`, and the changes together
give the kind of the :class:`Decision`:

===================================================================  ===============================================
changed                                                              requires
===================================================================  ===============================================
nothing                                                              NONE
source, package, version, digest, namespace, requested, forced,      UPDATE, which begins with the task Download, whatever
reset (or a new package)                                             else changed
settings, settings version, maintenance, resources, patches,         RECONFIGURE: the loaded version runs again
release policy, scope, upgrade policy, account, and nothing else
suspended: no → yes (or a new package that is suspended)             SUSPEND, whatever else changed
suspended: yes → no                                                  RESUME, whatever else changed: an update follows
suspended: yes, and it stays so                                      NONE, whatever else changed
===================================================================  ===============================================

The changes that were made during a suspension take effect with the update after RESUME. A decision lists every change, even a
change that requires no work yet, so that reports to users can name it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final


class DecisionKind(Enum):
    """The kind of work that a changed desired state requires."""

    NONE = "none"
    RECONFIGURE = "reconfigure"
    UPDATE = "update"
    SUSPEND = "suspend"
    RESUME = "resume"
    REMOVING = "removing"
    """The desired state was not adopted, because the package is being removed; the caller has to submit the state again after
    the removal.
    """


class Change(StrEnum):
    """A part of the desired state that has changed; the string value is the reason that is shown to users."""

    SOURCE = "SourceChanged"
    PACKAGE = "PackageChanged"
    VERSION = "VersionChanged"
    DIGEST = "DigestChanged"
    NAMESPACE = "NamespaceChanged"
    FORCED = "ForceRequested"
    RESET = "ResetRequested"
    REQUESTED = "ReconcileRequested"
    RESOURCES = "ResourceRequestsChanged"
    SETTINGS = "SettingsChanged"
    SETTINGS_VERSION = "SettingsVersionChanged"
    MAINTENANCE = "MaintenanceChanged"
    PATCHES = "PatchesChanged"
    RELEASE_POLICY = "ReleasePolicyChanged"
    UPGRADE = "UpgradePolicyChanged"
    SCOPE = "ClusterScopeChanged"
    ACCOUNT = "ServiceAccountChanged"
    SUSPENDED = "SuspendChanged"


_RECONFIGURING: Final = (
    Change.RESOURCES,
    Change.SETTINGS,
    Change.SETTINGS_VERSION,
    Change.MAINTENANCE,
    Change.PATCHES,
    Change.RELEASE_POLICY,
    Change.UPGRADE,
    Change.SCOPE,
    Change.ACCOUNT,
)
"""The changes after which the package does not have to be loaded again, but only has to run again. If several of them occur
together, the first one in this order is the reported reason.
"""

_THE_REST: Final = "DesiredStateChanged"


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The fields of a package's desired state that determine which work is required. If the former and the new state are equal,
    no work is required. The state has only a checksum of the settings; the settings themselves are read later.
    """

    source: str
    package: str
    version: str
    settings_checksum: str
    requested: str = ""
    """A text that a user changes to request a complete reconciliation."""
    namespace: str = ""
    settings_version: int = 0
    maintenance: str = ""
    resources: str = ""
    """The checksum of the overrides of workloads."""
    upkeep: str = ""
    """The checksum of the rules for drift and readiness."""
    forced: str = ""
    """A text that a user changes to request a new download, because a tag was pushed again."""
    reset: str = ""
    """A text that a user changes to request a reset: the package then repeats the steps that are otherwise done only once."""
    digest: str = ""
    """The digest that the package must have; "" means the digest to which its tag points."""
    suspended: bool = False
    cluster_scope: bool = False
    """True if an Application may have objects outside of its namespace."""
    patches: str = ""
    """The checksum of the patches of rendered objects."""
    upgrade: str = ""
    """The checksum of the policy for failed upgrades; "" means that failed upgrades are not rolled back."""
    account: str = ""
    """The service account whose rights the package uses; "" means the rights of the daemon."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The work that a desired state requires, and the differences from the former desired state (none for a new package)."""

    kind: DecisionKind
    changes: tuple[Change, ...] = ()

    @property
    def reason(self) -> str:
        """Return one reason for all changes: the first change in _RECONFIGURING that applies, or a general reason if none of
        them applies.
        """
        return next((change.value for change in _RECONFIGURING if change in self.changes), _THE_REST)


def decide(before: DesiredState | None, after: DesiredState) -> Decision:
    """Return the work that the desired state ``after`` requires; ``before`` is the former desired state, None for a new
    package.
    """
    if before is None:
        return Decision(DecisionKind.SUSPEND if after.suspended else DecisionKind.UPDATE)
    changes = tuple(_changes(before, after))
    return Decision(_kind(after, changes), changes)


def _kind(after: DesiredState, changes: tuple[Change, ...]) -> DecisionKind:
    if Change.SUSPENDED in changes:
        return DecisionKind.SUSPEND if after.suspended else DecisionKind.RESUME
    if after.suspended or not changes:
        return DecisionKind.NONE
    if all(change in _RECONFIGURING for change in changes):
        return DecisionKind.RECONFIGURE
    return DecisionKind.UPDATE


def _changes(before: DesiredState, after: DesiredState) -> Iterator[Change]:
    differs = {
        Change.SOURCE: before.source != after.source,
        Change.PACKAGE: before.package != after.package,
        Change.VERSION: before.version != after.version,
        Change.DIGEST: before.digest != after.digest,
        Change.NAMESPACE: before.namespace != after.namespace,
        Change.FORCED: before.forced != after.forced,
        Change.RESET: before.reset != after.reset,
        Change.REQUESTED: before.requested != after.requested,
        Change.RESOURCES: before.resources != after.resources,
        Change.SETTINGS: before.settings_checksum != after.settings_checksum,
        Change.SETTINGS_VERSION: before.settings_version != after.settings_version,
        Change.MAINTENANCE: before.maintenance != after.maintenance,
        Change.PATCHES: before.patches != after.patches,
        Change.RELEASE_POLICY: before.upkeep != after.upkeep,
        Change.UPGRADE: before.upgrade != after.upgrade,
        Change.SCOPE: before.cluster_scope != after.cluster_scope,
        Change.ACCOUNT: before.account != after.account,
        Change.SUSPENDED: before.suspended != after.suspended,
    }
    return (change for change in Change if differs[change])
