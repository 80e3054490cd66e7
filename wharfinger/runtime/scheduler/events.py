"""The events of the scheduler and its orders (spec/runtime §4.7); `machine` explains them."""

from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.rules import Facts

# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A package was loaded, also again: it is to be scheduled. The last vote of its script stands until the next one."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A package is gone. An intent about it stays until IntentSet(None): it may also come before its node."""

    name: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A run succeeded."""

    name: str
    run: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A run failed; it may be tried again and be Completed."""

    name: str
    run: int


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """A package is to run again, and with it those that subscribed to it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class IntentSet:
    """The user's intent: on, off, or nothing in particular."""

    name: str
    enabled: bool | None


@dataclass(frozen=True, slots=True)
class FlagSet:
    """A global hook's flag for a Module: on, off, or None for no flag any more. The user's intent counts more."""

    name: str
    enabled: bool | None


@dataclass(frozen=True, slots=True)
class ScriptVoted:
    """An enabled script ended: False with a reason, True or None without an objection, or an error.

    ``provisional``: it was asked while packages that it may look at were not loaded yet, and is to be asked again.
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
    """The end of a pause."""


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
    """A package is allowed to be on, or not. Emitted at first, and whenever its verdict, reason or message changes."""

    name: str
    allowed: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Disable:
    """Stop a package: end its run and its hooks. ``uninstall``: take it out of the cluster too; otherwise nothing is deleted."""

    name: str
    reason: str
    message: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """Run a package, and report the run by its number."""

    name: str
    run: int
    reason: str


Effect: TypeAlias = Decided | Disable | Schedule
