"""A daemon is killed with `kill -9` at every step of an install, an upgrade, a change of settings and a removal. Then another
daemon continues.

These invariants hold for every moment of death:

* The next daemon reaches the same result as a daemon that is not killed. This includes every object of the namespace, the
  release's revisions, the recorded state, the status, and the deployed packages. The journal is empty, and no process and no
  partial file is left. (If a daemon dies while it applies, the interrupted revision stays recorded as failed, and the next
  revision has the next number.)
* A step that is complete in the journal is not repeated.
* Each hook runs as often as without a kill. The exception is a hook that had begun, and whose completion was not recorded: it
  runs once more.
* A hook that was running is dead, with its descendants, before the next daemon is ready, and so before the hook runs again.

A moment is before or after one write of operation steps to the journal (``before 3``, ``after 3``), after an object of the
package was written to the cluster (``answered 3``), or in the middle of a run of a hook (``during 3``). The environment
variable WHARFINGER_CRASH_ROUNDS says how often the daemon is killed at each moment.
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
"""The number of writes of operation steps to the journal in an undisturbed phase. `test_the_list_of_kill_moments_is_complete`
checks it.
"""
REQUESTS = {Phase.INSTALL: 14, Phase.UPGRADE: 12, Phase.SETTINGS: 8, Phase.REMOVAL: 8}
"""The number of writes to the cluster for the package in an undisturbed phase."""
KILLS = int(os.environ.get("WHARFINGER_CRASH_ROUNDS", "1"))
"""The number of times that a daemon is killed at each moment."""
ROUNDS = ("beforeHelm", "afterHelm", "afterHelm")
HOOKS = {
    Phase.INSTALL: ("onStartup", *ROUNDS),
    Phase.UPGRADE: ("onStartup", *ROUNDS),
    Phase.SETTINGS: ROUNDS,
    Phase.REMOVAL: ("beforeDeleteHelm", "afterDeleteHelm"),
}
"""The hooks that run in an undisturbed phase."""
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
    "install-during-1",  # during onStartup
    "upgrade-before-16",  # everything is done, but not reported yet
    "upgrade-during-4",  # during afterHelm of the second round
    "settings-answered-6",  # after the second apply, before its record
    "removal-during-2",  # during afterDeleteHelm
)


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """The folder of the trials, and the result of each phase without a kill."""

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
def test_the_list_of_kill_moments_is_complete(undisturbed: Undisturbed) -> None:
    assert {phase: result.writes for phase, result in undisturbed.results.items()} == WRITES
    assert {phase: result.requests for phase, result in undisturbed.results.items()} == REQUESTS
    assert {phase: result.notes for phase, result in undisturbed.results.items()} == HOOKS
    assert set(SAMPLE) <= {one.id for one in MOMENTS}


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "at"), [one for one in MOMENTS if FULL or one.id in SAMPLE])
async def test_a_daemon_killed_at_any_step_is_recovered_by_the_next_one(
    undisturbed: Undisturbed, phase: Phase, at: str
) -> None:
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
    """Return the hooks that must have run, in order: those that had begun when the daemon was killed, and then the remaining
    ones.

    A hook that had begun, and whose completion was not recorded, runs again. If the daemon is killed right after the write that
    precedes a hook, the hook has not begun yet.
    """
    again = death.hook_in_flight() and not at.startswith("after")
    return death.notes + alone[len(death.notes) - again :]
