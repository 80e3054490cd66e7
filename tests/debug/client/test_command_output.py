"""What is printed of an Inspector's answers, whoever answers."""

import json
from dataclasses import replace

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import PACKAGES, WAITING, package, task
from wharfinger.debug.client.command_output import (
    NoSuchPackageError,
    dump_text,
    packages_text,
    queues_text,
    scheduler_text,
)
from wharfinger.debug.encoding.package import package_to_json
from wharfinger.formats.text_width import width as columns_of
from wharfinger.runtime.inspector import PackageSnapshot, TaskSnapshot


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
async def test_the_installed_version_and_the_wanted_one(installed: str, wanted: str, shown: str) -> None:
    told = replace(package(), installed_version=installed, version=wanted, package="p" * 9)
    for output in ("table", "wide"):
        text = await packages_text(CannedInspector(contents=(told,)), None, output, None)
        header, row = text.splitlines()
        column = slice(header.index("VERSION"), header.index("STATE" if output == "table" else "REVISION"))
        assert row[column].rstrip() == shown
        assert "→" not in await packages_text(CannedInspector(contents=(told,)), None, output, None, "->")


async def test_on_a_terminal_rows_fit() -> None:
    inspector = CannedInspector(contents=(package(message="m" * 200),))
    lines = (await packages_text(inspector, None, "table", 90)).splitlines()
    assert columns_of(lines[1]) == 90
    assert lines[1].endswith("…")
    assert "m" * 200 in await packages_text(inspector, None, "table", None)


async def test_the_printing_works_on_any_inspector() -> None:
    inspector = CannedInspector()
    assert json.loads(await dump_text(inspector, "ingress", "json")) == package_to_json(PACKAGES[0])
    assert "prod.shop" in await queues_text(inspector, None, "yaml", None)
    for question in (
        packages_text(inspector, "x", "table", None),
        dump_text(inspector, "x", "json"),
        queues_text(inspector, "x", "json", None),
        scheduler_text(inspector, "x", "json", None),
    ):
        with pytest.raises(NoSuchPackageError):
            await question


async def test_a_package_that_is_no_node_yet_is_known_all_the_same() -> None:
    loading = replace(package("quota"), state="Pending", message="reading the package")
    with pytest.raises(NoSuchPackageError) as raised:
        await scheduler_text(CannedInspector((loading,), nodes=()), "quota", "yaml", None)
    assert str(raised.value) == (
        "package 'quota' is not in the scheduler (Pending: reading the package); `wharfinger why quota` says why"
    )
    with pytest.raises(NoSuchPackageError, match=r"scheduler \(Pending\); "):
        await scheduler_text(CannedInspector((replace(loading, message=""),), nodes=()), "quota", "yaml", None)


async def test_no_one_is_told_to_ask_what_was_asked() -> None:
    """Not even where the package has come in between the two questions."""

    class Late(CannedInspector):
        async def package(self, name: str) -> PackageSnapshot | None:
            return None

    with pytest.raises(NoSuchPackageError, match=r"; `wharfinger get packages` lists them$"):
        await dump_text(Late((package("quota"),)), "quota", "json")


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
async def test_what_a_package_does(tasks: tuple[TaskSnapshot, ...], doing: str) -> None:
    header, row = (await packages_text(CannedInspector((package(tasks=tasks),)), None, "wide", None)).splitlines()
    assert row[header.index("DOING") : header.index("WARNINGS")].rstrip() == doing
