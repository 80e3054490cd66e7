import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import package
from wharfinger.debug.client.unknown_names import (
    NoSuchPackageError,
    nearest_hint,
    no_such_package,
    one_package,
    package_hint,
)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("prod/shop", "did you mean prod.shop?"),
        ("shop", "did you mean prod.shop or test.shop?"),
        ("prod.shoo", "did you mean prod.shop?"),
        ("zzz", ""),
    ],
)
async def test_hints(name: str, hint: str) -> None:
    assert await package_hint(CannedInspector(), name) == hint


async def test_a_package_and_its_error() -> None:
    assert (await one_package(CannedInspector(), "ingress")).name == "ingress"
    with pytest.raises(NoSuchPackageError, match="no package named 'zzz'; `wharfinger get packages` lists them"):
        await one_package(CannedInspector((package(),)), "zzz")
    assert "no WorkerClaim named 'a/b'" in str(await no_such_package(CannedInspector(), "claim/a/b"))


def test_the_nearest_name() -> None:
    assert nearest_hint("defualt", ["default"], "x") == "did you mean 'default'?"
    assert nearest_hint("q", ["default"], "wharfinger get pools") == "`wharfinger get pools` lists all"
