"""The overview page and the page of the queues."""

from dataclasses import replace

import pytest

from tests.debug.support.dashboard_samples import WHOLE
from wharfinger.debug.dashboard.blocks import Cell, Facts, Items, Page, Picture, Table, Tone
from wharfinger.debug.dashboard.overview_page import overview_page, package_href, queues_page, state_cell

PICTURE = Picture("<svg/>", "a drawing", "text")


def table(page: Page, key: str) -> Table:
    found = next(block for section in page.sections if section.key == key for block in section.blocks)
    assert isinstance(found, Table)
    return found


def facts(page: Page) -> dict[str, str]:
    found = page.sections[0].blocks[0]
    assert isinstance(found, Facts)
    return {name: cell.text for name, cell in found.pairs}


def test_the_overview_shows_the_daemon_and_the_packages() -> None:
    page = overview_page(WHOLE, "", PICTURE)
    assert facts(page) | {"Tasks": ""} == {
        "State": "ready",
        "Version": "0.1.0",
        "Cluster": "https://127.0.0.1:6443",
        "Started": "2026-05-17T12:30:45Z",
        "Failed": "1",
        "Degraded": "1",
        "Updating": "1",
        "Disabled": "1",
        "Ready": "1",
        "Tasks": "",
    }
    assert page.announcement == "5 packages: 1 Failed, 1 Degraded, 1 Updating, 1 Disabled, 1 Ready"
    assert page.sections[1].blocks == (PICTURE,)
    rows = table(page, "packages").rows
    assert [row[0].text for row in rows] == [package.name for package in WHOLE.packages]
    assert rows[2][1] == Cell("Failed", Tone.BAD)
    assert rows[2][0].href == "package?name=prod.shop"
    assert rows[3][4] == Cell("2 (1 parked)", Tone.BAD)


def test_packages_are_found_by_a_part_of_their_name() -> None:
    page = overview_page(WHOLE, "SHOP", None)
    assert [row[0].text for row in table(page, "packages").rows] == ["prod.shop", "test.shop"]
    assert (page.find, page.address) == ("SHOP", "/?find=SHOP")
    assert "“nothing”" in table(overview_page(WHOLE, "nothing", None), "packages").when_empty


def test_the_drawing_is_replaced_without_packages_and_with_too_many() -> None:
    empty = overview_page(replace(WHOLE, packages=(), nodes=()), "", None).sections[1].blocks[0]
    many = overview_page(WHOLE, "", None).sections[1].blocks[0]
    assert isinstance(empty, Items)
    assert isinstance(many, Items)
    assert "kubectl apply" in empty.when_empty
    assert "more than" in many.when_empty


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ready": False}, "starting"),
        ({"draining": True}, "shutting down"),
        ({"standby": "waits for the Lease"}, "waits for the Lease"),
    ],
)
def test_a_daemon_that_is_not_ready_is_shown_with_its_state(changes: dict[str, bool], said: str) -> None:
    page = overview_page(replace(WHOLE, daemon=replace(WHOLE.daemon, **changes), statistics=None), "", None)  # type: ignore[arg-type]
    assert facts(page)["State"] == said
    assert "Tasks" not in facts(page)


def test_the_queues_page_shows_tasks_and_limits() -> None:
    page = queues_page(WHOLE)
    assert [[cell.text for cell in row][:3] for row in table(page, "tasks").rows] == [
        ["prod.busy", "Task1", "running"],
        ["prod.shop", "Download", "again in 14.2s"],
        ["test.a-package-with-a-long-name", "Render", "parked"],
        ["test.a-package-with-a-long-name", "Task2", "waiting"],
    ]
    assert [[cell.text for cell in row] for row in table(page, "limits").rows][1] == ["renders", "2 of 2", "3"]
    assert page.announcement == "4 tasks in 3 queues"
    assert table(queues_page(replace(WHOLE, statistics=None)), "limits").rows == ()


def test_names_are_quoted_in_addresses() -> None:
    assert package_href("a/b?c&d=é..") == "package?name=a%2Fb%3Fc%26d%3D%C3%A9.."
    assert state_cell("a later state").tone is Tone.WARNING
