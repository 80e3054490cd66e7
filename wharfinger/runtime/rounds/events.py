"""The events of rounds of global hooks, and the effects of the state machine; :mod:`~wharfinger.runtime.rounds.machine`
explains both.

A *switch* is the request of a global hook that a Module is on or off. Events contain the switches as small mappings. They contain
only the checksums of values, and not the values themselves, because checksums are enough to compare values.
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

    ``installed`` are the Modules that an earlier process installed, and whose load in this process has neither succeeded nor
    failed yet.
    """

    installed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageTurned:
    """The scheduler decided that a package is on or off; a package that is gone counts as off."""

    name: str
    on: bool


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The Module ``global`` is about to run. ``recorded`` is the checksum of the global values in the Module's record; empty if
    there is none.
    """

    recorded: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The beforeAll hooks are done. The event has the checksum of the global values, and the switches that the hooks have set."""

    values: str
    flags: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The answer to Survey: the packages that are on now. ``purpose`` is the purpose of the Survey."""

    on: frozenset[str]
    purpose: "Purpose"


@dataclass(frozen=True, slots=True)
class HookRan:
    """A global hook ran, so the Modules that it switches on or off (``flags``) may have changed. ``active`` is True if the
    Module ``global`` is on, and is not being loaded, suspended or removed.
    """

    active: bool
    flags: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class FlagsRead:
    """The record of the Module ``global`` was read. ``flags`` are the switches that global hooks had set in an earlier process:
    the Modules that they turned on or off.
    """

    flags: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Looked:
    """The state of the Module ``global`` and of the packages, at a check of the round. A check follows every event, once no
    effects are waiting.

    ``active`` is True if the Module ``global`` is on, and is not being loaded, suspended or removed; ``started`` if its hooks
    are started; ``recorded`` if its record was read; ``idle`` if no package runs or will run by itself, and each installed
    package was loaded or failed to load.
    """

    active: bool
    started: bool
    recorded: bool
    idle: bool


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn of the afterAll hooks can be enqueued. ``scope`` is the scope of its tasks. ``made`` is the checksum of everything
    that hooks can change.
    """

    scope: WorkScope
    made: str


@dataclass(frozen=True, slots=True)
class TurnAtWork:
    """The afterAll hooks of this turn begin to run."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """An attempt of this turn failed; the next attempt waits for its backoff."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """All afterAll hooks of this turn have succeeded; ``made`` is the checksum of everything that hooks can change."""

    scope: WorkScope
    made: str


@dataclass(frozen=True, slots=True)
class ModuleGone:
    """The Module ``global`` is gone, so there are no global hooks any more."""


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
    """The reason for a Survey, which asks the scheduler which packages are on; the value says what happens next."""

    RUN_OTHERS = "the other packages run, with the values of the previous round"
    RUN_ALL = "all other packages run again, because the global values have changed"
    BEGIN = "another round begins, because packages were switched on or off"


class Simple(Enum):
    """The effects without parameters; the string value of each describes the action."""

    READ_FLAGS = "read the enabled flags that global hooks set in an earlier process"
    LOOK = "check the round again"
    START_TURN = "begin a turn of the afterAll hooks"


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
    """Record that the package has to be applied again, because the global values have changed."""

    name: str


@dataclass(frozen=True, slots=True)
class EnqueueTurn:
    """Put the task of the afterAll hooks into the main lane of the Module ``global``. ``values`` is the checksum of the global
    values with which all packages were run.
    """

    scope: WorkScope
    values: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Interrupt the run of the afterAll hooks that has this scope."""

    scope: WorkScope
    cause: str


@dataclass(frozen=True, slots=True)
class Log:
    """Log a line about the rounds."""

    text: str


@dataclass(frozen=True, slots=True)
class ReportLoop:
    """Report, with this message for the Module's status, that afterAll hooks change the values again and again."""

    message: str


Effect: TypeAlias = Simple | Tell | Survey | RunAnew | EnqueueTurn | Cancel | Log | ReportLoop
