"""The options of a reconciler. Durations are seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReconcilerOptions:
    """The limits and pauses of a reconciler. Raises ValueError if they contradict each other.

    * ``concurrency``: operations at once; ``owner_concurrency``: operations of one owner at once.
    * ``patience_s``: the time after which an operation is late, and no longer counts towards ``concurrency``.
    * ``slow_concurrency``: late operations, and retries of slow owners, at once (:mod:`~wharfinger.cluster.reconciler.turns`).
    * ``round_size``: changes read from the table at a time, and the size of a batch; ``round_gap_s``: the least time between two
      such reads, so that writes gather meanwhile.
    * ``give_up``: the number of failures in a row after which waiters are notified; retries continue.
    * ``operation_s``, ``prune_limit_s``: the time limits after which an operation or a prune is cut off.
    * ``refresh_s``: the age after which an applied object is checked again (0: never); ``refresh_per_s``: the most such checks in
      a second, and in one burst.
    * ``prune_s``: the time between two prunes (0: on demand only); the first one is done when the table is initialized.
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
