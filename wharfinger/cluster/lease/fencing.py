"""The check whether the writer of a pending record may still be at work, so that a dead writer does not block operations.

Without this check, the refusal "another operation is in progress" could last forever after the writer died.

A daemon writes into each record its identity, its fence (:mod:`~wharfinger.cluster.lease.lease`) and the Lease that gave it
the fence. So it is known who wrote a pending record, and when this writer no longer works on it. (In the table, a *family* is a
group of Leases whose holders divide the releases among themselves, see :class:`Holder`.)

=============================================  =======================================================================
the writer of the record                       the writer no longer works on the record
=============================================  =======================================================================
our identity (this process or an earlier one)  already now, because no other process can use our state folder; but not if the
                                               record's fence is of our Lease and greater than ours
a former holder of our Lease                   already now, because its fence is smaller than ours
a holder of another Lease of our family        already now, because its daemon has handed the release over to us
a holder of any other Lease                    when this Lease is deleted, has another holder or fence, or was seen
                                               unchanged for as long as it is granted
a user's helm, or a daemon without a Lease     when the record was seen unchanged for :data:`ABANDONED_AFTER_S`
=============================================  =======================================================================

"Seen unchanged" is measured by our own monotonic clock, from the time when we first saw the state. Times of other clocks in
records and Leases are never compared with ours: a machine whose clock is wrong by an hour neither loses its work nor keeps others
waiting.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.lease.record import LEASE_API, LeaseRecord, read_lease
from wharfinger.formats.json.value import ShapeError
from wharfinger.kube.resource import ObjectKey

ABANDONED_AFTER_S: Final = 600.0
"""The time without a change after which the writer of a pending record counts as killed, if the writer has no Lease."""
MIN_GRANT_S: Final = 15.0
"""The shortest time for which a Lease counts as granted, even if its duration is shorter."""
MAX_SIGHTINGS: Final = 10_000
"""The largest number of records, and of Leases, for which the time of the last change is remembered."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A writer of records. Without a Lease ``fence`` is 0 and ``lease`` is ""; else ``lease`` is ``namespace/name/uid``.

    ``family`` is the beginning of the names of Leases whose holders divide the releases among themselves: no release belongs
    to two of these holders. ``family`` is "" if there are no such Leases.
    """

    identity: str
    fence: int = 0
    lease: str = ""
    family: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Return the name that messages use."""
        return f"the Wharfinger daemon {self.identity}" if self.identity else "a helm command"


NOBODY: Final = Holder("")
"""The holder that is assumed for a record that names none, because a user wrote it with the ``helm`` command."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The writer is not working on the record any more; ``why`` completes the message "interrupted: …"."""

    why: str


@dataclass(frozen=True, slots=True)
class AtWork:
    """The writer may be working on the record. ``by`` and ``until`` complete the message "BY is at work on it; UNTIL", where
    ``until`` says when the wait ends, or that the writer has replaced this daemon.
    """

    by: str
    until: str


Verdict: TypeAlias = Abandoned | AtWork


class Sightings:
    """The times since which this process has seen each record and each Lease unchanged.

    Their number is limited; beyond the limit, the record or Lease that was not seen for the longest time is forgotten.
    """

    def __init__(self, limit: int = MAX_SIGHTINGS) -> None:
        self._limit = limit
        self._since: OrderedDict[Hashable, tuple[Hashable, float]] = OrderedDict()

    def see(self, what: Hashable, state: Hashable, now: float) -> float:
        """Record the state of a resource, and return since when it has been unchanged."""
        known, since = self._since.pop(what, (None, now))
        since = since if known == state else now
        self._since[what] = (state, since)
        if len(self._since) > self._limit:
            self._since.popitem(last=False)
        return since


