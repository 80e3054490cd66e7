"""The status of a node of an offline run. Code reads the state, and never parses the message."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.offline.store.identity import shown
from wharfinger.runtime.fixpoint.model import Id


class State(StrEnum):
    """The state of a node."""

    PENDING = "pending"
    READY = "ready"
    SKIPPED = "skipped"
    """The node is ready because there is nothing to do, for example because it is suspended. The message is the reason."""
    FAILED = "failed"
    """The node failed by itself: a primary failure. It may be the root cause of other failures."""
    BLOCKED = "blocked"
    """The node failed because nodes that it needs failed: a derived failure."""


@dataclass(frozen=True, slots=True)
class Status:
    """A state with its message. ``blockers`` are the nodes whose failures have made this node fail, sorted; it is empty for all
    other states.
    """

    state: State
    message: str = ""
    blockers: tuple[Id, ...] = ()

    @property
    def is_ready(self) -> bool:
        """True if nodes that depend on this node can run."""
        return self.state in {State.READY, State.SKIPPED}

    @property
    def has_failed(self) -> bool:
        """True for primary and derived failures."""
        return self.state in {State.FAILED, State.BLOCKED}


PENDING: Final = Status(State.PENDING)
READY: Final = Status(State.READY)


def blocked_by(blockers: tuple[Id, ...]) -> Status:
    """Return the status of a node that failed because the nodes ``blockers`` failed (a derived failure)."""
    named = ", ".join(shown(each) for each in sorted(blockers))
    return Status(State.BLOCKED, f"waits for {named}, which failed", tuple(sorted(blockers)))
