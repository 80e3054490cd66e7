"""A rule of faults: the requests that it selects, which of those it hits, and the fault.

Of the requests that fit its selection, a rule lets ``skip`` pass, then takes each ``every``-th, ``times`` of them, each with
``chance``.
"""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READS: Final = frozenset({"get", "list"})
WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Latency:
    """A delay before the request is processed."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class DropBefore:
    """The connection is closed without an answer, and nothing was done."""


@dataclass(frozen=True, slots=True)
class DropAfter:
    """The request is done, and the connection is closed without an answer."""


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A Status is answered, and nothing was done. ``retry_after_s`` 0: no such header."""

    code: int
    reason: str
    message: str
    retry_after_s: int = 0


@dataclass(frozen=True, slots=True)
class CutWatch:
    """A watch breaks off after so many events, or so long, whichever comes first; None: not by that."""

    events: int | None
    after_s: float | None


@dataclass(frozen=True, slots=True)
class StaleRead:
    """A get or list is answered from so many revisions ago, as far as they are known."""

    back: int


@dataclass(frozen=True, slots=True)
class SlowList:
    """The answer of a list comes in pieces of 16 KiB with a pause before each."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition from ``start_s`` on (seconds since the control plane began), for ``length_s``, again each ``period_s``
    (0: once).

    Requests hang until it is over, and are then dropped and undone; open watches end when it begins.
    """

    start_s: float
    length_s: float
    period_s: float

    def until(self, now_s: float) -> float | None:
        """Return when the present partition ends; None if there is none."""
        began = self._began(now_s)
        return began + self.length_s if began is not None and now_s < began + self.length_s else None

    def next(self, now_s: float) -> float | None:
        """Return when the next one begins; None if none does."""
        if now_s < self.start_s:
            return self.start_s
        began = self._began(now_s)
        return began + self.period_s if began is not None and self.period_s else None

    def _began(self, now_s: float) -> float | None:
        if now_s < self.start_s:
            return None
        rounds = (now_s - self.start_s) // self.period_s if self.period_s else 0
        return self.start_s + rounds * self.period_s


Fault: TypeAlias = Latency | DropBefore | DropAfter | ErrorAnswer | CutWatch | StaleRead | SlowList | Partition


@dataclass(frozen=True, slots=True)
class Call:
    """A request as rules see it: the verb of RBAC, ``plural`` or ``plural.group``, the kind's name, and who sent it."""

    verb: str
    resource: str
    kind: str
    namespace: str
    name: str
    agent: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The requests to which a rule applies. The patterns are shell patterns, matched against the fields of a :class:`Call`."""

    verbs: frozenset[str] = frozenset()
    """Empty: all that the fault can hit."""
    kind: str = "*"
    namespace: str = "*"
    name: str = "*"
    agent: str = "*"

    def fits(self, call: Call) -> bool:
        """Return whether a request is selected."""
        return (
            (not self.verbs or call.verb in self.verbs)
            and (self.kind == "*" or _fits(self.kind, call.resource) or _fits(self.kind, call.kind))
            and _fits(self.namespace, call.namespace)
            and _fits(self.name, call.name)
            and _fits(self.agent, call.agent)
        )


def _fits(pattern: str, text: str) -> bool:
    return pattern == "*" or fnmatchcase(text, pattern)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    fault: Fault
    selection: Selection = field(default_factory=Selection)
    skip: int = 0
    every: int = 1
    times: int | None = None
    chance: float = 1.0
    name: str = ""
    """The name in logs and metrics."""
