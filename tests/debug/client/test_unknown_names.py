from dataclasses import replace

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import package
from wharfinger.debug.client.unknown_names import (
    NoSuchPackageError,
    nearest_hint,
    no_such_package,
    one_package,
    package_hint,
    why_incomplete,
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
async def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    assert await package_hint(CannedInspector(), name) == hint


async def test_a_package_is_found_by_name_or_reported_as_missing() -> None:
    assert (await one_package(CannedInspector(), "ingress")).name == "ingress"
    with pytest.raises(NoSuchPackageError, match="no package named 'zzz'; `wharfinger get packages` lists them"):
        await one_package(CannedInspector((package(),)), "zzz")
    assert "no WorkerClaim named 'a/b'" in str(await no_such_package(CannedInspector(), "claim/a/b"))


@pytest.mark.parametrize(
    ("standby", "hint"),
    [
        ("", "the daemon is starting, and does not know all packages yet; try again"),
        ("another one leads", "the daemon does not work on packages: another one leads"),
    ],
)
async def test_a_starting_or_standby_daemon_is_mentioned_in_the_hint(standby: str, hint: str) -> None:
    inspector = CannedInspector(())
    inspector.base = replace(inspector.base, ready=False, standby=standby)
    assert str(await no_such_package(inspector, "prod.shop")) == f"no package named 'prod.shop'; {hint}"
    assert await why_incomplete(inspector) == hint
    assert await why_incomplete(CannedInspector()) == ""


def test_the_hint_suggests_the_nearest_name() -> None:
    assert nearest_hint("defualt", ["default"], "x") == "did you mean 'default'?"
    assert nearest_hint("q", ["default"], "wharfinger get pools") == "`wharfinger get pools` lists all"
