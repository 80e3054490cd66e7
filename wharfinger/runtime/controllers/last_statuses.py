"""The statuses that are still to be written when the daemon stops.

The controllers end before the queues drain, so that nothing new begins. The results of tasks that end during the drain are
written here, once the queues are empty. Otherwise a package that became Ready during the stop would show its old status until
the next start.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, NotFoundError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import find_object
from wharfinger.runtime.resources.identity import package_id
from wharfinger.runtime.resources.resources import is_deleting, resource_key
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.writer import StatusWriter

WRITE_S: Final = 5.0
"""The time limit of all writes together; statuses that are not written by then are written at the next start."""
AT_ONCE: Final = 8

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LastStatuses:
    """The writer of the statuses that have not been written when the daemon stops. ``status_of`` returns a package's status; it
    is set once the runtime exists.
    """

    client: ClusterClient
    writer: StatusWriter
    status_of: Callable[[str], PackageStatus | None] = lambda _: None

    async def write(self) -> None:
        """Write the statuses that have changed since they were last written or found to be up to date. Failures are logged."""
        names = sorted(self.writer.unwritten)
        with trio.move_on_after(WRITE_S) as limit:
            await each(names, self._write_one, limit=AT_ONCE)
        if limit.cancelled_caught:
            log.warning(
                "the statuses of %d packages had to be written before the stop, and not all of them were written in time; the "
                "next start writes the rest",
                len(names),
            )

    async def _write_one(self, name: str) -> None:
        status = self.status_of(name)
        if status is None or status.is_being_verified:
            return
        key = resource_key(package_id(name))
        try:
            obj = await self.client.get(key)
            patch = statuses.difference(status, find_object(obj, "status"))
            if patch and not is_deleting(obj):
                await self.client.merge_patch(key, {"status": patch}, subresource="status")
        except NotFoundError:
            return
        except (ClusterError, FormatError) as error:
            log.info("%s: cannot write the last status now, so the next start writes it: %s", name, error)


@asynccontextmanager
async def open_last_statuses(client: ClusterClient, writer: StatusWriter) -> AsyncGenerator[LastStatuses, None]:
    """Write the last statuses when the body ends without an error or a cancellation.

    After a cancellation nothing is written, because this daemon may have lost the leadership, and another daemon may be writing.
    """
    last = LastStatuses(client, writer)
    yield last
    await last.write()
