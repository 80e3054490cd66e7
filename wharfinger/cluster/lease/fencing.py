"""Whose a pending record is, and whether whoever wrote it can still be at work: so that "another operation is in progress"
cannot last.

A daemon writes into each record its identity, the fence it had (:mod:`~wharfinger.cluster.lease.lease`) and the Lease it had
it of. A pending record is then over at once where its holder is provably gone:

=====================================================  =============================================================
it was written by                                      and is over
=====================================================  =============================================================
this identity: an earlier life of it, or this one      at once: its state folder is ours now (unless its fence is greater)
another that held the Lease we hold now                at once: its fence is smaller
another under another Lease                            when that is deleted, has another holder or fence, or was seen unchanged
                                                       for as long as it is granted
a person's helm, or a daemon without a Lease           when it was seen unchanged for :data:`ABANDONED_AFTER_S`
=====================================================  =============================================================

"Seen unchanged" is by our own monotonic clock from when we first saw it. What other clocks wrote into records and Leases is never
compared with ours: a machine whose clock is an hour off neither loses its work nor keeps others waiting.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.lease.record import LEASE_API, LeaseRecord, read_lease
from wharfinger.formats.json.value import ShapeError
from wharfinger.kube.resource import ObjectKey

ABANDONED_AFTER_S: Final = 600.0
"""After so long without a change, a pending record of a person's helm is taken for what a killed process left."""
MIN_GRANT_S: Final = 15.0
"""A Lease that says less is believed for so long all the same."""
MAX_SIGHTINGS: Final = 10_000
"""Records and Leases whose first sight is remembered."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes records. Without a Lease ``fence`` is 0 and ``lease`` is ""; else ``lease`` is ``namespace/name/uid`` of it."""

    identity: str
    fence: int = 0
    lease: str = ""

    def __str__(self) -> str:
        """As named in messages."""
        return f"the Wharfinger daemon {self.identity}" if self.identity else "a helm command"


NOBODY: Final = Holder("")
"""Of records that a person's helm wrote."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Whoever wrote it is not at work on it any more; ``why`` completes "interrupted: …"."""

    why: str


@dataclass(frozen=True, slots=True)
class AtWork:
    """It may be at work; ``until`` says until when it is waited for, completing "… is at work on it; …"."""

    by: str
    until: str


Verdict: TypeAlias = Abandoned | AtWork


class Sightings:
    """Since when things are as they are, as far as we looked. Bounded: the one not looked at for longest is forgotten."""

    def __init__(self, limit: int = MAX_SIGHTINGS) -> None:
        self._limit = limit
        self._since: OrderedDict[Hashable, tuple[Hashable, float]] = OrderedDict()

    def see(self, what: Hashable, state: Hashable, now: float) -> float:
        """Note this state of a thing, and say since when it is so."""
        known, since = self._since.pop(what, (None, now))
        since = since if known == state else now
        self._since[what] = (state, since)
        if len(self._since) > self._limit:
            self._since.popitem(last=False)
        return since


class Fencing:
    """Judges pending records for ``ours``; ``clock`` is monotonic."""

    def __init__(self, client: ClusterClient, ours: Holder, clock: Callable[[], float] = trio.current_time) -> None:
        self.ours = ours
        self._client = client
        self._clock = clock
        self._records = Sightings()
        self._leases = Sightings()

    def see(self, record: Hashable, version: str) -> float:
        """Since when this record is so; called whenever one is seen that is pending."""
        return self._records.see(record, version, self._clock())

    async def verdict(self, theirs: Holder, record: Hashable, version: str) -> Verdict:
        """Of a pending record that ``theirs`` wrote. Asks the cluster only for another's Lease; raises what the client does."""
        since = self.see(record, version)
        known = judge(theirs, self.ours)
        if known is not None:
            return known
        if not theirs.lease:
            left_s = since + ABANDONED_AFTER_S - self._clock()
            if left_s <= 0:
                return Abandoned(f"nothing was heard of {theirs} for {ABANDONED_AFTER_S / 60:g} minutes")
            return AtWork(str(theirs), f"it is taken for abandoned in {_minutes(left_s)} if nothing is heard of it")
        return await self._by_lease(theirs)

    async def _by_lease(self, theirs: Holder) -> Verdict:
        place, _, uid = theirs.lease.rpartition("/")
        namespace, _, name = place.partition("/")
        if not namespace or not name or "/" in name:
            return Abandoned(f"{theirs} names no Lease but {theirs.lease!r}")
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
            f"it is waited for until it lets go of the Lease {place}, or has not renewed it in {_minutes(left_s)}",
        )


def judge(theirs: Holder, ours: Holder) -> Verdict | None:
    """What can be told from the two alone; None: the record, or the Lease it names, must be watched."""
    same_lease = theirs.lease == ours.lease
    if theirs.identity and theirs.identity == ours.identity:
        if same_lease and theirs.fence > ours.fence:
            return AtWork(f"a later life of {theirs}", "it took the place of this one")
        return Abandoned("the daemon was ended")
    if theirs.lease and same_lease:
        if theirs.fence < ours.fence:
            return Abandoned(f"{theirs} does not hold the Lease any more: {ours.identity} does")
        return AtWork(str(theirs), "it took the Lease over from this one")
    return None


def _not_held(theirs: Holder, lease: LeaseRecord, uid: str) -> str:
    """Why a Lease is not held by ``theirs``; "" where it is."""
    if lease.uid != uid:
        return "it was deleted and made anew"
    if not lease.holder:
        return "it gave it back"
    if lease.holder != theirs.identity:
        return f"{lease.holder} does"
    return "" if lease.fence == theirs.fence else "a later life of it does"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
