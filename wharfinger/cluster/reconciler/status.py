"""The status of an object with one reconciler, and with all of them.

========== ============================================================ =================================
Pending     the row is new or changed, and was not attempted since       → Done, Error
Refreshing  the object was Done, and is checked or applied again         → Done, Error
Done        the object is as its row says                                → Refreshing; Pending by a write
Error       the last attempt failed, and is retried                      → Done, Error; Pending by a write
========== ============================================================ =================================

Statuses are never stored in rows. Cilium's statedb stores them there, so each outcome is a write that wakes all readers and
collides with the writes of other reconcilers. Here each reconciler keeps its own statuses, and a :class:`StatusSet` is assembled
on request.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, TypeVar

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, find_int, find_str
from wharfinger.kube.times import format_exact_time

K = TypeVar("K", bound=Hashable)


class Kind(StrEnum):
    """The kind of a status, such as Pending or Done."""

    PENDING = "Pending"
    REFRESHING = "Refreshing"
    DONE = "Done"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Status:
    """The status of one object with one reconciler.

    Each Pending and each Refreshing has a new ``id``, so that two of them can be distinguished; an outcome keeps the id of
    the attempt. ``updated_at`` is trio's clock.
    """

    kind: Kind
    id: int
    updated_at: float
    error: str = ""

    def text(self, now: float) -> str:
        """Return a text for a user: ``Error: no such kind (2.0s ago)``. ``now``: trio's clock."""
        error = f": {self.error}" if self.error else ""
        return f"{self.kind}{error} ({_ago(self.updated_at, now)})"

    def as_json(self, now: float, today: datetime) -> JsonObject:
        """Return an object with ``kind``, ``id``, ``updated-at`` (RFC 3339), and after a failure ``error``.

        ``today`` is the wall clock at ``now``.
        """
        at = today - timedelta(seconds=max(now - self.updated_at, 0))
        told: JsonObject = {"kind": self.kind.value, "id": self.id, "updated-at": format_exact_time(at)}
        return {**told, "error": self.error} if self.error else told

    @classmethod
    def from_json(cls, value: JsonValue, now: float, today: datetime) -> "Status":
        """Read what :meth:`as_json` wrote, perhaps in another process. Raises ShapeError."""
        kind, at = find_str(value, "kind"), find_str(value, "updated-at")
        try:
            age = today - datetime.fromisoformat(at)
            return cls(Kind(kind), find_int(value, "id"), now - age.total_seconds(), find_str(value, "error"))
        except (ValueError, TypeError) as error:
            raise ShapeError(f"not a status: kind {kind!r}, updated-at {at!r}: {error}") from error


class StatusSet:
    """The statuses of one object that has several reconcilers: one status for each name of a reconciler. Immutable."""

    __slots__ = ("_statuses", "id", "updated_at")

    def __init__(self, statuses: Mapping[str, Status], *, id: int = 0, updated_at: float = 0.0) -> None:  # noqa: A002
        """Make a set; ``id`` and ``updated_at`` are used for reconcilers that have not set a status yet."""
        self._statuses = {name: statuses[name] for name in sorted(statuses)}
        self.id = id
        self.updated_at = updated_at

    @property
    def statuses(self) -> Mapping[str, Status]:
        """Return the statuses that were set, by name."""
        return self._statuses

    def get(self, name: str) -> Status:
        """Return the status of one reconciler. If the reconciler has not set a status yet, return Pending with the ``id`` and
        the ``updated_at`` of this set.
        """
        return self._statuses.get(name) or Status(Kind.PENDING, self.id, self.updated_at)

    def set(self, name: str, status: Status) -> "StatusSet":
        """Return a copy of the set with this status."""
        return StatusSet({**self._statuses, name: status}, id=self.id, updated_at=self.updated_at)

    def pending(self, id: int, now: float) -> "StatusSet":  # noqa: A002
        """Return a set of the same reconcilers, all Pending with one new id."""
        waiting = Status(Kind.PENDING, id, now)
        return StatusSet(dict.fromkeys(self._statuses, waiting), id=id, updated_at=now)

    def text(self, now: float) -> str:
        """Return ``Errored: apply (no such kind), Pending: health, Done: labels (2.0s ago)``; the time is that of the
        newest status.
        """
        if not self._statuses:
            return "Pending"
        errored = [f"{name} ({one.error})" for name, one in self._statuses.items() if one.kind is Kind.ERROR]
        done = [name for name, one in self._statuses.items() if one.kind is Kind.DONE]
        open_ = [name for name, one in self._statuses.items() if one.kind in {Kind.PENDING, Kind.REFRESHING}]
        parts = (("Errored", errored), ("Pending", open_), ("Done", done))
        newest = max(one.updated_at for one in self._statuses.values())
        return ", ".join(f"{what}: {' '.join(names)}" for what, names in parts if names) + f" ({_ago(newest, now)})"

    def as_json(self, now: float, today: datetime) -> JsonObject:
        """Return the JSON of each status, by name."""
        return {name: status.as_json(now, today) for name, status in self._statuses.items()}

    @classmethod
    def from_json(cls, value: JsonValue, now: float, today: datetime) -> "StatusSet":
        """Read what :meth:`as_json` wrote. Raises ShapeError."""
        return cls({name: Status.from_json(one, now, today) for name, one in as_object(value, "statuses").items()})


class Statuses(Generic[K]):
    """The statuses of the keys of one table with all reconcilers of this table. :meth:`of` collects those of one key."""

    def __init__(self) -> None:
        self._sources: dict[str, Callable[[K], Status | None]] = {}

    def join(self, name: str, source: Callable[[K], Status | None]) -> None:
        """Add a reconciler. ``source`` returns the status of a key with this reconciler, and :meth:`of` returns that status
        under ``name``.

        Raises ValueError if the name is taken.
        """
        if name in self._sources:
            raise ValueError(f"two reconcilers of one table are called {name!r}")
        self._sources[name] = source

    def leave(self, name: str) -> None:
        """Remove the reconciler of this name. Raises KeyError if there is none."""
        del self._sources[name]

    @property
    def names(self) -> Iterable[str]:
        """Return the names of the reconcilers, sorted."""
        return sorted(self._sources)

    def of(self, key: K) -> StatusSet:
        """Return the statuses of this key; empty if no reconciler has a status for it."""
        told = {name: source(key) for name, source in self._sources.items()}
        return StatusSet({name: status for name, status in told.items() if status is not None})


def _ago(at: float, now: float) -> str:
    return f"{max(now - at, 0):.1f}s ago"
