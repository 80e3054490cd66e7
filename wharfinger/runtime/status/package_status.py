"""The status of one package: a condition for each stage of its pipeline, and the last reported conditions.

A status is an immutable value. :mod:`~wharfinger.runtime.status.transitions` makes all statuses, with a function for every event
that changes them; only the reader of recordings restores statuses without it. The conditions and the summary for users are
derived in :mod:`~wharfinger.runtime.status.conditions` and :mod:`~wharfinger.runtime.status.summary`. The records are msgspec
structs, because each event of a package makes some of them, and frozen dataclasses take five times as long to make and to
replace.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Final

import msgspec

from wharfinger.runtime.status.progress import Progress
from wharfinger.runtime.status.reasons import Reason, explanation
from wharfinger.runtime.versions.rollback_note import RollbackNote
from wharfinger.runtime.versions.version_note import VersionNote


class Stage(StrEnum):
    """The stages of a package, in the order of the pipeline. The string value of a stage is the type of its condition in the
    status (spec/runtime §6).
    """

    FETCHED = "ReadyOnFilesystem"
    LOADED = "Loaded"
    REQUIREMENTS = "RequirementsMet"
    CONFIGURED = "Configured"
    CRDS = "CustomResourcesApplied"
    WEBHOOKS = "WebhooksEnsured"
    HOOKS = "HooksProcessed"
    APPLIED = "ManifestsApplied"
    SCALED = "Scaled"

    __hash__ = str.__hash__
    """The default hash of an enumeration is slow, because it is computed in Python, and each change of a status looks up
    stages about fifty times.
    """


OPTIONAL: Final = frozenset({Stage.CRDS, Stage.WEBHOOKS})
"""The stages that a package may lack; they count as done until a task reports otherwise."""


class Truth(StrEnum):
    """The status of a condition: True, False or Unknown."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(msgspec.Struct, frozen=True, gc=False):
    """One condition of a package's status; ``permanent`` marks a failure that only a changed input can resolve."""

    truth: Truth
    reason: str
    message: str
    since: datetime
    permanent: bool = False


class ExternalCondition(msgspec.Struct, frozen=True, gc=False):
    """An external condition as it was last reported, with the time since which it has its status, and the generation for
    which it was reported.
    """

    truth: Truth
    reason: str
    message: str
    since: datetime
    generation: int


class Phase(Enum):
    """The phase of a package's life. It decides how a failure changes the external conditions (spec/runtime §6.1)."""

    INSTALL = auto()
    """The package was never complete."""
    UPDATE = auto()
    """The package is installed, but the wanted version is not the applied version."""
    RECONCILE = auto()
    """The wanted version is the applied version."""


