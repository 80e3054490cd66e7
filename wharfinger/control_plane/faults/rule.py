"""A fault rule: the requests that it selects, which of these it hits, and the fault.

A rule ignores the first ``skip`` requests that it selects. After these, it hits the first selected request and then every
``every``-th one, each with the probability ``chance``, and at most ``times`` requests in total. A partition has no such limits.
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
    """A connection that is closed without an answer, before the request is processed."""


@dataclass(frozen=True, slots=True)
class DropAfter:
    """A connection that is closed without an answer, after the request was processed."""


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A Status in place of an answer: the request is not processed. If ``retry_after_s`` is 0, there is no Retry-After header."""

    code: int
    reason: str
    message: str
    retry_after_s: int = 0


@dataclass(frozen=True, slots=True)
class CutWatch:
    """A watch that ends after ``events`` events or ``after_s`` seconds, whichever comes first; None means no limit of this
    type.
    """

    events: int | None
    after_s: float | None


@dataclass(frozen=True, slots=True)
class StaleRead:
    """A fault: the answer to a get or list shows the state of ``back`` revisions ago. If that state is not known any more, the
    answer shows the oldest state that is known.
    """

    back: int


@dataclass(frozen=True, slots=True)
class SlowList:
    """A list whose answer comes in pieces of 16 KiB, with a pause of ``delay_s`` before each."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Partition:
    """A network partition that begins at ``start_s`` (seconds since the control plane started) and lasts ``length_s`` seconds.

    The partition recurs every ``period_s`` seconds; with 0 it does not recur. Requests hang until the partition is over; then
    they are dropped without being processed. Open watches end when the partition begins.
    """

    start_s: float
    length_s: float
    period_s: float

    def until(self, now_s: float) -> float | None:
        """Return the time at which the current partition ends, or None if there is none at ``now_s``."""
        began = self._began(now_s)
        return began + self.length_s if began is not None and now_s < began + self.length_s else None

    def next(self, now_s: float) -> float | None:
        """Return the time at which the next partition begins, or None if no partition follows."""
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
    """The attributes by which rules select a request: its RBAC verb, its resource (``plural`` or ``plural.group``), its kind, the
    namespace and name of its object, and the client's User-Agent (``agent``)."""

    verb: str
    resource: str
    kind: str
    namespace: str
    name: str
    agent: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The requests that a rule selects: shell patterns for the fields of a :class:`Call`; ``kind`` may match kind or resource."""

    verbs: frozenset[str] = frozenset()
    """The selected verbs; empty selects all verbs."""
    kind: str = "*"
    namespace: str = "*"
    name: str = "*"
    agent: str = "*"

    def fits(self, call: Call) -> bool:
        """Return whether this selection selects a request."""
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
    """A rule; ``skip``, ``every``, ``times`` (None: no limit) and ``chance`` are described in the docstring of this module."""

    fault: Fault
    selection: Selection = field(default_factory=Selection)
    skip: int = 0
    every: int = 1
    times: int | None = None
    chance: float = 1.0
    name: str = ""
    """The name of this rule in logs and metrics."""
