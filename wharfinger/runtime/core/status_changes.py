"""The changes of packages' statuses, which are logged, and passed to the listener that writes them to the cluster."""

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
    """The listeners for status changes, and the clock from which conditions get their times."""

    now: Clock
    on_change: Callable[[str], None]
    """The callback for a changed status or a completed removal, called with the package's name; it must not block."""
    on_status: Callable[[str, PackageStatus, PackageStatus], None] | None = None
    """The callback for a changed status. It gets the package's name, the former status and the new status. If it is set,
    `on_change` is not called for a changed status.
    """

    def report(self, instance: Instance, before: PackageStatus) -> None:
        """Report that the status of a package has changed; ``before`` is the former status."""
        status = instance.status
        state, message, _tip = summarize(status)
        found_out = before.is_being_verified and not status.is_being_verified
        if found_out or state != summarize(before)[0]:
            log.info("%s: %s: %s", instance.id, state, message)
        if self.on_status is not None:
            self.on_status(instance.id.name, before, status)
        else:
            self.on_change(instance.id.name)
