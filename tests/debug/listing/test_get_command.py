"""`wharfinger get`, as a user types it. The output of each list is tested in the module for that list."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from tests.debug.support.samples import BUSY, DAEMON, PACKAGES, package
from wharfinger.debug.client.polling import Pacer
from wharfinger.debug.listing.get_command import add_get, complete_output, watch
from wharfinger.debug.listing.listing import Selection
from wharfinger.debug.listing.lists import listing_of
from wharfinger.runtime.daemon_details import LeaderSnapshot


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        ("pkg -o name", "ingress\nprod.shop\ntest.shop\n", ""),
        ("apps -n prod -o name", "prod.shop\n", ""),
        ("apps -A -o name", "prod.shop\ntest.shop\n", ""),
        ("apps -n none", "", "no applications match\n"),
        ("apps -l x=y", "", "no applications match\n"),
        (
            "packages ingress --no-headers",
            "ingress   Module   shop      1.2.3     Ready   all objects are healthy\n",
            "",
        ),
        ("packages prod.shop -o jsonpath={.name}", "prod.shop\n", ""),
        (
            "packages -o jsonpath={.items[*].metadata.name}",
            "",
            "the template matches nothing; the document of `-o json` has the fields apps, modules\n",
        ),
        ("packages -n none -o jsonpath={.items}", "", ""),
    ],
)
async def test_get_prints_the_list_and_its_notes(words: str, out: str, err: str, tmp_path: Path) -> None:
    assert await typed(add_get, words.split(), CannedInspector(), tmp_path) == (0, out, err)


async def test_wrong_arguments_of_get_are_refused(tmp_path: Path) -> None:
    code, out, err = await typed(add_get, ["repositories", "-n", "a"], CannedInspector(), tmp_path)
    assert (code, out, err) == (1, "", "error: the rows of `get repositories` have no namespaces; leave -n out\n")
    for words in (["packages", "-o", "xml"], ["packages", "-l", "a in"], ["apps", "-n", "a", "-A"], ["nonsense"]):
        with pytest.raises(SystemExit):
            await typed(add_get, words, CannedInspector(), tmp_path)


async def test_a_list_is_watched_until_the_user_stops(tmp_path: Path) -> None:
    inspector, pauses = CannedInspector(contents=()), list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        inspector.contents = ((), PACKAGES[:2], (replace(PACKAGES[0], state="Failed"),))[min(len(pauses), 2)]
        if len(pauses) > 2:
            raise KeyboardInterrupt

    def handler(args: argparse.Namespace) -> int:
        assert args.watch
        with pytest.raises(KeyboardInterrupt):
            watch(args, listing_of(cast("str", args.what)), Selection(), Pacer(pause))
        return 0

    _, out, err = await typed(add_get, ["packages", "-w"], inspector, tmp_path, handler=handler)
    assert err == "no packages; waiting for some\n"
    header, first, second, failed, gone = out.splitlines()
    assert header.startswith("NAME")
    assert [line.split()[0] for line in (first, second, failed)] == ["ingress", "prod.shop", "ingress"]
    assert "Failed" in failed
    assert gone == "prod.shop   (gone)"
    assert min(pauses) >= 1


async def test_a_watch_ends_with_the_daemon(tmp_path: Path) -> None:
    def handler(args: argparse.Namespace) -> int:
        args.socket = tmp_path / "none"
        return watch(args, listing_of("packages"), Selection(), Pacer(lambda _: None))

    code, _, err = await typed(add_get, ["packages", "-w"], CannedInspector((package(),)), tmp_path, handler=handler)
    assert code == 1
    assert "no daemon answers" in err


def test_names_of_formats_are_completed() -> None:
    assert complete_output("j", argparse.Namespace()) == ["json", "jsonpath="]


async def got(inspector: CannedInspector, line: str, folder: Path) -> tuple[int, str, str]:
    """Run a `get` command as a user types it, and return its exit code, stdout and stderr."""
    return await typed(add_get, line.split(), inspector, folder)


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        *((word, {"Application", "Module"}) for word in ("packages", "package", "pkg", "Packages")),
        *((word, {"Application"}) for word in ("applications", "application", "app", "applications.wharfinger.dev")),
        *((word, {"Module"}) for word in ("modules", "module", "mod", "wmod")),
    ],
)
async def test_get_accepts_short_and_plural_names(line: str, kinds: set[str], tmp_path: Path) -> None:
    contents = (package("ingress", kind="Module"), package("prod.web"))
    code, out, _ = await got(CannedInspector(contents=contents), f"{line} -o json", tmp_path)
    assert code == 0
    assert {each["kind"] for some in json.loads(out).values() for each in some.values()} == kinds
    code, out, _ = await got(CannedInspector(contents=contents), f"{line} -o name", tmp_path)
    assert (code, out.split()) == (0, [each.name for each in contents if each.kind in kinds])


async def test_get_reports_the_kind_of_a_name(tmp_path: Path) -> None:
    contents = (package("ingress", kind="Module"), package("prod.web"))
    inspector = CannedInspector(contents=contents)
    assert await got(inspector, "module ingress -o name", tmp_path) == (0, "ingress\n", "")
    said = "error: no Application named 'ingress'; it is the name of a Module\n"
    assert await got(inspector, "app ingress", tmp_path) == (1, "", said)
    alone = CannedInspector(contents=contents[1:])
    assert await got(alone, "modules", tmp_path) == (0, "", "no modules\n")


async def test_get_prints_a_table_of_packages(tmp_path: Path) -> None:
    code, out, err = await got(CannedInspector(), "packages", tmp_path)
    assert (code, err) == (0, "")
    assert out == (
        "NAME        KIND          PACKAGE   VERSION   STATE   MESSAGE\n"
        "ingress     Module        shop      1.2.3     Ready   all objects are healthy\n"
        "prod.shop   Application   shop      1.2.3     Ready   all objects are healthy\n"
        "test.shop   Application   shop      1.2.3     Ready   two\\nlines\n"
    )


async def test_get_prints_the_leader_in_every_format(tmp_path: Path) -> None:
    leader = LeaderSnapshot("ns/lease", "host_1", 3, "host_\x1b[2J", leads=False)
    inspector = CannedInspector(base=replace(DAEMON, leader=leader))
    code, out, err = await got(inspector, "leader", tmp_path)
    assert (code, err) == (0, "")
    assert out == (
        "LEASE      LEADER   FENCE   THIS DAEMON    ROLE\nns/lease   host_1   3       host_\\x1b[2J   standby\n"
    )
    assert await got(inspector, "leader -o name", tmp_path) == (0, "host_1\n", "")
    _, out, _ = await got(inspector, "leader -o json", tmp_path)
    assert json.loads(out)["fence"] == 3
    said = "no leader is known: the daemon has not read the Lease yet\n"
    assert await got(CannedInspector(), "leader", tmp_path) == (0, "", said)


async def test_get_prints_one_package_with_wide_columns(tmp_path: Path) -> None:
    code, out, _ = await got(CannedInspector(), "packages prod.shop -o wide", tmp_path)
    assert code == 0
    header, row = out.splitlines()
    assert header.split() == [
        "NAME",
        "KIND",
        "PACKAGE",
        "VERSION",
        "REVISION",
        "DIGEST",
        "QUEUED",
        "DOING",
        "WARNINGS",
        "STATE",
        "TIP",
        "MESSAGE",
    ]
    assert row.split()[:8] == ["prod.shop", "Application", "shop", "1.2.3", "3", "0123456789ab", "2", "Task1"]
    _, out, _ = await got(CannedInspector(contents=(BUSY,)), "packages -o wide", tmp_path)
    assert "   1        Task1 (waits for a slot: renders)   1          Ready   nothing to do   waits\n" in out


async def test_get_prints_only_names(tmp_path: Path) -> None:
    assert await got(CannedInspector(), "packages -o name", tmp_path) == (
        0,
        "ingress\nprod.shop\ntest.shop\n",
        "",
    )


@pytest.mark.parametrize("output", ["table", "wide", "name"])
async def test_an_empty_list_is_reported_on_stderr(output: str, tmp_path: Path) -> None:
    empty = CannedInspector(contents=())
    assert await got(empty, f"packages -o {output}", tmp_path) == (0, "", "no packages\n")
