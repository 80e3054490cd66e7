"""`kill -9` at every step of the journal: install, upgrade, change of settings, removal; then a daemon that knows what is left.

Invariants, of every moment of death:

* what the next daemon comes to is what an undisturbed one comes to: every object of the namespace, the release's revisions, the
  recorded state, the status, what is deployed; nothing is left in the journal, no process and no half of a file;
* a step that the journal had as complete is not taken again;
* each hook ran as often as undisturbed, but for the one whose completion was not on record: that one ran once more;
* a hook that was in flight is dead, and what it had started, before the next daemon is ready, and so before it runs again.

A moment is before or after one write of operation steps (``before 3``), or in the middle of a run of a hook (``during 3``).
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from tests.runtime.crash_outcome import differences
from tests.runtime.crash_trials import Death, Ground, Phase, Result
from tests.scale import FULL

WRITES = {Phase.INSTALL: 16, Phase.UPGRADE: 16, Phase.SETTINGS: 11, Phase.REMOVAL: 11}
"""Writes of operation steps in an undisturbed run; `test_there_are_no_other_moments` holds it."""
ROUNDS = ("beforeHelm", "afterHelm", "afterHelm")
HOOKS = {
    Phase.INSTALL: ("onStartup", *ROUNDS),
    Phase.UPGRADE: ("onStartup", *ROUNDS),
    Phase.SETTINGS: ROUNDS,
    Phase.REMOVAL: ("beforeDeleteHelm", "afterDeleteHelm"),
}
"""Hooks in an undisturbed run."""
MOMENTS = [
    pytest.param(phase, f"{moment} {number}", id=f"{phase}-{moment}-{number}")
    for phase in Phase
    for moment, count in (("before", WRITES[phase]), ("after", WRITES[phase]), ("during", len(HOOKS[phase])))
    for number in range(1, count + 1)
]
SAMPLE_STEP = 16


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Where trials are made, and what each phase comes to when nobody dies."""

    ground: Ground
    results: dict[Phase, Result]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder: Path = tmp_path_factory.mktemp("crashes")

    async def make() -> Undisturbed:
        ground = Ground(folder)
        results = {Phase.INSTALL: await ground.prepare()}
        for phase in (Phase.UPGRADE, Phase.SETTINGS, Phase.REMOVAL):
            results[phase] = await ground.attempt(phase)
        return Undisturbed(ground, results)

    return trio.run(make)


def test_there_are_no_other_moments(undisturbed: Undisturbed) -> None:
    assert {phase: result.writes for phase, result in undisturbed.results.items()} == WRITES
    assert {phase: result.notes for phase, result in undisturbed.results.items()} == HOOKS


@pytest.mark.parametrize(("phase", "at"), MOMENTS[:: 1 if FULL else SAMPLE_STEP])
async def test_killed(undisturbed: Undisturbed, phase: Phase, at: str) -> None:
    alone = undisturbed.results[phase]
    crashed = await undisturbed.ground.attempt(phase, at)
    death = crashed.death
    assert death is not None
    assert death.complete() & set(crashed.started) == set()
    assert crashed.notes == notes_after(death, alone.notes, at)
    assert "\n".join(differences(crashed.outcome, alone.outcome)) == ""


def notes_after(death: Death, alone: tuple[str, ...], at: str) -> tuple[str, ...]:
    """Which hooks are to have run: those that had, and then those that had not, or whose completion was not on record.

    After a write nothing has happened yet; before one, what it is to record has.
    """
    unrecorded = not at.startswith("after") and (death.hook_in_flight() or at.startswith("during"))
    return death.notes + alone[len(death.notes) - unrecorded :]
