"""A Lease (``coordination.k8s.io/v1``) as its candidates read and write it.

Candidates only check whether the contents have changed, and never compare a time in them with a clock: ``renewTime`` is from
the wall clock of another machine. Two readings of one Lease differ in their :attr:`LeaseRecord.mark` whenever its holder renewed
it in between, even if that holder's clock stands still or goes backwards (:func:`lease_spec` advances ``renewTime`` by at least
a microsecond).
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from wharfinger.formats.json.value import JsonObject, ShapeError, find_int, find_str
from wharfinger.kube.times import format_micro_time, parse_time

LEASE_API: Final = ("coordination.k8s.io/v1", "Lease")
MAX_FENCE: Final = 2**31 - 1
"""The largest value of a fence. A fence is stored in ``leaseTransitions``, which is an int32."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_US: Final = 250_000_000_000_000_000
"""A time in the year 9892, in microseconds since 1970. A later time that is to be written is replaced by this one, so that
``renewTime`` can still be advanced.
"""
_LAST_US: Final = 253_402_214_400_000_000
"""The time 9999-12-31, in microseconds since 1970. Later times in a Lease are ignored."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """One reading of a Lease.

    ``holder`` is "" if the Lease is free; ``fence`` is ``leaseTransitions``; ``renewed_us`` is in microseconds since 1970.
    """

    uid: str
    version: str
    holder: str
    fence: int
    duration_s: int
    renewed_us: int

    @property
    def mark(self) -> tuple[str, str, int, int, int]:
        """Return a value that changes whenever the holder renews the Lease, but not when another writer sets a label on it."""
        return (self.uid, self.holder, self.fence, self.duration_s, self.renewed_us)


@dataclass(frozen=True, slots=True)
class Claim:
    """The content that a candidate wants to write into a Lease. An empty ``holder`` means that the candidate releases the
    Lease.
    """

    holder: str
    fence: int
    duration_s: int


def read_lease(obj: JsonObject) -> LeaseRecord:
    """Return the record in a Lease from the server. Raises ShapeError for invalid values."""
    fence = find_int(obj, "spec", "leaseTransitions")
    duration = find_int(obj, "spec", "leaseDurationSeconds")
    if not 0 <= fence <= MAX_FENCE or not 0 <= duration <= MAX_FENCE:
        raise ShapeError(f"leaseTransitions {fence} and leaseDurationSeconds {duration} must be from 0 to {MAX_FENCE}")
    return LeaseRecord(
        find_str(obj, "metadata", "uid"),
        find_str(obj, "metadata", "resourceVersion"),
        find_str(obj, "spec", "holderIdentity"),
        fence,
        duration,
        _micros(find_str(obj, "spec", "renewTime")),
    )


def lease_spec(claim: Claim, before: LeaseRecord | None, now: datetime) -> JsonObject:
    """Return the ``spec`` of a Lease for a claim. ``before`` is the present content of the Lease, and the ``spec`` is a merge
    patch; if ``before`` is None, it is the ``spec`` of a new Lease.
    """
    renewed = min(max((now - _EPOCH) // timedelta(microseconds=1), 0), _MAX_US)
    if before is not None:
        renewed = max(renewed, before.renewed_us + 1)
    spec: JsonObject = {
        "holderIdentity": claim.holder or None,
        "leaseDurationSeconds": claim.duration_s,
        "leaseTransitions": claim.fence,
        "renewTime": _stamp(renewed),
    }
    if before is None or (before.holder, before.fence) != (claim.holder, claim.fence):
        spec["acquireTime"] = _stamp(renewed)
    return spec


def whole_seconds(duration_s: float) -> int:
    """Return a duration in whole seconds, as a Lease needs it: rounded up, and at least one second."""
    return max(1, math.ceil(duration_s))


def _stamp(micros: int) -> str:
    return format_micro_time(_EPOCH + timedelta(microseconds=micros))


def _micros(text: str) -> int:
    """Return a time as microseconds since 1970; 0 for text that is not a time. This is sufficient, because callers only check
    whether the value has changed.
    """
    moment = parse_time(text)
    micros = 0 if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)
    return micros if 0 <= micros <= _LAST_US else 0
