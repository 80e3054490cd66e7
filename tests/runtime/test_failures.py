"""Which word an error becomes, and whether trying again can help."""

import pytest

from wharfinger.cluster.errors import UnknownKindError, UnreachableError, api_error
from wharfinger.cluster.ownership import ForeignObjectError
from wharfinger.cluster.release import ReleaseError
from wharfinger.cluster.release_hooks import HookFailedError
from wharfinger.formats.errors import FormatError
from wharfinger.packages import errors as packages
from wharfinger.process.errors import SpawnError, StuckError
from wharfinger.runtime.failures import EXPECTED, Expected, Failure, WorkloadError, classify
from wharfinger.runtime.identity import IdentityError
from wharfinger.runtime.status import TIPS

CASES: list[tuple[Expected, str, bool]] = [
    (packages.ArtifactNotFoundError("x"), "ArtifactNotFound", False),
    (packages.RegistryError("x", transient=True), "RegistryFailed", False),
    (packages.RegistryError("x", transient=False), "RegistryRefused", False),
    (packages.DigestError("x"), "DigestMismatch", False),
    (packages.StoreError("x"), "StoreFailed", False),
    (packages.RenderError("x"), "RenderFailed", True),
    (packages.ArtifactError("x"), "ArtifactInvalid", True),
    (packages.AddressError("x"), "SpecInvalid", True),
    (packages.PackageError("x"), "ArtifactInvalid", True),
    (FormatError("x"), "ArtifactInvalid", True),
    (IdentityError("x"), "SpecInvalid", True),
    (api_error(422, "Invalid", "x"), "ApplyFailed", True),
    (api_error(409, "Conflict", "x"), "ConflictingOwner", False),
    (ForeignObjectError("x"), "ConflictingOwner", False),
    (HookFailedError("x"), "HookFailed", False),
    (ReleaseError("x"), "ClusterFailed", True),
    (WorkloadError("x"), "WorkloadFailed", False),
    (api_error(503, "ServiceUnavailable", "x"), "ClusterFailed", False),
    (api_error(405, "MethodNotAllowed", "x"), "ClusterFailed", True),
    (UnreachableError("x"), "ClusterFailed", False),
    (UnknownKindError("x"), "ClusterFailed", False),
    (SpawnError("helm", "not found", "install it"), "ProcessFailed", True),
    (StuckError("helm", 1, 2.0), "ProcessFailed", False),
]


@pytest.mark.parametrize(("error", "reason", "permanent"), CASES, ids=lambda value: type(value).__name__)
def test_every_expected_error_has_its_word(error: Expected, reason: str, permanent: bool) -> None:
    assert isinstance(error, EXPECTED)
    assert classify(error) == Failure(reason, str(error), permanent)
    assert TIPS[reason]


def test_an_error_without_words_is_named_by_its_type() -> None:
    assert classify(UnreachableError()).message == "UnreachableError"


def test_what_is_not_expected_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="KeyError"):
        classify(KeyError("x"))  # type: ignore[arg-type]
