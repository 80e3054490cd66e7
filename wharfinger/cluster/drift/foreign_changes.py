"""What somebody else did to a release's records: the release is left alone, and who it was is told, as far as that is true.

A record that is gone does not say who deleted it. Most often nobody did: its namespace is being deleted, and everything in it
with it. So the namespace is looked at before anybody is named; where it goes, or is gone, the log says so, and nobody is.
"""

import logging
from collections.abc import Callable

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.objects.lookup import namespace_goes
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release_heads import ForeignChange

log = logging.getLogger(__name__)


class ForeignChanges:
    """``left_alone`` is told at once whose release is not ours any more; ``told`` is told who had it last, in which revision."""

    def __init__(
        self,
        client: ClusterClient,
        nursery: trio.Nursery,
        *,
        left_alone: Callable[[Owner], None],
        told: Callable[[Owner, int, str], None],
    ) -> None:
        """The nursery is that of whoever opens this, and runs what looks at namespaces."""
        self._client = client
        self._nursery = nursery
        self._left_alone = left_alone
        self._told = told

    def heard(self, change: ForeignChange) -> None:
        """Something was done. Never waits."""
        self._left_alone(change.owner)
        if change.gone and not change.by_helm:
            self._nursery.start_soon(self._tell_gone, change, name=f"records of {change.owner}")
        else:
            self._told(change.owner, change.head.revision, change.by)

    async def _tell_gone(self, change: ForeignChange) -> None:
        try:
            goes = await namespace_goes(self._client, change.owner.namespace)
        except ClusterError as error:
            log.info("release %s: whether its namespace is being deleted cannot be known: %s", change.owner, error)
            goes = False
        if goes:
            log.info("release %s: its records are gone: the namespace is being deleted", change.owner)
        else:
            self._told(change.owner, change.head.revision, change.by)
