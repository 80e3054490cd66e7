"""The events of the scheduler and its effects (spec/runtime §4.7); `machine` explains them."""

from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.rules import Facts

# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A package was loaded, for the first time or again, and has to be scheduled. The last vote of its script remains valid
    until the next vote.
    """

    node: Node


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A package was removed. The user's intent about the package is stored apart from its node, because the intent may arrive
    before the NodeAdded event. So a removal does not discard it; only an IntentSet event with None does.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A run of a package, which the scheduler had requested, succeeded."""

    name: str
    run: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A run failed; it may be retried, and Completed may follow."""

    name: str
    run: int


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """A package has to run again, together with all packages that subscribe to it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class IntentSet:
    """The user's intent: True for on, False for off, and None if the user has not decided."""

    name: str
    enabled: bool | None


@dataclass(frozen=True, slots=True)
class FlagSet:
    """A global hook's flag for a Module: on, off, or None if the flag was removed. The user's intent takes precedence."""

    name: str
    enabled: bool | None


@dataclass(frozen=True, slots=True)
class ScriptVoted:
    """The ``enabled`` script of a package has ended. ``enabled`` is False if the script votes against the package, for the
    given ``reason``; True or None if it has no objection. ``error`` is set if the script gave no vote.

    ``provisional`` is True if the script ran while some installed packages were not loaded yet. It then has to run again.
    """

    name: str
    enabled: bool | None
    reason: str = ""
    error: str = ""
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class FactsChanged:
    """The facts about the platform have changed."""

    facts: Facts


@dataclass(frozen=True, slots=True)
class Paused:
    """The scheduler is paused: nothing is decided or scheduled until it is resumed."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The scheduler is resumed after a pause."""


Event: TypeAlias = (
    NodeAdded
    | NodeRemoved
    | Completed
    | Failed
    | Rescheduled
    | IntentSet
    | FlagSet
    | ScriptVoted
    | FactsChanged
    | Paused
    | Resumed
)

# --- effects ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision whether a package may be on. This effect is emitted for the first decision, and whenever the decision, its
    reason or its message changes.
    """

    name: str
    allowed: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Disable:
    """Stop a package: end its run, and stop its hooks. With ``uninstall``, also delete its objects from the cluster;
    otherwise nothing is deleted.
    """

    name: str
    reason: str
    message: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """The effect that starts a run of a package. The end of the run is reported with the same number ``run``."""

    name: str
    run: int
    reason: str


Effect: TypeAlias = Decided | Disable | Schedule
