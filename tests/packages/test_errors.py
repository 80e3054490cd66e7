import pytest

from wharfinger.packages.errors import (
    AddressError,
    ArtifactError,
    ArtifactNotFoundError,
    ConversionError,
    DigestError,
    PackageError,
    RegistryError,
    RenderError,
    StoreError,
)


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (PackageError("x"), False),
        (RegistryError("x", transient=True), True),
        (RegistryError("x", transient=False), False),
        (ArtifactNotFoundError("x"), False),
        (DigestError("x"), False),
        (DigestError("x", transient=True), True),
        (AddressError("x"), False),
        (ArtifactError("x"), False),
        (StoreError("x"), True),
        (StoreError("x", transient=False), False),
        (RenderError("x"), False),
        (RenderError("x", transient=True), True),
        (ConversionError("x"), False),
        (ConversionError("x", transient=True), True),
    ],
)
def test_package_errors_are_transient_or_permanent(error: PackageError, transient: bool) -> None:
    assert isinstance(error, PackageError)
    assert error.transient is transient
    assert str(error) == "x"
