"""The state of rounds: it is frozen and small, and knows whether a turn (a run of the afterAll hooks) is superseded."""

import dataclasses

import pytest

from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.rounds.state import Phase, Rounds, Turn


@pytest.mark.parametrize("record", [Rounds(), Turn(WorkScope("afterAll hooks"), "")])
def test_the_records_are_frozen_and_small(record: Rounds | Turn) -> None:
    assert len(dataclasses.fields(record)) <= 8
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, dataclasses.fields(record)[0].name, None)


@pytest.mark.parametrize("phase", Phase)
def test_a_turn_is_superseded_unless_it_ends_the_current_round(phase: Phase) -> None:
    scope, other = WorkScope("afterAll hooks"), WorkScope("afterAll hooks")
    rounds = Rounds(phase, Turn(scope, ""))
    assert rounds.is_superseded(scope) is (phase is not Phase.ENDING)
    assert rounds.is_superseded(other)
    assert Rounds(phase).is_superseded(scope)
