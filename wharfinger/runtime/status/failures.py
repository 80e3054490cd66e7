"""The meaning of an error for a package: the reason that the status of the package shows, and whether a retry can help.

The error itself describes the problem; a table in this module maps each type of error to a reason. No event reports that a
registry has changed, so tasks that fail because of a registry are retried with the queue's limited backoff, and never parked
(docs/decisions/0005).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, get_args

from wharfinger.cluster.api.errors import ClusterError, ConflictError, ForbiddenError, InvalidError, SchemaMismatchError
from wharfinger.cluster.crds.definitions import NotEstablishedError
from wharfinger.cluster.objects.accounts import NoAccountError
from wharfinger.cluster.objects.ownership import ForeignObjectError
from wharfinger.cluster.objects.scope import OutsideNamespaceError
from wharfinger.cluster.records.release_store import ReleaseBusyError
from wharfinger.cluster.releases.hooks import HookFailedError
from wharfinger.cluster.releases.preflight import UnsafeDefinitionError
from wharfinger.cluster.releases.upgrade import EmptyReleaseError, NoWayBackError
from wharfinger.formats.errors import FormatError
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.packages.errors import (
    AddressError,
    ArtifactError,
    ArtifactNotFoundError,
    ConversionError,
    DigestError,
    LookupRefusedError,
    PackageError,
    PatchError,
    RegistryError,
    RenderError,
    RulesError,
    StoreError,
    TrustError,
)
from wharfinger.packages.settings.values import SettingsError
from wharfinger.process.errors import ProcessError
from wharfinger.runtime.lifecycle.journal import JournalError
from wharfinger.runtime.lifecycle.package_state import PackageStateError
from wharfinger.runtime.resources.identity import IdentityError
from wharfinger.runtime.resources.release_policy import ReleasePolicyError
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason


class WorkloadError(Exception):
    """An applied workload has failed; it may recover by itself, or its program or configuration has to be changed."""


class HookRunError(Exception):
    """A hook of the package ran and failed, or its output cannot be used.

    ``hook`` is the hook's name. A retry may help, because the result of a hook depends on the cluster and on other systems,
    which may change.
    """

    def __init__(self, hook: str, message: str) -> None:
        super().__init__(f"{hook}: {message}")
        self.hook = hook


class ValuesLoopError(Exception):
    """The afterHelm hooks change the values again after each apply of the release. Only another version of the package or other
    settings can help.
    """


Expected = (
    PackageError
    | ClusterError
    | FormatError
    | IdentityError
    | ProcessError
    | WorkloadError
    | HookError
    | FilterError
    | HookRunError
    | ValuesLoopError
    | JournalError
)
EXPECTED: Final = get_args(Expected)
"""The errors with which a pipeline task may fail; the queue treats all other errors as bugs."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: the reason for the status, the message, and whether only a changed input can help (``permanent``)."""

    reason: Reason
    message: str
    permanent: bool
    stage: Stage | None = None
    """The stage that has failed; None if it is the stage to which the failed task belongs."""


_REASONS: Final[tuple[tuple[type[Exception], Reason, bool | None], ...]] = (
    # The most specific types come first. None means that the error itself states whether it is transient.
    (ArtifactNotFoundError, Reason.ARTIFACT_NOT_FOUND, False),
    (TrustError, Reason.NOT_TRUSTED, False),
    (DigestError, Reason.DIGEST_MISMATCH, False),
    (StoreError, Reason.STORE_FAILED, False),
    (PatchError, Reason.PATCH_FAILED, None),
    (LookupRefusedError, Reason.OUTSIDE_NAMESPACE, True),
    (RenderError, Reason.RENDER_FAILED, None),
    (AddressError, Reason.SPEC_INVALID, True),
    (ArtifactError, Reason.ARTIFACT_INVALID, True),
    (IdentityError, Reason.SPEC_INVALID, True),
    (ReleasePolicyError, Reason.SPEC_INVALID, True),
    (FormatError, Reason.ARTIFACT_INVALID, True),
    (InvalidError, Reason.APPLY_FAILED, True),
    (SchemaMismatchError, Reason.APPLY_FAILED, True),
    # The task is retried, because no event reports the deletion of another owner's object.
    (ForeignObjectError, Reason.CONFLICTING_OWNER, False),
    (EmptyReleaseError, Reason.MANIFEST_EMPTY, True),
    (NoWayBackError, Reason.NO_WAY_BACK, True),
    (OutsideNamespaceError, Reason.OUTSIDE_NAMESPACE, True),
    (ReleaseBusyError, Reason.RELEASE_BUSY, False),
    (UnsafeDefinitionError, Reason.DEFINITION_UNSAFE, True),
    (HookFailedError, Reason.HOOK_FAILED, False),
    (WorkloadError, Reason.WORKLOAD_FAILED, False),
    (SettingsError, Reason.SETTINGS_INVALID, True),
    (ConversionError, Reason.SETTINGS_INVALID, None),
    (RulesError, Reason.PROCESS_FAILED, None),
    (HookConfigError, Reason.HOOK_INVALID, True),
    (HookRunError, Reason.PACKAGE_HOOK_FAILED, False),
    (ValuesLoopError, Reason.VALUES_LOOP, True),
    (FilterError, Reason.HOOK_INVALID, None),
    (HookError, Reason.PACKAGE_HOOK_FAILED, None),
    (PackageStateError, Reason.STATE_FAILED, None),
    (ConflictError, Reason.FIELD_CONFLICT, False),
    (NotEstablishedError, Reason.DEFINITIONS_NOT_ESTABLISHED, False),
    (NoAccountError, Reason.SPEC_INVALID, True),
    (ForbiddenError, Reason.NOT_PERMITTED, False),
    (ClusterError, Reason.CLUSTER_FAILED, None),
    (ProcessError, Reason.PROCESS_FAILED, None),
    (JournalError, Reason.JOURNAL_FAILED, None),
    (PackageError, Reason.ARTIFACT_INVALID, None),
)


_OF_FOLDERS: Final = MappingProxyType(
    {Reason.ARTIFACT_NOT_FOUND: Reason.FOLDER_NOT_FOUND, Reason.ARTIFACT_INVALID: Reason.FOLDER_INVALID}
)
"""The reasons for packages from a folder on this machine, by the corresponding reason for packages from a registry."""


def classify(error: Expected, mask: Callable[[str], str] = str, *, in_folder: bool = False) -> Failure:
    """Return the failure for an expected error; ``mask`` removes secrets from its text.

    ``in_folder`` is True for a package from a folder on this machine, so that the remedy does not suggest a push.
    """
    failure = _classified(error, mask)
    return replace(failure, reason=_OF_FOLDERS.get(failure.reason, failure.reason)) if in_folder else failure


def _classified(error: Expected, mask: Callable[[str], str]) -> Failure:
    message = " ".join(mask(str(error)).split()) or type(error).__name__
    transient = getattr(error, "transient", False) is True
    if isinstance(error, RegistryError) and not isinstance(error, ArtifactNotFoundError):
        return Failure(Reason.REGISTRY_FAILED if transient else Reason.REGISTRY_REFUSED, message, permanent=False)
    for kind, reason, permanent in _REASONS:
        if isinstance(error, kind):
            stage = Stage.HOOKS if isinstance(error, HookRunError) else None
            return Failure(reason, message, permanent=not transient if permanent is None else permanent, stage=stage)
    raise AssertionError(f"{type(error).__name__} is not in the table of expected errors")
