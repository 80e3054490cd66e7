"""`wharfinger get` as it is typed; what it prints of each list is tested with that list."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from tests.debug.support.samples import PACKAGES, package
from wharfinger.debug.client.polling import Pacer
from wharfinger.debug.listing.get_command import add_get, complete_output, watch
from wharfinger.debug.listing.listing import Selection
from wharfinger.debug.listing.lists import listing_of


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
async def test_what_is_printed(words: str, out: str, err: str, tmp_path: Path) -> None:
    assert await typed(add_get, words.split(), CannedInspector(), tmp_path) == (0, out, err)


async def test_errors(tmp_path: Path) -> None:
    code, out, err = await typed(add_get, ["repositories", "-n", "a"], CannedInspector(), tmp_path)
    assert (code, out, err) == (1, "", "error: repositories have no namespace; leave -n out\n")
    for words in (["packages", "-o", "xml"], ["packages", "-l", "a in"], ["apps", "-n", "a", "-A"], ["nonsense"]):
        with pytest.raises(SystemExit):
            await typed(add_get, words, CannedInspector(), tmp_path)


async def test_it_is_watched_until_the_user_stops(tmp_path: Path) -> None:
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


def test_formats_are_completed() -> None:
    assert complete_output("j", argparse.Namespace()) == ["json", "jsonpath="]
