"""The events of rounds of global hooks, and the effects of the machine; :mod:`~wharfinger.runtime.rounds.machine` explains both.

Values and switches are compared by checksums and small mappings, so an event never contains the values themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.scheduler.events import Event as SchedulerEvent

# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModuleExpected:
    """There are global hooks, which this process has not read yet.

    ``installed`` are the Modules of an earlier process whose load in this process has neither succeeded nor failed yet.
    """

    installed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageTurned:
    """A package was decided to be on or off, or is gone."""

    name: str
    on: bool


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The Module ``global`` is about to run; ``recorded`` is the checksum of the values of an earlier process, or empty."""

    recorded: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The beforeAll hooks are done: the checksum of the global values, and the switches that the hooks want."""

    values: str
    flags: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The packages that are on now; ``purpose`` is the reason for which the machine asked."""

    on: frozenset[str]
    purpose: "Purpose"


@dataclass(frozen=True, slots=True)
class HookRan:
    """A global hook ran, so its switches may have changed; ``active`` as in Looked."""

    active: bool
    flags: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class FlagsRead:
    """The switches of an earlier process were read from the Module's record."""

    flags: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Looked:
    """Something has happened, and no package has waiting work.

    ``active``: the Module is on, and is not being loaded, suspended or removed. ``started``: its hooks are started. ``recorded``:
    its record was read. ``idle``: no package runs or will run by itself, and each installed one was loaded or failed to load.
    """

    active: bool
    started: bool
    recorded: bool
    idle: bool


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The turn of the afterAll hooks has its scope; ``made`` is the checksum of everything that hooks can change."""

    scope: WorkScope
    made: str


@dataclass(frozen=True, slots=True)
class TurnAtWork:
    """The afterAll hooks of this turn begin to run."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """An attempt of this turn failed; the next one waits."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """All afterAll hooks of this turn have succeeded; ``made`` is the checksum of everything that hooks can change."""

    scope: WorkScope
    made: str


@dataclass(frozen=True, slots=True)
class ModuleGone:
    """There are no global hooks any more."""


Event: TypeAlias = (
    ModuleExpected
    | PackageTurned
    | RunBegan
    | RunEnded
    | Surveyed
    | HookRan
    | FlagsRead
    | Looked
    | TurnStarted
    | TurnAtWork
    | TurnFailed
    | TurnEnded
    | ModuleGone
)

# --- effects ---------------------------------------------------------------------------------------------------------------


class Purpose(Enum):
    """The reason for asking which packages are on."""

    RUN_OTHERS = "the other packages run, with the values of the previous round"
    RUN_ALL = "all other packages run again, because the global values have changed"
    BEGIN = "another round begins, because other packages are on"


class Simple(Enum):
    """The effects without a parameter; each value says what is done."""

    READ_FLAGS = "read the switches of an earlier process"
    LOOK = "consider the round again"
    START_TURN = "give the afterAll hooks a turn"


@dataclass(frozen=True, slots=True)
class Tell:
    """Pass an event to the scheduler."""

    event: SchedulerEvent


@dataclass(frozen=True, slots=True)
class Survey:
    """Ask the scheduler which packages are on, once it has processed all earlier events."""

    purpose: Purpose


@dataclass(frozen=True, slots=True)
class RunAnew:
    """Record that a package has to be applied anew, because an earlier process applied it with other values."""

    name: str


@dataclass(frozen=True, slots=True)
class EnqueueTurn:
    """Put the afterAll hooks into the Module's main lane; ``values`` is the checksum of the values that all packages were run
    with.
    """

    scope: WorkScope
    values: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Interrupt the afterAll hooks with this scope."""

    scope: WorkScope
    cause: str


@dataclass(frozen=True, slots=True)
class Log:
    """Log a line about the rounds."""

    text: str


@dataclass(frozen=True, slots=True)
class ReportLoop:
    """Report that afterAll hooks change the values without end; this is the message for the Module's status."""

    message: str


Effect: TypeAlias = Simple | Tell | Survey | RunAnew | EnqueueTurn | Cancel | Log | ReportLoop
