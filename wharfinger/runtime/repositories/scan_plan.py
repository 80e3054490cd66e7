"""The decision when to scan a repository, and which packages to scan. Pure; times are seconds of one monotonic clock.

==========================================  ==============================  ================================================
event                                       scanned immediately             time of the next scan of everything
==========================================  ==============================  ================================================
the repository or its login is changed      everything                      after the interval
its annotation asks for a scan              everything, all details again   after the interval
the interval is over                        everything                      after the interval
a resource begins to follow a package,      only that package               unchanged
or a tag of a package
a scan failed                               nothing                         after a pause that doubles with each failure, from
                                                                            FIRST_PAUSE_S to MAX_PAUSE_S, and is never longer
                                                                            than the interval. All details are read again if
                                                                            the failed scan was to read them
==========================================  ==============================  ================================================
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from wharfinger.runtime.repositories.package_scan import Interest

FIRST_PAUSE_S: Final = 10.0
MAX_PAUSE_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Scans:
    """The scans of one repository so far. ``of`` identifies the source and the login that were scanned, ``requested`` is the
    value of the annotation that last requested a scan.
    """

    of: str = ""
    requested: str = ""
    due_s: float = -math.inf
    failures: int = 0
    done: Mapping[str, Interest] = field(default_factory=dict)
    full: bool = False
    """True if a scan that was to read all details has failed since the last successful scan. Then the next scan reads them."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of ``packages``. With ``whole``, the repository itself is checked, too; with ``full``, all details are read
    again.
    """

    packages: Mapping[str, Interest]
    whole: bool
    full: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """Do not scan before this number of seconds has passed."""

    delay_s: float


def plan_scan(scans: Scans, of: str, requested: str, wanted: Mapping[str, Interest], now_s: float) -> Scan | Wait:
    """Return the scan that a repository needs now, or how long to wait."""
    asked = requested != scans.requested and scans.of != ""
    if of != scans.of or asked or now_s >= scans.due_s:
        return Scan(wanted, whole=True, full=asked or scans.full)
    fresh = {name: interest for name, interest in wanted.items() if scans.done.get(name) != interest}
    if fresh and not scans.failures:
        return Scan(fresh, whole=False, full=False)
    return Wait(scans.due_s - now_s)


def scanned(scans: Scans, of: str, requested: str, scan: Scan, interval_s: float, now_s: float) -> Scans:
    """Return the state after a scan that succeeded."""
    if not scan.whole:
        return replace(scans, done={**scans.done, **scan.packages})
    return Scans(of, requested, now_s + interval_s, 0, dict(scan.packages))


def scan_failed(scans: Scans, of: str, requested: str, interval_s: float, now_s: float) -> Scans:
    """Return the state of a repository's scans after a failed scan: the next scan follows after a pause."""
    failures = scans.failures + 1
    pause_s = min(interval_s, MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 10))
    full = scans.full or (requested != scans.requested and scans.of != "")
    return Scans(of, requested, now_s + pause_s, failures, scans.done, full)
