"""The output of `get packages`."""

from dataclasses import replace

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.listed import listed
from tests.debug.support.samples import WAITING, package, task
from wharfinger.formats.text_width import width as columns_of
from wharfinger.runtime.inspector import TaskSnapshot


@pytest.mark.parametrize(
    ("installed", "wanted", "shown"),
    [
        ("1.0.0", "1.0.0", "1.0.0"),
        ("1.0.0", "1.1.0", "1.0.0 → 1.1.0"),
        ("", "1.1.0", "→ 1.1.0"),
        ("1.0.0", "", "1.0.0"),
        ("", "", ""),
    ],
)
async def test_the_installed_and_the_desired_version_are_shown(installed: str, wanted: str, shown: str) -> None:
    told = replace(package(), installed_version=installed, version=wanted, package="p" * 9)
    for output in ("table", "wide"):
        text = await listed(CannedInspector(contents=(told,)), "packages", None, output)
        header, row = text.splitlines()
        column = slice(header.index("VERSION"), header.index("STATE" if output == "table" else "REVISION"))
        assert row[column].rstrip() == shown
        assert "→" not in await listed(CannedInspector(contents=(told,)), "packages", None, output, arrow="->")


async def test_rows_fit_the_terminal() -> None:
    inspector = CannedInspector(contents=(package(message="m" * 200),))
    lines = (await listed(inspector, "packages", None, "table", 90)).splitlines()
    assert columns_of(lines[1]) == 90
    assert lines[1].endswith("…")
    assert "m" * 200 in await listed(inspector, "packages")


HOOK_RUN = replace(task(1), name="hook", lane="q")


@pytest.mark.parametrize(
    ("tasks", "doing"),
    [
        ((), ""),
        ((task(1, running=False),), ""),
        ((WAITING, task(2, running=False)), "Task1 (again in 14.2s)"),
        ((WAITING, HOOK_RUN), "hook"),
        ((replace(task(1, running=False), parked=True),), "Task1 (parked)"),
        ((HOOK_RUN, replace(WAITING, index=2)), "hook"),
        ((replace(HOOK_RUN, waits_for="a slot: hooks"),), "hook (waits for a slot: hooks)"),
    ],
)
async def test_the_current_activity_of_a_package_is_shown(tasks: tuple[TaskSnapshot, ...], doing: str) -> None:
    header, row = (await listed(CannedInspector((package(tasks=tasks),)), "packages", None, "wide")).splitlines()
    assert row[header.index("DOING") : header.index("WARNINGS")].rstrip() == doing
