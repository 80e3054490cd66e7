"""The observers of the runtime's state machines: callbacks that the flight recorder provides, called for each step."""

from dataclasses import dataclass
from typing import Final

from wharfinger.queue.worker import Observe as ObserveQueue
from wharfinger.runtime.lifecycle.store import Observe as ObserveLifecycle
from wharfinger.runtime.package.instance import Observe as ObservePackage
from wharfinger.runtime.scheduler.scheduler import Observe as ObserveScheduler


@dataclass(frozen=True, slots=True)
class Observers:
    """The observers of one runtime; None for a state machine that is not observed."""

    lifecycle: ObserveLifecycle | None = None
    scheduler: ObserveScheduler | None = None
    queue: ObserveQueue | None = None
    package: ObservePackage | None = None


UNOBSERVED: Final = Observers()
