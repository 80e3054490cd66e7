"""The stage and the state of packages as text."""

from dataclasses import replace

from tests.debug.support.samples import BUSY, package
from wharfinger.debug.printing.stage import stage_text, state_counts, state_rank


def test_the_stage_shows_task_progress_and_waiting() -> None:
    assert stage_text(package()) == ""
    assert stage_text(replace(package(), waits_for=("renders",))) == "waits for renders"
    assert stage_text(BUSY) == "Task1 (waits for a slot: renders) 3/4"
    idle = replace(BUSY, queue=package().queue)
    assert stage_text(idle) == "reconciliation 3/4"
    assert stage_text(replace(idle, progress=None)) == "reconciliation"


def test_states_are_counted_with_the_worst_first() -> None:
    states = ("Ready", "Failed", "Ready", "Later", "Suspended", "Updating")
    found = [replace(package(f"a.p{number}"), state=state) for number, state in enumerate(states)]
    assert state_counts(found) == [("Failed", 1), ("Updating", 1), ("Later", 1), ("Suspended", 1), ("Ready", 2)]
    assert (
        state_rank("Failed") < state_rank("Degraded") < state_rank("a state of a later version") < state_rank("Ready")
    )
