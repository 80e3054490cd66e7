"""The table of a package's history."""

from dataclasses import replace

from tests.debug.support.samples import HISTORY
from wharfinger.debug.printing.history import history_lines


def test_history_has_a_line_for_each_event() -> None:
    *first, last = HISTORY.events
    events = (*first, replace(last, cause="bad\nin it"))
    assert [line.rstrip() for line in history_lines(replace(HISTORY, events=events), None)] == [
        "3 earlier events are not kept",
        "TIME                       MACHINE     EVENT                BEFORE    AFTER             CAUSE",
        "2026-11-21T04:03:00.000Z   lifecycle   wanted: shop 1.2.3             idle              requires update",
        "2026-11-21T04:03:01.250Z   queue       Load is queued       empty     main: Load runs",
        "2026-11-21T04:03:02.000Z   status      Loaded False         Pending   Failed            bad in it",
    ]


def test_a_long_state_does_not_widen_every_line() -> None:
    first, *others = HISTORY.events
    long = replace(first, before="waits for " + "x" * 1000)
    lines = history_lines(replace(HISTORY, events=(long, *others)), None)
    assert len([line for line in lines if len(line) > 200]) == 1, "nothing is cut in a pipe"


def test_an_empty_history_is_reported() -> None:
    assert history_lines(replace(HISTORY, events=(), dropped=0), None) == ["no decisions; --all shows the other events"]


def test_control_characters_in_history_are_escaped() -> None:
    (event, *_) = HISTORY.events
    (*_, line) = history_lines(replace(HISTORY, events=(replace(event, cause="\x1b[31mred"),)), None)
    assert "\x1b" not in line
