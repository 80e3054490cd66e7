"""Statistics of a daemon as text."""

from dataclasses import replace

from tests.debug.support.samples import HOSTILE, STATISTICS
from wharfinger.debug.printing.statistics import statistics_lines
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.daemon_details import PoolSnapshot

TABLES = """\
WHAT          NOW                                                                 SINCE THE START
tasks         12 in 3 queues: 2 running, 4 backing off, 1 parked                  5210 done, 17 dropped, 40 failed, 0 bugs
monitors      12, 11 of them listed: 14 watches, 340 objects, 2 changes waiting   900 events, 1 changes dropped
schedules     3 crontabs, next at 2026-05-17T12:30:45.123456Z                     17 ticks
definitions   waiting for: ingress, metrics
objects       Degraded, 2 errors: 3 pending, 1 refreshing, 1 failing, 2 slow      7 pruned, 1 prunes failed
store         2 locks held, 1 temporary files, 4 packages not deployed yet

LIMIT     SLOTS   IN USE   WAITING
work      16      6        3
renders   2       2        3
api       32      1        0

WORKERS   ALIVE   REQUESTS   REPLACED
jq        2       1200       1
rules     1       30         0
"""


def test_statistics_are_printed_as_three_tables() -> None:
    assert "".join(f"{line}\n" for line in statistics_lines(STATISTICS)) == TABLES


def test_missing_statistics_are_omitted() -> None:
    bare = replace(
        STATISTICS,
        trying_crds=(),
        schedules=replace(STATISTICS.schedules, next_due=None),
        filters=None,
        rules=None,
        store=None,
    )
    text = "\n".join(statistics_lines(bare))
    assert "WORKERS" not in text
    assert "store" not in text
    assert "next at" not in text
    assert "definitions   none awaited" in text


def test_control_characters_in_names_are_escaped() -> None:
    lines = statistics_lines(replace(STATISTICS, trying_crds=(HOSTILE,)))
    assert is_safe("\n".join(lines), allow="\n")


def test_the_renderer_of_charts_is_shown() -> None:
    found = replace(STATISTICS, charts=PoolSnapshot(2, 70, 3), renderer="chart engine, helm v4.3.1")
    lines = [line.split() for line in statistics_lines(found)]
    assert ["charts", "2", "70", "3"] in lines
    assert ["charts", "rendered", "by", "chart", "engine,", "helm", "v4.3.1"] in lines


def test_workers_of_python_hooks_have_a_row() -> None:
    lines = statistics_lines(replace(STATISTICS, warm=PoolSnapshot(4, 90, 1)))
    assert lines[-1].split() == ["python", "hooks", "4", "90", "1"]
