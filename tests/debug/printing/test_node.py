"""Nodes of the scheduler as text."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.debug.support.samples import HOSTILE, MOMENT, NODES, WAITING_NODE
from wharfinger.debug.printing.node import lack_text, moment_text, node_lines
from wharfinger.formats.terminal_text import is_safe
from wharfinger.formats.text_width import width
from wharfinger.runtime.scheduler_details import LackSnapshot


@pytest.mark.parametrize(
    ("lack", "text"),
    [
        (LackSnapshot("package", "data.db", "failed"), "data.db (failed)"),
        (LackSnapshot("package", "data.db", ""), "data.db"),
        (LackSnapshot("tier", "000010", "scheduled"), "order 10 (scheduled)"),
        (LackSnapshot("tier", "000000", ""), "order 0"),
        (LackSnapshot("tier", "-5", ""), "order -5"),
        (LackSnapshot("vote", "data.db", "asked"), "the vote of its enabled script"),
        (LackSnapshot("pause", "", ""), "the end of a pause"),
        (LackSnapshot("later", "x", "y"), "later x"),
        (LackSnapshot("later", "", ""), "later"),
    ],
)
def test_the_missing_condition_of_a_parked_node_is_printed(lack: LackSnapshot, text: str) -> None:
    assert lack_text(lack) == text


def test_times_are_printed_in_utc_to_the_second() -> None:
    assert moment_text(MOMENT) == "2026-05-17 12:30:45Z"
    assert moment_text(datetime(2026, 5, 17, 1, tzinfo=timezone(timedelta(hours=2)))) == "2026-05-16 23:00:00Z"
    assert moment_text(None) == ""
    assert moment_text(datetime(1, 1, 1, tzinfo=UTC)).endswith("00:00:00Z")


def test_nodes_are_printed_as_a_table() -> None:
    assert node_lines((*NODES, WAITING_NODE), None) == [
        "NAME        ORDER   STATE    DECISION                    SINCE                  WAITS-FOR",
        "ingress     10      active   Enable DynamicallyEnabled",
        "prod.shop   999     idle     Enable EnabledByDefault",
        "prod.web    999     failed   Enable EnabledByDefault     2026-05-17 12:30:45Z   prod.shop (idle), order 10 (waiting)",
    ]
    assert node_lines((), 80) == []


@pytest.mark.parametrize("decision", ["Disable", "Forbid"])
def test_a_disabled_node_is_shown_as_off(decision: str) -> None:
    for failed in (False, True):
        _, line = node_lines((replace(NODES[0], decision=decision, failed=failed),), None)
        assert line.split()[2] == "off"


def test_a_table_fits_the_terminal_and_has_no_control_characters() -> None:
    node = replace(WAITING_NODE, reason="R", lacks=(LackSnapshot("package", HOSTILE * 5, HOSTILE),))
    lines = node_lines((node,), 100)
    assert max(width(line) for line in lines) <= 100
    assert all(is_safe(line) for line in lines)
