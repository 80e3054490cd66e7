from datetime import timedelta

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import BUSY, HOSTILE, MOMENT, package
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.errors import DebugAnswerError
from wharfinger.debug.package.description import describe, description_lines, description_to_json
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.package_details import ClusterEventSnapshot


async def test_a_description_has_all_sections() -> None:
    found = await describe(CannedInspector(), "prod.shop")
    lines = list(description_lines(found, MOMENT + timedelta(minutes=3), None, "→"))
    assert lines[:4] == [
        "Name:         prod.shop",
        "Kind:         Application",
        "Namespace:    prod",
        "Package:      shop",
    ]
    assert [line for line in lines if not line.startswith(" ") and line.endswith(":")] == [
        *("What to do:", "Conditions:", "Settings:", "Resources:", "Hooks:", "Recent decisions:", "Events:"),
    ]
    assert "  remedy: look at the hook's lines in the daemon's log" in lines
    assert any("1 of 2 available; drift: /spec/replicas by kubectl" in line for line in lines)
    document = description_to_json(found)
    assert set(document) == {"package", "resources", "events", "explanation", "history"}


async def test_every_state_of_a_package_is_described() -> None:
    found = await describe(CannedInspector((BUSY,), explanations={}), "prod.busy")
    text = "\n".join(description_lines(found, MOMENT, 80, "->"))
    for part in (
        "Suspended:    yes",
        "Maintenance:  NoRes",
        "Doing:        Task1 (waits",
        "Warnings:",
        "Drift:",
        "Failing:",
    ):
        assert part in text


async def test_control_characters_are_escaped_in_descriptions() -> None:
    odd = package("prod.odd", message=HOSTILE, settings={"a": HOSTILE})
    found = await describe(CannedInspector((odd,)), "prod.odd")
    assert all(is_safe(line) for line in description_lines(found, MOMENT, None, "→"))


async def test_without_the_cluster_only_the_events_are_missing() -> None:
    class Away(CannedInspector):
        async def events(self, name: str | None) -> tuple[ClusterEventSnapshot, ...] | None:
            raise DebugAnswerError("the Events cannot be read")

    found = await describe(Away(), "prod.shop")
    assert list(description_lines(found, MOMENT, None, "→"))[-1] == "  the Events cannot be read"
    with pytest.raises(NoSuchPackageError):
        await describe(Away(), "nope")
