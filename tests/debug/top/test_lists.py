"""The rows of the four lists of the live view."""

from dataclasses import replace

import pytest

from tests.debug.support.samples import BUSY, HOSTILE, package, task
from tests.debug.support.top_samples import NOW, PACKAGES
from wharfinger.debug.top.lists import (
    COLUMNS,
    ListKind,
    Row,
    Sorting,
    Style,
    arranged,
    rows_of,
    state_style,
)
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.inspector import HookSnapshot


def texts(rows: tuple[Row, ...] | list[Row]) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in rows]


def names(rows: tuple[Row, ...]) -> list[str]:
    return [row.cells[0].text for row in rows]


def test_packages_are_listed_with_state_and_activity() -> None:
    assert texts(rows_of(ListKind.PACKAGES, PACKAGES, NOW))[:3] == [
        ["ingress", "Ready", "", "", "", "", "all objects are healthy"],
        ["prod.busy", "Updating", "Task1 (waits for a slot: renders) 3/4", "1", "", "1", "waits"],
        [
            "prod.shop",
            "Failed",
            "Download (again in 14.2s)",
            "1 (1 again)",
            "2 (1 bad)",
            "",
            "the chart cannot be downloaded: connection refused by the registry",
        ],
    ]


def test_tasks_are_listed_with_their_queue() -> None:
    assert texts(rows_of(ListKind.QUEUES, PACKAGES, NOW))[1:3] == [
        ["prod.shop", "Download", "again in 14.2s", "1", "12.5s", "version changed; connection refused"],
        ["test.a-package-with-a-long-name", "Render", "parked", "1", "12.5s", "version changed; no such chart"],
    ]


def test_hooks_are_listed_with_the_time_since_they_ran() -> None:
    ran = replace(BUSY, hooks=(HookSnapshot("hooks/a.sh", (), 3, NOW.replace(minute=30), "exit 1", 2),))
    assert texts(rows_of(ListKind.HOOKS, (ran, PACKAGES[2]), NOW)) == [
        ["prod.busy", "hooks/a.sh", "3", "4m00s", "2", "exit 1"],
        ["prod.shop", "hooks/001-config.sh", "3", "never", "", "exit 1"],
        ["prod.shop", "hooks/002-later.py", "", "never", "", ""],
    ]


def test_drift_and_failing_objects_are_listed() -> None:
    assert texts(rows_of(ListKind.DRIFT, PACKAGES, NOW)) == [
        ["prod.busy", "drift", "Deployment.apps prod/busy: /spec/replicas is set by kubectl"],
        ["prod.busy", "failing", "ConfigMap prod/busy: no quota; attempt 4 failed, next at 12:07:20 UTC (in 13 s)"],
    ]


@pytest.mark.parametrize("kind", list(ListKind))
def test_every_row_has_all_cells_and_a_unique_key(kind: ListKind) -> None:
    rows = rows_of(kind, PACKAGES, NOW)
    assert rows
    assert {len(row.cells) for row in rows} == {len(COLUMNS[kind])}
    assert len({row.key for row in rows}) == len(rows)


def test_a_filter_keeps_rows_that_contain_the_text() -> None:
    rows = rows_of(ListKind.PACKAGES, PACKAGES, NOW)
    assert names(arranged(rows, "SHOP", Sorting())) == ["prod.shop", "test.shop"]
    assert names(arranged(rows, "refused", Sorting())) == ["prod.shop"]
    assert arranged(rows, "nothing like it", Sorting()) == ()


def test_sorting_puts_problems_first() -> None:
    rows = rows_of(ListKind.PACKAGES, PACKAGES, NOW)
    assert names(arranged(rows, "", Sorting(0, is_reversed=True)))[0] == "test.shop"
    by_state = names(arranged(rows, "", Sorting(1)))
    assert by_state == ["prod.shop", "test.a-package-with-a-long-name", "prod.busy", "test.shop", "ingress"]
    assert names(arranged(rows, "", Sorting(3)))[0] == "test.a-package-with-a-long-name"
    hooks = rows_of(ListKind.HOOKS, PACKAGES, NOW)
    assert [row.cells[5].text for row in arranged(hooks, "", Sorting(5))] == ["exit 1", ""]


def test_states_have_a_style() -> None:
    assert state_style("Ready") is Style.GOOD
    assert state_style("a state of a later version") is Style.WARNING


def test_control_characters_in_rows_are_escaped() -> None:
    hostile = replace(
        package(HOSTILE, message=HOSTILE),
        state=HOSTILE,
        drift=(HOSTILE,),
        failing=(HOSTILE,),
        waits_for=(HOSTILE,),
        queue=replace(package().queue, tasks=(replace(task(), name=HOSTILE, error=HOSTILE, cause=HOSTILE),)),
        hooks=(HookSnapshot(HOSTILE, (HOSTILE,), 1, NOW, HOSTILE),),
    )
    for kind in ListKind:
        for row in rows_of(kind, (hostile,), NOW):
            assert all(is_safe(cell.text) for cell in row.cells), row
