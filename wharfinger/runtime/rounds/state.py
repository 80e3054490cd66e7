"""The state of the rounds of global hooks: frozen records, which only the state machine replaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from rpds import HashTrieSet

from wharfinger.queue.scope import WorkScope

NO_FLAGS: Final[Mapping[str, bool]] = MappingProxyType({})


class Phase(Enum):
    """The phase of a round; the string value of each describes the phase."""

    IDLE = "no round is under way"
    RUNNING = "the run of the Module global is under way or pending; the other packages run after it"
    SETTLING = "the other packages run, and the afterAll hooks have not begun yet"
    ENDING = "the afterAll hooks run, or wait for a retry"


@dataclass(frozen=True, slots=True)
class Turn:
    """One execution of the afterAll hooks: it begins when all packages are idle, and ends when all of the hooks have
    succeeded.
    """

    scope: WorkScope
    """The scope of the task that runs the afterAll hooks. It also identifies this execution of the hooks."""
    made: str
    """The checksum, before this run of the afterAll hooks, of the values and switches that hooks can change."""
    at_work: bool = False
    """True while the hooks run; False while they wait, for example for their next attempt."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """The state of the rounds of global hooks. It includes the switches of Modules that are in effect, and the checksum of the
    global values with which packages were last run.
    """

    phase: Phase = Phase.IDLE
    turn: Turn | None = None
    """The execution of the afterAll hooks. If the Module ``global`` has to run again, this execution is superseded, and the run
    of ``global`` waits for its end.
    """
    on: frozenset[str] = frozenset()
    """The packages that were on when the round began."""
    turned: "HashTrieSet[str]" = field(default_factory=HashTrieSet)
    """The packages that were switched on or off since the round began."""
    flags: Mapping[str, bool] = field(default_factory=lambda: NO_FLAGS)
    """The switches in effect: for each named Module, whether it is on. They are the switches that the global hooks have set.
    Until these are known, the switches keep all installed Modules on.
    """
    flags_known: bool = False
    """True once the switches that the global hooks have set are known; then ``flags`` contains these."""
    seen: str = ""
    """The checksum of the global values with which packages were last run."""
    again: int = 0
    """The number of consecutive rounds that afterAll hooks have caused."""

    def is_superseded(self, scope: WorkScope) -> bool:
        """Return whether the turn with this scope is no longer the current turn, because another round has begun or the turn is
        over.
        """
        return self.phase is not Phase.ENDING or self.turn is None or self.turn.scope is not scope
