from typing import get_args

import pytest

from wharfinger.queue.events import MAIN_LANE, Effect, Enqueued, Event, Finished, Interrupted, Report


def test_a_task_is_for_the_main_lane_may_be_one_of_many_and_its_asker_is_told() -> None:
    offered = Enqueued(1, "Download", 2, 3.0)
    assert (offered.lane, offered.unique, offered.tells) == (MAIN_LANE, False, True)


def test_what_is_said_about_a_run_is_part_of_what_the_machine_is_told() -> None:
    assert set(get_args(Report)) < set(get_args(Event))
    reports: set[Report] = {Finished(1), Interrupted(1), Finished(1)}
    assert len(reports) == 2


@pytest.mark.parametrize("union", [Event, Effect])
def test_the_unions_are_closed_kinds_of_values_that_cannot_be_mistaken_for_each_other(union: object) -> None:
    kinds = get_args(union)
    assert len({kind.__name__ for kind in kinds}) == len(kinds)
    assert all(kind.__hash__ is not None and kind.__eq__ is not object.__eq__ for kind in kinds)
