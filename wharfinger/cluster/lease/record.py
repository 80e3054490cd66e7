"""A Lease (``coordination.k8s.io/v1``) as those who compete for it read and write it.

What is compared is what the server has, never when: ``renewTime`` is the wall clock of another machine and serves people. Two
readings of one Lease differ in their :attr:`LeaseRecord.mark` whenever its holder renewed it in between, also where that
holder's clock stands still or goes backwards (:func:`lease_spec` moves the stamp on by a microsecond at least).
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from wharfinger.formats.json.value import JsonObject, ShapeError, find_int, find_str

LEASE_API: Final = ("coordination.k8s.io/v1", "Lease")
MAX_FENCE: Final = 2**31 - 1
"""``leaseTransitions`` is an int32."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_US: Final = 250_000_000_000_000_000
"""The year 9892: a clock that says more is taken to say that, and a stamp can still be moved on."""
_LAST_US: Final = 253_402_214_400_000_000
"""9999-12-31: a stamp from there on is read as none."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """One reading. ``holder`` is "" where nobody holds it; ``fence`` is ``leaseTransitions``; ``renewed_us`` is since 1970."""

    uid: str
    version: str
    holder: str
    fence: int
    duration_s: int
    renewed_us: int

    @property
    def mark(self) -> tuple[str, str, int, int, int]:
        """What changes whenever its holder renews it, and not when somebody writes a label on it."""
        return (self.uid, self.holder, self.fence, self.duration_s, self.renewed_us)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a candidate wants a Lease to say; an empty ``holder`` gives it back."""

    holder: str
    fence: int
    duration_s: int


def read_lease(obj: JsonObject) -> LeaseRecord:
    """A Lease that the server told. Raises ShapeError for what it never tells."""
    fence = find_int(obj, "spec", "leaseTransitions")
    duration = find_int(obj, "spec", "leaseDurationSeconds")
    if not 0 <= fence <= MAX_FENCE or not 0 <= duration <= MAX_FENCE:
        raise ShapeError(f"a Lease with {fence} transitions and a duration of {duration} seconds")
    return LeaseRecord(
        find_str(obj, "metadata", "uid"),
        find_str(obj, "metadata", "resourceVersion"),
        find_str(obj, "spec", "holderIdentity"),
        fence,
        duration,
        _micros(find_str(obj, "spec", "renewTime")),
    )


def lease_spec(claim: Claim, before: LeaseRecord | None, now: datetime) -> JsonObject:
    """The ``spec`` to write over ``before``, as a merge patch or in a new Lease."""
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
    """How a Lease says a duration: at least what it is, and at least a second."""
    return max(1, math.ceil(duration_s))


def _stamp(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _micros(text: str) -> int:
    """Since 1970; 0 for "" and what is no time: it only has to differ from the next one."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        micros = (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError, OverflowError):
        return 0
    return micros if 0 <= micros <= _LAST_US else 0
