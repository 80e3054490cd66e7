"""The meaning of an error for its package: the reason that its status shows, and whether a retry can help.

The errors of the other parts say what went wrong; this table says what follows. A registry is an input that sends no event when
it changes, so every failure of a registry is retried with the queue's capped backoff instead of being parked
(docs/decisions/0005).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from wharfinger.cluster.api.errors import ClusterError, ConflictError, InvalidError, SchemaMismatchError
from wharfinger.cluster.crds.definitions import NotEstablishedError
from wharfinger.cluster.objects.ownership import ForeignObjectError
from wharfinger.cluster.objects.scope import OutsideNamespaceError
from wharfinger.cluster.records.release_store import ReleaseBusyError
from wharfinger.cluster.releases.hooks import HookFailedError
from wharfinger.cluster.releases.preflight import UnsafeDefinitionError
from wharfinger.cluster.releases.upgrade import EmptyReleaseError
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
    RegistryError,
    RenderError,
    RulesError,
    StoreError,
)
from wharfinger.packages.settings.values import SettingsError
from wharfinger.process.errors import ProcessError
from wharfinger.runtime.lifecycle.journal import JournalError
from wharfinger.runtime.lifecycle.package_state import PackageStateError
from wharfinger.runtime.resources.identity import IdentityError
from wharfinger.runtime.resources.release_policy import UpkeepError
from wharfinger.runtime.status.package_status import Stage


class WorkloadError(Exception):
    """An applied workload has failed; it may recover by itself, or after an edit of what it runs."""


class HookRunError(Exception):
    """A hook of the package ran and failed, or its output cannot be used.

    ``hook`` is its name. A retry may always help, because the result of a hook depends on a world that changes.
    """

    def __init__(self, hook: str, message: str) -> None:
        super().__init__(f"{hook}: {message}")
        self.hook = hook


class ValuesLoopError(Exception):
    """Hooks after Helm change the values each time the release is applied; only another package or other settings help."""


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
EXPECTED = (
    PackageError,
    ClusterError,
    FormatError,
    IdentityError,
    ProcessError,
    WorkloadError,
    HookError,
    FilterError,
    HookRunError,
    ValuesLoopError,
    JournalError,
)
"""The errors that a pipeline task may fail with; the queue's guard treats any other as a defect."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A status reason (CamelCase), the message, and whether only a changed input can help."""

    reason: str
    message: str
    permanent: bool
    stage: Stage | None = None
    """The stage that failed, if it is not the task's own."""


_REASONS: Final[tuple[tuple[type[Exception], str, bool | None], ...]] = (
    # The most specific first. None: the error itself says whether it is transient.
    (ArtifactNotFoundError, "ArtifactNotFound", False),
    (DigestError, "DigestMismatch", False),
    (StoreError, "StoreFailed", False),
    (LookupRefusedError, "OutsideNamespace", True),
    (RenderError, "RenderFailed", None),
    (AddressError, "SpecInvalid", True),
    (ArtifactError, "ArtifactInvalid", True),
    (IdentityError, "SpecInvalid", True),
    (UpkeepError, "SpecInvalid", True),
    (FormatError, "ArtifactInvalid", True),
    (InvalidError, "ApplyFailed", True),
    (SchemaMismatchError, "ApplyFailed", True),
    # Another owner's object sends no event when it is deleted, so this is retried like everything that may recover.
    (ForeignObjectError, "ConflictingOwner", False),
    (EmptyReleaseError, "ManifestEmpty", True),
    (OutsideNamespaceError, "OutsideNamespace", True),
    (ReleaseBusyError, "ReleaseBusy", False),
    (UnsafeDefinitionError, "DefinitionUnsafe", True),
    (HookFailedError, "HookFailed", False),
    (WorkloadError, "WorkloadFailed", False),
    (SettingsError, "SettingsInvalid", True),
    (ConversionError, "SettingsInvalid", None),
    (RulesError, "ProcessFailed", None),
    (HookConfigError, "HookInvalid", True),
    (HookRunError, "PackageHookFailed", False),
    (ValuesLoopError, "ValuesLoop", True),
    (FilterError, "HookInvalid", None),
    (HookError, "PackageHookFailed", None),
    (PackageStateError, "StateFailed", None),
    (ConflictError, "FieldConflict", False),
    (NotEstablishedError, "DefinitionsNotEstablished", False),
    (ClusterError, "ClusterFailed", None),
    (ProcessError, "ProcessFailed", None),
    (JournalError, "JournalFailed", None),
    (PackageError, "ArtifactInvalid", None),
)


_OF_FOLDERS: Final = MappingProxyType({"ArtifactNotFound": "FolderNotFound", "ArtifactInvalid": "FolderInvalid"})
"""The reasons for packages that come from a folder on this machine, by the reason for packages from a registry."""


def classify(error: Expected, mask: Callable[[str], str] = str, *, in_folder: bool = False) -> Failure:
    """Return the failure for an expected error; ``mask`` removes secrets from its text.

    ``in_folder``: the package comes from a folder on this machine, so it cannot be pushed.
    """
    failure = _classified(error, mask)
    return replace(failure, reason=_OF_FOLDERS.get(failure.reason, failure.reason)) if in_folder else failure


def _classified(error: Expected, mask: Callable[[str], str]) -> Failure:
    message = " ".join(mask(str(error)).split()) or type(error).__name__
    transient = getattr(error, "transient", False) is True
    if isinstance(error, RegistryError) and not isinstance(error, ArtifactNotFoundError):
        return Failure("RegistryFailed" if transient else "RegistryRefused", message, permanent=False)
    for kind, reason, permanent in _REASONS:
        if isinstance(error, kind):
            stage = Stage.HOOKS if isinstance(error, HookRunError) else None
            return Failure(reason, message, permanent=not transient if permanent is None else permanent, stage=stage)
    raise AssertionError(f"{type(error).__name__} is not in the table")
