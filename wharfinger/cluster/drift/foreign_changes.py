"""Changes of a release's records by another writer. After such a change, drift of the release is no longer corrected, and the
change is reported with its writer, as far as the writer is known.

A deleted record does not name the process that deleted it. Most often the record's namespace is being deleted with everything
in it. So the namespace is read before a deletion is reported; if the namespace is being deleted or is gone, the deletion is only
logged.
"""

import logging
from collections.abc import Callable

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.objects.lookup import is_namespace_deleted
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release_heads import ForeignChange

log = logging.getLogger(__name__)


class ForeignChanges:
    """The changes of releases' records by other writers.

    ``left_alone`` is called immediately at each change, with the owner of the release. ``told`` is called once the change is to
    be reported, with the owner, the changed revision, and the writer in words.
    """

    def __init__(
        self,
        client: ClusterClient,
        nursery: trio.Nursery,
        *,
        left_alone: Callable[[Owner], None],
        told: Callable[[Owner, int, str], None],
    ) -> None:
        """Initialize the reporter; tasks that read namespaces run in the nursery of the caller."""
        self._client = client
        self._nursery = nursery
        self._left_alone = left_alone
        self._told = told

    def heard(self, change: ForeignChange) -> None:
        """Report a change by another writer. Never waits."""
        self._left_alone(change.owner)
        if change.gone and not change.by_helm:
            self._nursery.start_soon(self._report_gone, change, name=f"records of {change.owner}")
        else:
            self._told(change.owner, change.head.revision, change.by)

    async def _report_gone(self, change: ForeignChange) -> None:
        try:
            goes = await is_namespace_deleted(self._client, change.owner.namespace)
        except ClusterError as error:
            log.info("release %s: cannot determine whether its namespace is being deleted: %s", change.owner, error)
            goes = False
        if goes:
            log.info("release %s: its records are gone, because its namespace is being deleted", change.owner)
        else:
            self._told(change.owner, change.head.revision, change.by)
