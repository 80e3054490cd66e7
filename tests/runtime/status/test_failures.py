"""The reason that the status shows for each error, and whether a retry can help."""

import pytest

from wharfinger.cluster.api.errors import ReleaseError, UnknownKindError, UnreachableError, api_error
from wharfinger.cluster.crds.definitions import NotEstablishedError
from wharfinger.cluster.objects.accounts import NoAccountError
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner
from wharfinger.cluster.objects.scope import OutsideNamespaceError
from wharfinger.cluster.records.release_store import ReleaseBusyError
from wharfinger.cluster.releases.hooks import HookFailedError
from wharfinger.cluster.releases.preflight import UnsafeDefinitionError
from wharfinger.cluster.releases.upgrade import EmptyReleaseError, NoWayBackError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.schemas.problem import Problem
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.packages import errors as packages
from wharfinger.packages.settings.values import SettingsError
from wharfinger.process.errors import SpawnError, StuckError
from wharfinger.runtime.lifecycle.journal import JournalError
from wharfinger.runtime.lifecycle.package_state import PackageStateError
from wharfinger.runtime.resources.identity import IdentityError
from wharfinger.runtime.resources.release_policy import ReleasePolicyError
from wharfinger.runtime.status import failures
from wharfinger.runtime.status.failures import (
    EXPECTED,
    Expected,
    Failure,
    HookRunError,
    ValuesLoopError,
    WorkloadError,
    classify,
)
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason, advice

CASES: list[tuple[Expected, str, bool]] = [
    (packages.ArtifactNotFoundError("x"), "ArtifactNotFound", False),
    (packages.RegistryError("x", transient=True), "RegistryFailed", False),
    (packages.RegistryError("x", transient=False), "RegistryRefused", False),
    (packages.DigestError("x"), "DigestMismatch", False),
    (packages.TrustError("x"), "NotTrusted", False),
    (packages.StoreError("x"), "StoreFailed", False),
    (packages.RenderError("x"), "RenderFailed", True),
    (packages.PatchError("x"), "PatchFailed", True),
    (packages.ArtifactError("x"), "ArtifactInvalid", True),
    (packages.AddressError("x"), "SpecInvalid", True),
    (packages.PackageError("x"), "ArtifactInvalid", True),
    (ReleasePolicyError("x"), "SpecInvalid", True),
    (FormatError("x"), "ArtifactInvalid", True),
    (IdentityError("x"), "SpecInvalid", True),
    (api_error(422, "Invalid", "x"), "ApplyFailed", True),
    (
        api_error(500, "", "failed to create typed patch object (a): .b: field not declared in schema"),
        "ApplyFailed",
        True,
    ),
    (api_error(409, "Conflict", "x"), "FieldConflict", False),
    (ForeignObjectError("x"), "ConflictingOwner", False),
    (EmptyReleaseError("x"), "ManifestEmpty", True),
    (NoWayBackError("x"), "NoWayBack", True),
    (OutsideNamespaceError("x"), "OutsideNamespace", True),
    (packages.LookupRefusedError("x"), "OutsideNamespace", True),
    (ReleaseBusyError("x"), "ReleaseBusy", False),
    (UnsafeDefinitionError("x"), "DefinitionUnsafe", True),
    (HookFailedError("x"), "HookFailed", False),
    (NotEstablishedError("x"), "DefinitionsNotEstablished", False),
    (ReleaseError("x"), "ClusterFailed", True),
    (WorkloadError("x"), "WorkloadFailed", False),
    (NoAccountError(Owner("web", "prod")), "SpecInvalid", True),
    (api_error(403, "Forbidden", "x"), "NotPermitted", False),
    (api_error(503, "ServiceUnavailable", "x"), "ClusterFailed", False),
    (api_error(405, "MethodNotAllowed", "x"), "ClusterFailed", True),
    (UnreachableError("x"), "ClusterFailed", False),
    (UnknownKindError("x"), "ClusterFailed", False),
    (SpawnError("helm", "not found", "install it"), "ProcessFailed", True),
    (StuckError("helm", 1, 2.0), "ProcessFailed", False),
    (SettingsError((Problem("mode", "wrong"),)), "SettingsInvalid", True),
    (HookConfigError("hooks/a.sh", ("kid: unknown",)), "HookInvalid", True),
    (HookRunError("hooks/a.sh", "exit status 1"), "PackageHookFailed", False),
    (ValuesLoopError("x"), "ValuesLoop", True),
    (FilterError(".a", "x"), "HookInvalid", True),
    (FilterError(".a", "x", transient=True), "HookInvalid", False),
    (HookError("hooks/a.sh", "x", transient=True), "PackageHookFailed", False),
    (HookError("hooks/a.sh", "x", transient=False), "PackageHookFailed", True),
    (PackageStateError("x"), "StateFailed", True),
    (packages.ConversionError("x"), "SettingsInvalid", True),
    (packages.ConversionError("x", transient=True), "SettingsInvalid", False),
    (packages.RulesError("x"), "ProcessFailed", False),
    (JournalError("x"), "JournalFailed", False),
    (JournalError("x", transient=False), "JournalFailed", True),
]
STAGES: dict[type[Exception], Stage] = {HookRunError: Stage.HOOKS}
"""The stage that fails because of an error, if it is not the stage of the failed task."""


@pytest.mark.parametrize(("error", "reason", "permanent"), CASES, ids=lambda value: type(value).__name__)
def test_every_expected_error_has_its_reason(error: Expected, reason: str, permanent: bool) -> None:
    assert isinstance(error, EXPECTED)
    assert classify(error) == Failure(Reason(reason), str(error), permanent, STAGES.get(type(error)))
    assert Reason(reason).tip in advice(reason, permanent=permanent)
    assert Reason(reason).tip


@pytest.mark.parametrize(("error", "reason", "permanent"), CASES, ids=lambda value: type(value).__name__)
def test_errors_of_a_folder_do_not_advise_to_push(error: Expected, reason: str, permanent: bool) -> None:
    failure = classify(error, in_folder=True)
    words = {"ArtifactNotFound": "FolderNotFound", "ArtifactInvalid": "FolderInvalid"}
    assert (failure.reason, failure.permanent) == (words.get(reason, reason), permanent)
    if "Artifact" in reason:
        assert "push" not in advice(failure.reason, permanent=permanent)
        assert "folder" in advice(failure.reason, permanent=permanent)


def test_an_error_without_a_message_is_reported_by_its_type() -> None:
    assert classify(UnreachableError()).message == "UnreachableError"


def test_an_unexpected_error_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="KeyError"):
        classify(KeyError("x"))  # type: ignore[arg-type]


def test_every_row_of_the_table_is_used_by_some_error() -> None:
    rows = failures._REASONS
    met = [next(kind for kind, _, _ in rows if isinstance(error, kind)) for error, _, _ in CASES]
    assert {kind for kind, _, _ in rows} == set(met)
    assert {reason for _, reason, _ in rows} <= set(Reason)


def test_a_message_is_one_line() -> None:
    assert classify(packages.ArtifactError("first\n  second")).message == "first second"
