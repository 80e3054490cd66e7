"""One reason why a package is not as it is wanted, and what is looked at to find it.

A cause is a *root*, with a remedy, or comes *through* other packages, which have causes of their own. What a package's stages
say is in :mod:`~wharfinger.runtime.why.stage_causes`, what the scheduler says in :mod:`~wharfinger.runtime.why.gate_causes`;
chains are made of both in :mod:`~wharfinger.runtime.why.explanation`. Everything here is pure: snapshots and a moment come in.

A cause is one line for a person, so its texts are bounded; what is secret in them is taken out where they leave the daemon.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from wharfinger.runtime.inspector import NodeSnapshot, PackageSnapshot, SlotsSnapshot

MOST_NAMED: Final = 5
"""Of others in one line."""
MAX_TEXT: Final = 1_000


def _nobody(_name: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Known:
    """What an explanation is made from. A package is looked up when the chain comes to it, since most are never asked about.

    ``holders`` are those that hold a tier, by its order; ``leaving`` those that need a package and are being removed, which the
    scheduler has forgotten; ``by_resource`` those that a package needs only since its resource's ``spec.dependsOn`` names them;
    ``trying_crds`` the packages whose definitions all others wait for. ``asks_daemon``: what is known is what a daemon has taken,
    which may be less than there is.
    """

    now: datetime
    package: Callable[[str], PackageSnapshot | None]
    node: Callable[[str], NodeSnapshot | None]
    holders: Callable[[int], tuple[str, ...]]
    slots: tuple[SlotsSnapshot, ...] = ()
    trying_crds: tuple[str, ...] = ()
    leaving: Callable[[str], tuple[str, ...]] = _nobody
    by_resource: Callable[[str], tuple[str, ...]] = _nobody
    asks_daemon: bool = False

    def is_on(self, name: str) -> bool:
        """Whether the scheduler knows the package, and has decided that it is on."""
        node = self.node(name)
        return node is not None and node.decision == "Enable"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why: a short ``state`` ("waits for db", "fails"), a ``message`` with what is more to say, and since when.

    ``through`` are the packages that it comes from, the first to be asked first; without any it is a root and has a
    ``remedy``. ``by_hand``: somebody can do something about this root; False: what is at work has only to come to its end.
    """

    state: str
    message: str = ""
    since: datetime | None = None
    through: tuple[str, ...] = ()
    remedy: str = ""
    by_hand: bool = True

    @property
    def line(self) -> str:
        """State and message in one."""
        return f"{self.state}: {self.message}" if self.message else self.state


def one_line(text: str) -> str:
    """A text in one line of at most MAX_TEXT characters."""
    flat = " ".join(text[: 2 * MAX_TEXT].split())
    return flat if len(flat) <= MAX_TEXT else f"{flat[: MAX_TEXT - 1]}…"


def listed(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """``a, b``; of many ``a, b, c, d, e and 7 more``."""
    every = list(names)
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")


def moment_after(now: datetime, seconds: float) -> str:
    """``12:07:20 UTC (in 13 s)``."""
    then = (now + timedelta(seconds=seconds)).astimezone(UTC)
    return f"{then:%H:%M:%S} UTC (in {max(0, round(seconds))} s)"