class PackageStatus(msgspec.Struct, frozen=True):
    """The status of one package."""

    generation: int
    stages: Mapping[Stage, Condition]
    started: datetime
    version: str = ""
    digest: str = ""
    revision: int = 0
    namespace: str = ""
    """The namespace of the release. It is set as soon as objects of the release may exist, and does not change after that."""
    wanted: str = ""
    """The version to which the package is being updated, or was last updated; empty if it is not known."""
    installed_since: datetime | None = None
    scale_checked: bool = False
    """True if the readiness of the objects was judged since they were last applied."""
    removal: Condition | None = None
    """The state of a removal in progress: the reason why it waits, or how it failed."""
    held: Condition | None = None
    """The reason why a removal is held back: the dependents that it would break. None if no removal is held back.

    A removal that is held back has not begun, and the package keeps running.
    """
    blocked: Condition | None = None
    """A problem that prevents the pipeline from starting, such as a spec that cannot be read, or a missing repository."""
    suspended: bool = False
    """True if a user has suspended the package."""
    maintenance: Condition | None = None
    """The maintenance mode, in which the applied objects are not reconciled; None if there is none."""
    progress: Progress | None = None
    warnings: tuple[str, ...] = ()
    update: VersionNote | None = None
    """The note about the choice of the version: the range or channel that is followed, and the version that waits. None for
    an exact version.
    """
    rollback: RollbackNote | None = None
    """The note about the rollback that is in force, or about why a rollback was impossible. While a rollback is in force, the
    package is in a former revision, and not in the state that its resource describes.
    """
    urls: tuple[tuple[str, str], ...] = ()
    """The addresses of the package, each with its description."""
    external: Mapping[str, ExternalCondition] = msgspec.field(default_factory=dict)
    """The external conditions that were last reported, by type."""
    ready_kept: ExternalCondition | None = None
    """An earlier condition `Ready` that is reported unchanged. While a package is suspended, it is the condition from before
    the suspension. For any other package, it is the condition from an earlier process, until this process has computed its
    own.
    """

    @property
    def is_being_verified(self) -> bool:
        """Return whether an earlier process reported the package as Ready, and this process is still verifying it.

        A restarted process checks every package that it finds. The check is not shown to users, unless it takes long.
        """
        aside = self.removal is not None or self.held is not None or self.blocked is not None
        problem = open_condition(self)
        return not aside and problem is not None and self.stays_ready(problem)

    @property
    def is_back(self) -> bool:
        """Return whether the package is in a former revision, or returning to one, because of a rollback."""
        return self.rollback is not None and self.rollback.is_back

    @property
    def rollout(self) -> Condition | None:
        """The condition of the stage Scaled while objects that were ready are updated, scaled or replaced; otherwise None."""
        scaled = self.stages[Stage.SCALED]
        return scaled if scaled.truth is Truth.TRUE and scaled.reason == Reason.ROLLING_OUT else None

    def stays_ready(self, problem: Condition) -> bool:
        """Return whether the package stays Ready although the stage with the condition ``problem`` is not done.

        This is so if the package was reported as Ready for this generation, is not suspended, and the stage has not failed.
        """
        kept = self.ready_kept
        told = kept is not None and kept.truth is Truth.TRUE and kept.generation == self.generation
        return told and not self.suspended and is_under_way(problem)

    reconciling_kept: ExternalCondition | None = None
    """The condition `Reconciling` that an earlier process reported. This process keeps it if it finds the package in the same
    state.
    """

    @property
    def phase(self) -> Phase:
        """The current :class:`Phase`."""
        if self.installed_since is None:
            return Phase.INSTALL
        return Phase.UPDATE if self.wanted not in ("", self.version) else Phase.RECONCILE


def is_under_way(condition: Condition) -> bool:
    """Return False if a stage that is not done has failed. Return True if the stage has not ended yet, or waits until objects
    are ready.
    """
    return condition.truth is not Truth.FALSE or condition.reason == Reason.NOT_READY


_STAGES: Final = tuple(Stage)
"""The stages as a tuple, because iteration over the enumeration is slow."""


def first_open(status: PackageStatus) -> tuple[Stage, Condition] | None:
    """Return the first stage that is not done, with its condition, which always has a message; None if all stages are done."""
    stage = _first_open_stage(status)
    if stage is None:
        return None
    found = status.stages[stage]
    if found.truth is Truth.TRUE:
        return stage, Condition(Truth.UNKNOWN, Reason.PENDING, "checking the applied objects", found.since)
    if found.message:
        return stage, found
    message = explanation(found.reason) or f"waiting for {stage.value}"
    return stage, Condition(found.truth, found.reason, message, found.since, permanent=found.permanent)


def _first_open_stage(status: PackageStatus) -> Stage | None:
    stages = status.stages
    for stage in _STAGES:
        if stages[stage].truth is not Truth.TRUE:
            return stage
    return None if status.scale_checked else Stage.SCALED


def open_condition(status: PackageStatus) -> Condition | None:
    """Return the condition of the first stage that is not done, chosen as in `first_open`; None if all stages are done."""
    found = first_open(status)
    return found[1] if found is not None else None


def is_gated(status: PackageStatus) -> bool:
    """Return whether the package is loaded, but off, because a requirement is not met or because the package is not wanted.

    Only a change outside of the package can help then.
    """
    is_first = _first_open_stage(status) is Stage.REQUIREMENTS
    return is_first and status.stages[Stage.REQUIREMENTS].truth is Truth.FALSE
