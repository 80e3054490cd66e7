"""The numbers of one pool: a snapshot for sizing the pool, and latencies for metrics."""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.histogram import Histogram
from wharfinger.pools.claims.state import Counters, PoolState

BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A pool at one moment. ``waiting``: requests without a claim; ``in_flight``: claims under way.

    ``reserved`` counts the members that are under claim, and the members whose claim has ended, but whose new state the cache
    does not show yet.
    """

    ready: int
    waiting: int
    in_flight: int
    reserved: int
    members: int
    closed: bool
    last_dispatch: float | None


@dataclass(slots=True)
class PoolMetrics:
    """The latencies (in seconds) and the counters of one pool since it was opened.

    ``dispatch_s`` is the time from the acceptance of a request to its first claim, ``claim_s`` the time from the acceptance to
    the success of a claim.
    """

    counters: Counters
    dispatch_s: Histogram = field(default_factory=lambda: Histogram(BOUNDS_S))
    claim_s: Histogram = field(default_factory=lambda: Histogram(BOUNDS_S))
    refused: int = 0


def snapshot_of(state: PoolState, last_dispatch: float | None) -> Snapshot:
    """Return the numbers of members, requests and claims in the state of a pool. Takes constant time."""
    return Snapshot(
        ready=len(state.ready),
        waiting=len(state.line),
        in_flight=len(state.claims),
        reserved=len(state.reserved),
        members=len(state.members),
        closed=state.closed,
        last_dispatch=last_dispatch,
    )
