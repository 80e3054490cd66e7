from typing import get_args

import pytest

from wharfinger.queue.events import MAIN_LANE, Effect, Enqueued, Event, Finished, Interrupted, Report


def test_an_offered_task_has_defaults() -> None:
    offered = Enqueued(1, "Download", 2, 3.0)
    assert (offered.lane, offered.unique, offered.notifies) == (MAIN_LANE, False, True)


def test_reports_of_runs_are_events() -> None:
    assert set(get_args(Report)) < set(get_args(Event))
    reports: set[Report] = {Finished(1), Interrupted(1), Finished(1)}
    assert len(reports) == 2


@pytest.mark.parametrize("union", [Event, Effect])
def test_members_of_the_unions_are_distinct_and_compared_by_value(union: object) -> None:
    kinds = get_args(union)
    assert len({kind.__name__ for kind in kinds}) == len(kinds)
    assert all(kind.__hash__ is not None and kind.__eq__ is not object.__eq__ for kind in kinds)
