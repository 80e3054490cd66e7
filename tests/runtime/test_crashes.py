"""`kill -9` at every step of the journal: install, upgrade, change of settings, removal; then a daemon that knows what is left.

Invariants, of every moment of death:

* what the next daemon comes to is what an undisturbed one comes to: every object of the namespace, the release's revisions, the
  recorded state, the status, what is deployed; nothing is left in the journal, no process and no half of a file. (In the middle
  of applying, the revision that was cut short stays on record as failed, and the one that does its work has the next number.)
* a step that the journal had as complete is not taken again;
* each hook ran as often as undisturbed, but for the one whose completion was not on record: that one ran once more;
* a hook that was in flight is dead, and what it had started, before the next daemon is ready, and so before it runs again.

A moment is before or after one write of operation steps (``before 3``), after something that the package wants was written in
the cluster (``answered 3``), or in the middle of a run of a hook (``during 3``). The environment variable WHARFINGER_CRASH_ROUNDS
says how often the daemon is killed at each moment.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import trio

from tests.runtime.support.crash_outcome import differences, interrupted, without_history
from tests.runtime.support.crash_trials import Death, Ground, Phase, Result
from tests.runtime.support.daemon_forks import DaemonForks, open_daemon_forks
from tests.scale import FULL

pytestmark = pytest.mark.unmeasured

WRITES = {Phase.INSTALL: 16, Phase.UPGRADE: 16, Phase.SETTINGS: 11, Phase.REMOVAL: 11}
"""Writes of operation steps in an undisturbed run; `test_there_are_no_other_moments` holds all three tables."""
REQUESTS = {Phase.INSTALL: 14, Phase.UPGRADE: 12, Phase.SETTINGS: 8, Phase.REMOVAL: 8}
"""What the package writes in the cluster meanwhile."""
KILLS = int(os.environ.get("WHARFINGER_CRASH_ROUNDS", "1"))
"""How often a daemon is killed at each moment, one time after the other."""
ROUNDS = ("beforeHelm", "afterHelm", "afterHelm")
HOOKS = {
    Phase.INSTALL: ("onStartup", *ROUNDS),
    Phase.UPGRADE: ("onStartup", *ROUNDS),
    Phase.SETTINGS: ROUNDS,
    Phase.REMOVAL: ("beforeDeleteHelm", "afterDeleteHelm"),
}
"""Which hooks run meanwhile."""
MOMENTS = [
    pytest.param(phase, f"{moment} {number}", id=f"{phase}-{moment}-{number}")
    for phase in Phase
    for moment, count in (
        ("before", WRITES[phase]),
        ("after", WRITES[phase]),
        ("during", len(HOOKS[phase])),
        ("answered", REQUESTS[phase]),
    )
    for number in range(1, count + 1)
]
SAMPLE = (
    "install-during-1",  # onStartup
    "upgrade-before-16",  # everything done, and not said
    "upgrade-during-4",  # afterHelm of the second round
    "settings-answered-6",  # after the second apply, before its record
    "removal-during-2",  # afterDeleteHelm
)


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Where trials are made, and what each phase comes to when nobody dies."""

    ground: Ground
    results: dict[Phase, Result]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    async def make(forks: DaemonForks) -> Undisturbed:
        ground = Ground(tmp_path_factory.mktemp("crashes"), forks)
        results = {Phase.INSTALL: await ground.prepare()}
        for phase in (Phase.UPGRADE, Phase.SETTINGS, Phase.REMOVAL):
            results[phase] = await ground.attempt(phase)
        return Undisturbed(ground, results)

    with open_daemon_forks() as forks:
        yield trio.run(make, forks)


@pytest.mark.slow
def test_there_are_no_other_moments(undisturbed: Undisturbed) -> None:
    assert {phase: result.writes for phase, result in undisturbed.results.items()} == WRITES
    assert {phase: result.requests for phase, result in undisturbed.results.items()} == REQUESTS
    assert {phase: result.notes for phase, result in undisturbed.results.items()} == HOOKS
    assert set(SAMPLE) <= {one.id for one in MOMENTS}


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "at"), [one for one in MOMENTS if FULL or one.id in SAMPLE])
async def test_killed(undisturbed: Undisturbed, phase: Phase, at: str) -> None:
    for _ in range(KILLS):
        await killed(undisturbed, phase, at)


async def killed(undisturbed: Undisturbed, phase: Phase, at: str) -> None:
    alone = undisturbed.results[phase]
    crashed = await undisturbed.ground.attempt(phase, at)
    death = crashed.death
    assert death is not None
    assert death.complete() & set(crashed.started) == set()
    assert crashed.notes == notes_after(death, alone.notes, at)
    found, wanted = crashed.outcome, alone.outcome
    if at.startswith("answered") and interrupted(found):
        found, wanted = without_history(found), without_history(wanted)
    assert "\n".join(differences(found, wanted)) == ""


def notes_after(death: Death, alone: tuple[str, ...], at: str) -> tuple[str, ...]:
    """Which hooks are to have run: those that had, and then those that had not, or whose completion was not on record.

    After a write nothing has happened yet of what it begins; at all other moments what is in flight has been noted.
    """
    again = death.hook_in_flight() and not at.startswith("after")
    return death.notes + alone[len(death.notes) - again :]
