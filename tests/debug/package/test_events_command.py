import json
from pathlib import Path

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from wharfinger.debug.package.events_command import add_events, event_lines
from wharfinger.runtime.package_details import ClusterEventSnapshot, DetailsUnavailableError


async def test_events_are_printed_as_a_table(tmp_path: Path) -> None:
    code, out, _ = await typed(add_events, ["prod.shop"], CannedInspector(), tmp_path)
    assert code == 0
    header, first, second = out.splitlines()
    assert header.split() == ["LAST-SEEN", "TYPE", "REASON", "COUNT", "OBJECT", "MESSAGE"]
    assert first.split()[:4] == ["2026-05-17T12:30:45Z", "Warning", "Failed", "3"]
    assert first.endswith("hook failed\\x1b[31m")
    assert second.startswith("unknown")
    _, out, _ = await typed(add_events, ["--type", "Normal", "--no-headers"], CannedInspector(), tmp_path)
    assert len(out.splitlines()) == 1
    _, out, _ = await typed(add_events, ["-o", "json"], CannedInspector(), tmp_path)
    assert [each["reason"] for each in json.loads(out)["events"]] == ["Failed", "Installed"]


async def test_an_empty_list_of_events_is_reported(tmp_path: Path) -> None:
    assert await typed(add_events, [], CannedInspector(happened=()), tmp_path) == (0, "", "no Events\n")
    assert event_lines((), None) == []
    code, _, err = await typed(add_events, ["nope"], CannedInspector(), tmp_path)
    assert (code, err) == (1, "error: no package named 'nope'; `wharfinger get packages` lists them\n")


@pytest.mark.parametrize("words", [[], ["prod.shop"]])
async def test_a_cluster_that_does_not_answer_is_reported(words: list[str], tmp_path: Path) -> None:
    class Away(CannedInspector):
        async def events(self, name: str | None) -> tuple[ClusterEventSnapshot, ...] | None:
            raise DetailsUnavailableError("the Events cannot be read: connection refused")

    code, _, err = await typed(add_events, words, Away(), tmp_path)
    assert (code, err) == (1, "error: the Events cannot be read: connection refused\n")
