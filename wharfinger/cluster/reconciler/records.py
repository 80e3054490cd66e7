"""The records of a reconciler: what the reconciler knows about one key, and about one owner.

In the release engine, the owner of a row is a wave: a group of objects of one release that are applied together, before the
next group. Every number that reports progress is kept per owner, so that a failing object affects only the progress of its
own owner.
"""

from collections import OrderedDict
from collections.abc import Container, Hashable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Generic, TypeVar

from wharfinger.cluster.reconciler.lowest import Lowest
from wharfinger.cluster.reconciler.status import Kind

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Place(Enum):
    """The place of a key in the reconciler, which determines what happens to the key next. Each key is in exactly one place."""

    RESTING = auto()
    """There is nothing to do for the key."""
    FRESH = auto()
    """The key waits for a worker, in its owner's queue of changed keys."""
    HELD = auto()
    """The key waits for the end of a prune that does not know the key's row. This prune could delete the object of the row."""
    RUNNING = auto()
    """A worker has the key."""
    RETRY = auto()
    """The key's last attempt failed, and the retry is not due yet."""
    DUE = auto()
    """The retry of the key is due. The key waits for a worker, in its owner's queue of retries."""
    LIMITED = auto()
    """The object of the key has to be applied again, and waits because the rate of such refreshes is limited."""
    AWAITING = auto()
    """The key's row has changed or is gone, and the change has not been read from the stream yet."""


@dataclass(slots=True, eq=False)
class Owner(Generic[K, R]):
    """The keys of one owner.

    ``fresh`` and ``due`` are the lines of changes and of retries, in the order of arrival. An empty line is None, to save
    memory: the lines of nearly all owners are empty. ``running``: the number of keys that workers have; ``rows``: the number of
    all keys.

    ``retrying``: the number of retries among the running keys. ``late``: the number of late operations since the last operation
    that succeeded in time; the owner is slow unless this is 0. ``used``: the seconds for which the owner has used workers; this
    number decides when the owner's turn is (:mod:`~wharfinger.cluster.reconciler.turns`).

    A key is in one of ``waiting`` (not attempted at its revision), ``failing`` and ``refreshing``, or in none of them;
    ``hopeless`` are the keys of ``failing`` that failed permanently, or too often.
    """

    name: Hashable
    fresh: "OrderedDict[K, Record[K, R]] | None" = None
    due: "OrderedDict[K, Record[K, R]] | None" = None
    running: int = 0
    retrying: int = 0
    late: int = 0
    used: float = 0.0
    rows: int = 0
    waiting: Lowest[K] = field(default_factory=Lowest)
    failing: Lowest[K] = field(default_factory=Lowest)
    hopeless: Lowest[K] = field(default_factory=Lowest)
    refreshing: Lowest[K] = field(default_factory=Lowest)

    def attempted(self, consumed: int) -> int:
        """Return the revision up to which each row was attempted. ``consumed`` is the revision up to which the table was
        read.
        """
        waiting = self.waiting.lowest()
        return min(consumed, waiting - 1) if waiting else consumed

    def settled(self, consumed: int, revision: int, keys: Container[K] | None = None) -> bool:
        """Return True if all rows up to this revision are Done, or if one of them is hopeless. With ``keys``, only the rows of
        these keys are checked; it is enough that all other rows up to this revision were attempted.
        """
        if self.hopeless.holds(revision, keys):
            return True
        if self.attempted(consumed) < revision:
            return False
        return not any(one.holds(revision, keys) for one in (self.failing, self.refreshing))

    def open_keys(self) -> tuple[K, ...]:
        """Return the keys that are not Done: first waiting keys, then failing ones, then refreshed ones; each group is sorted by
        revision.
        """
        return (*self.waiting.by_revision(), *self.failing.by_revision(), *self.refreshing.by_revision())

    def forget(self, revision: int) -> None:
        """Remove this revision from ``waiting``, ``failing``, ``hopeless`` and ``refreshing``."""
        self.waiting.discard(revision)
        self.failing.discard(revision)
        self.hopeless.discard(revision)
        self.refreshing.discard(revision)


@dataclass(slots=True, eq=False)
class Work(Generic[K, R]):
    """The keys of one owner that one worker is working on; ``began`` is the time when the worker took them.

    ``retry``: the work is a retry of one key. ``left``: the number of keys that are not done. ``slow``: the work has a slow
    place instead of an ordinary one (:mod:`~wharfinger.cluster.reconciler.turns`). ``failed``: one of the keys failed. ``cut``:
    the work is being cut off early.
    """

    owner: Owner[K, R]
    keys: tuple[K, ...]
    began: float
    retry: bool
    slow: bool
    left: int
    failed: bool = False
    cut: bool = False


@dataclass(slots=True, eq=False)
class Record(Generic[K, R]):
    """The record of one key.

    ``revision`` is the revision of the row, or of its deletion if ``deleting``. ``created`` is the revision since which the
    table has had a row with this key without interruption.

    ``number`` is the number of attempts since the row changed or was Done. ``again`` is True if a refresh was requested while a
    worker had the key. ``kind``, ``id`` and ``at`` make up the status of the key. ``work`` is the work of the worker that has
    the key, if any.
    """

    key: K
    row: R
    revision: int
    created: int
    owner: Owner[K, R]
    deleting: bool = False
    place: Place = Place.RESTING
    kind: Kind = Kind.PENDING
    id: int = 0
    at: float = 0.0
    number: int = 0
    refreshing: bool = False
    again: bool = False
    replaces: bool = False
    work: Work[K, R] | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a reconciler. ``rows``: all keys, including deletions that are not done; ``pending``: the keys that were not
    attempted at their present revision.

    ``slow``: the operations that take up slow places: late operations, and retries for owners that had a late operation
    (:mod:`~wharfinger.cluster.reconciler.turns`).
    """

    rows: int
    pending: int
    refreshing: int
    failing: int
    held: int
    running: int
    slow: int
    owners: int
