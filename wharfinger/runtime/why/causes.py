"""One cause why a package is not in its wanted state, and the facts that are needed to find causes.

A cause is either a *root*, with a remedy, or comes *through* other packages, which have causes of their own. The causes in a
package's stages are in :mod:`~wharfinger.runtime.why.stage_causes`, those of the scheduler in
:mod:`~wharfinger.runtime.why.gate_causes`; :mod:`~wharfinger.runtime.why.explanation` makes chains of both. All functions are
pure: the inputs are snapshots and a time.

A cause is shown to users as one line, so its texts have a limited length. Secrets in the texts are masked when the texts
leave the daemon.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from wharfinger.runtime.daemon_details import SlotsSnapshot
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler_details import NodeSnapshot

MOST_NAMED: Final = 5
"""The limit on the number of packages that one line names."""
MAX_TEXT: Final = 1_000


def _nobody(_name: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Known:
    """The input of an explanation. A package is looked up only when the chain reaches it, because most packages are never
    needed.

    ``holders`` returns, for an order, the packages of this order for which packages of higher orders wait. ``leaving`` returns,
    for a package, its dependents that are being removed, which the scheduler does not know any more. ``by_resource`` returns,
    for a package, the dependencies that only its resource's ``spec.dependsOn`` names. ``trying_crds`` are the packages whose
    first attempt to apply their CRDs is under way, and for which all other packages wait. ``asks_daemon`` is True if the facts
    come from a daemon, which may not have accepted every existing resource.
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
        """Return whether the scheduler knows the package, and has decided that it is on."""
        node = self.node(name)
        return node is not None and node.decision == "Enable"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause: a short ``state`` ("waits for db", "fails"), a ``message`` with more details, and the time of its start.

    ``through`` are the packages through which it comes, in the order in which they are followed; a cause that comes through
    no package is a root, and has a ``remedy``. ``by_hand`` is True if a user can act on this root, and False if only work in
    progress has to end.
    """

    state: str
    message: str = ""
    since: datetime | None = None
    through: tuple[str, ...] = ()
    remedy: str = ""
    by_hand: bool = True

    @property
    def line(self) -> str:
        """The state and the message in one line."""
        return f"{self.state}: {self.message}" if self.message else self.state


def one_line(text: str) -> str:
    """Return a text as one line of at most MAX_TEXT characters."""
    flat = " ".join(text[: 2 * MAX_TEXT].split())
    return flat if len(flat) <= MAX_TEXT else f"{flat[: MAX_TEXT - 1]}…"


def moment_after(now: datetime, seconds: float) -> str:
    """Return the time after some seconds as a text such as ``12:07:20 UTC (in 13 s)``."""
    then = (now + timedelta(seconds=seconds)).astimezone(UTC)
    return f"{then:%H:%M:%S} UTC (in {max(0, round(seconds))} s)"
