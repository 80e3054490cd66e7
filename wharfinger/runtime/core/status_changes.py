"""The changes of packages' statuses: logged, and passed on to the listener that writes them to the cluster."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.summary import summarize

log = logging.getLogger(__name__)

Clock: TypeAlias = Callable[[], datetime]
"""The wall clock: returns an aware datetime."""


@dataclass(frozen=True, slots=True)
class StatusChanges:
    """The listeners to statuses, and the clock of their conditions."""

    now: Clock
    on_change: Callable[[str], None]
    """The callback with the name of a package whose status changed or whose removal ended; must not block."""
    on_status: Callable[[str, PackageStatus, PackageStatus], None] | None = None
    """The callback with a changed status, before and after; it is called instead of `on_change`."""

    def report(self, instance: Instance, before: PackageStatus) -> None:
        """Report a changed status of a package; ``before`` is the former one."""
        status = instance.status
        state, message, _tip = summarize(status)
        found_out = before.is_being_verified and not status.is_being_verified
        if found_out or state != summarize(before)[0]:
            log.info("%s: %s: %s", instance.id, state, message)
        if self.on_status is not None:
            self.on_status(instance.id.name, before, status)
        else:
            self.on_change(instance.id.name)
