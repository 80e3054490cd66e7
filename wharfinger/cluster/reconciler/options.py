"""The options of a reconciler. Durations are seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReconcilerOptions:
    """The limits and pauses of a reconciler. Raises ValueError if a value is out of range, or if two contradict each other.

    * ``concurrency``: the number of simultaneous operations; ``owner_concurrency``: the same for the operations of one owner.
    * ``patience_s``: the time after which an operation is late, and no longer counts towards ``concurrency``.
    * ``slow_concurrency``: the number of simultaneous slow operations. These are late operations, and retries of slow owners
      (:mod:`~wharfinger.cluster.reconciler.turns`).
    * ``round_size``: the largest number of changes that are read from the table at a time, and of changes in one batch.
      ``round_gap_s``: the shortest time between two reads, so that one read gets the changes of several writes.
    * ``first_retry_s``, ``max_retry_s``: the first and the longest pause between retries; ``permanent_retry_s``: the pause
      after a permanent failure.
    * ``give_up``: the number of failures in a row after which waiters are notified; retries continue.
    * ``operation_s``, ``prune_limit_s``: the time limits after which an operation or a prune is cut off.
    * ``refresh_s``: the age after which an applied object is checked again (0: never); ``refresh_per_s``: the largest
      number of refreshes in a second, and in one burst.
    * ``prune_s``: the time between two prunes; the first prune begins when the table is initialized. 0: prune on demand only.
    """

    concurrency: int = 16
    owner_concurrency: int = 8
    slow_concurrency: int = 8
    patience_s: float = 2.0
    round_size: int = 1000
    round_gap_s: float = 0.001
    first_retry_s: float = 0.1
    max_retry_s: float = 60.0
    permanent_retry_s: float = 600.0
    give_up: int = 5
    operation_s: float = 120.0
    refresh_s: float = 0.0
    refresh_per_s: float = 100.0
    prune_s: float = 3600.0
    prune_limit_s: float = 600.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "owner_concurrency", "slow_concurrency", "round_size", "give_up"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} of a reconciler must be at least 1")
        for name in ("patience_s", "first_retry_s", "operation_s", "refresh_per_s", "prune_limit_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} of a reconciler must be more than 0")
        for name in ("round_gap_s", "refresh_s", "prune_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} of a reconciler must not be negative")
        if not self.first_retry_s <= self.max_retry_s <= self.permanent_retry_s:
            raise ValueError("a reconciler needs first_retry_s <= max_retry_s <= permanent_retry_s")
