"""The explanations of `wharfinger why`, printed as text."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given

from tests.debug.support.samples import HOSTILE, MOMENT, WHY, WHY_READY, explanations
from wharfinger.debug.printing.explanation import explanation_lines, since_text
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.scheduler_details import ExplanationSnapshot

LATER = MOMENT + timedelta(minutes=4, seconds=5)
SUMMER = datetime(2026, 5, 17, 14, tzinfo=timezone(timedelta(hours=2)))


def test_an_explanation_has_a_line_for_each_cause_and_one_remedy() -> None:
    assert explanation_lines(WHY, LATER) == [
        "prod.shop  waits for ingress  since 12:30:45 UTC (4m05s)",
        "ingress    fails: PackageHookFailed: hooks/a.sh: exit status 3; attempt 4",
        "remedy: look at the hook's lines in the daemon's log",
        "also: prod.shop needs metrics",
    ]


def test_a_ready_package_is_reported_as_not_blocked() -> None:
    assert explanation_lines(WHY_READY, LATER) == ["ingress: ready; nothing blocks it"]
    left = replace(WHY_READY, also=("it is in maintenance",))
    assert explanation_lines(left, LATER) == ["ingress: ready; nothing blocks it", "also: it is in maintenance"]


def test_wide_names_are_aligned() -> None:
    causes = (replace(WHY.causes[0], subject="漢字", since=None), replace(WHY.causes[1], subject="a"))
    lines = explanation_lines(replace(WHY, causes=causes), LATER)
    assert [line[:7] for line in lines[:2]] == ["漢字  wai", "a     f"]


@pytest.mark.parametrize(
    ("since", "now", "text"),
    [
        (MOMENT, MOMENT, "12:30:45 UTC (0ms)"),
        (MOMENT, MOMENT + timedelta(days=3), "2026-05-17 12:30:45 UTC (3d00h)"),
        (SUMMER, datetime(2026, 5, 17, 13, tzinfo=UTC), "12:00:00 UTC (1h00m)"),
        (LATER, MOMENT, "12:34:50 UTC (0ms)"),
    ],
    ids=["now", "days ago", "another zone", "a clock that went back"],
)
def test_the_age_of_a_cause_is_printed(since: datetime, now: datetime, text: str) -> None:
    assert since_text(since, now) == text


@given(explanations())
def test_control_characters_in_explanations_are_escaped(explanation: ExplanationSnapshot) -> None:
    told = replace(explanation, remedy=HOSTILE, also=(HOSTILE,))
    lines = explanation_lines(told, LATER)
    assert all(is_safe(line) for line in lines)
    causes = 0 if told.ready else len(told.causes)
    assert [line.partition(" ")[0] for line in lines[causes:]] == (
        [f"{lines[0].partition(' ')[0]}", "also:"] if told.ready else ["remedy:", "also:"]
    )
