"""Stalls: an object that has been unready, and has not changed, for longer than a grace period counts as stalled.

Pure. An update in progress (an HPA scales a Deployment, a user restarts a rollout, a Pod is moved) makes an object unready
for some seconds without any fault. Only a lasting state is a fault:

* Each change of an object's message, such as ``1 of 3 replicas available``, counts as a move, and begins the grace period again.
* An object that moves all the time and is never ready stalls after :data:`LIMIT_S`.
* An absent object does not count as an update in progress. Its grace period is :data:`ABSENT_S`, in which a deleted object is
  usually created again.
* An object whose own controller reports progress and has a deadline for it (`InProgress.at_work`) never stalls: when the
  deadline has passed, the object has failed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.cluster.watch.readiness import InProgress, Readiness
from wharfinger.kube.resource import ObjectKey

GRACE_S: Final = 60.0
"""The time in seconds for which an object may be unready while its message does not change."""
ABSENT_S: Final = 10.0
"""The time in seconds for which an object may be absent. If the grace period is shorter, the grace period applies."""
LIMIT_S: Final = 600.0
"""The longest time, in seconds, for which an object may be unready, even if its message changes. It is equal to the default
progress deadline of a Deployment.
"""


@dataclass(frozen=True, slots=True)
class Unready:
    """An object that is not ready: when it became unready, its state, and the time since which this state is unchanged. All times
    are of one clock."""

    since: float
    state: Readiness
    moved: float

    def stalls_at(self, grace_s: float = GRACE_S) -> float:
        """Return when the object stalls, unless its state changes before. An object that has failed or has its own deadline
        never stalls.
        """
        if not isinstance(self.state, InProgress) or self.state.at_work:
            return inf
        patience_s = min(grace_s, ABSENT_S) if self.state.absent else grace_s
        return min(self.moved + patience_s, self.since + LIMIT_S)


def followed(before: Mapping[ObjectKey, Unready], laggards: Laggards, now: float) -> dict[ObjectKey, Unready]:
    """Return the objects of ``laggards``, which are unready now. Objects that were unready ``before`` keep their times."""
    return {key: _moved(before.get(key), state, now) for key, state in laggards.items()}


def _moved(before: Unready | None, state: Readiness, now: float) -> Unready:
    if before is None:
        return Unready(now, state, now)
    return before if before.state == state else Unready(before.since, state, now)