class Fencing:
    """Decides whether another writer still works on a pending record that it has written. ``ours`` is the writer in this
    process. ``clock`` is monotonic.
    """

    def __init__(self, client: ClusterClient, ours: Holder, clock: Callable[[], float] = trio.current_time) -> None:
        self.ours = ours
        self._client = client
        self._clock = clock
        self._records = Sightings()
        self._leases = Sightings()

    def see(self, record: Hashable, version: str) -> float:
        """Record that a pending record was seen in this version, and return the time since which it has been unchanged."""
        return self._records.see(record, version, self._clock())

    async def verdict(self, theirs: Holder, record: Hashable, version: str) -> Verdict:
        """Return the verdict about a pending record that ``theirs`` wrote.

        Reads only another holder's Lease from the cluster; raises the client's errors.
        """
        since = self.see(record, version)
        known = judge(theirs, self.ours)
        if known is not None:
            return known
        if not theirs.lease:
            left_s = since + ABANDONED_AFTER_S - self._clock()
            if left_s <= 0:
                return Abandoned(f"{theirs} has not changed the record for {ABANDONED_AFTER_S / 60:g} minutes")
            return AtWork(
                str(theirs), f"if the writer does not change the record, it counts as gone in {_minutes(left_s)}"
            )
        return await self._by_lease(theirs)

    async def _by_lease(self, theirs: Holder) -> Verdict:
        place, _, uid = theirs.lease.rpartition("/")
        namespace, _, name = place.partition("/")
        if not namespace or not name or "/" in name:
            return Abandoned(f"{theirs} names no valid Lease: {theirs.lease!r}")
        try:
            key = ObjectKey(await self._client.resource_type(*LEASE_API), namespace, name)
            lease = read_lease(await self._client.get(key))
        except NotFoundError:
            return Abandoned(f"the Lease {place} of {theirs} is deleted")
        except ShapeError as error:
            return Abandoned(f"the Lease {place} of {theirs} cannot be read: {error}")
        gone = _not_held(theirs, lease, uid)
        if gone:
            return Abandoned(f"{theirs} does not hold the Lease {place} any more: {gone}")
        now = self._clock()
        since = self._leases.see(place, lease.mark, now)
        left_s = since + max(MIN_GRANT_S, lease.duration_s) - now
        if left_s <= 0:
            return Abandoned(f"{theirs} did not renew the Lease {place} for {lease.duration_s} seconds")
        return AtWork(
            str(theirs),
            f"the wait ends when that daemon releases the Lease {place}, or does not renew it for {_minutes(left_s)}",
        )


def judge(theirs: Holder, ours: Holder) -> Verdict | None:
    """Return the verdict that follows from the two holders alone; None if it depends on later observations of the record, or of
    the Lease of its writer.
    """
    same_lease = theirs.lease == ours.lease
    if theirs.identity and theirs.identity == ours.identity:
        if same_lease and theirs.fence > ours.fence:
            return AtWork(f"a later start of {theirs}", "it replaced this one")
        return Abandoned("the daemon was ended")
    if theirs.lease and same_lease:
        if theirs.fence < ours.fence:
            return Abandoned(f"{theirs} does not hold the Lease any more: {ours.identity} holds it")
        return AtWork(str(theirs), "it took the Lease over from this daemon")
    if ours.family and _is_of_family(theirs.lease, ours):
        return Abandoned(f"{theirs} has handed the release over")
    return None


def _is_of_family(lease: str, ours: Holder) -> bool:
    """Return whether a Lease belongs to our family (:class:`Holder`): it is in the namespace of our Lease, and its name begins
    with the name of the family.
    """
    namespace, _, rest = lease.partition("/")
    return namespace == ours.lease.partition("/")[0] and (rest.partition("/")[0] + "-").startswith(f"{ours.family}-")


def _not_held(theirs: Holder, lease: LeaseRecord, uid: str) -> str:
    """Return why ``theirs`` does not hold a Lease; "" if it holds the Lease."""
    if lease.uid != uid:
        return "it was deleted and created again"
    if not lease.holder:
        return "it was released"
    if lease.holder != theirs.identity:
        return f"{lease.holder} holds it"
    return "" if lease.fence == theirs.fence else "a later process of the same identity holds it"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
