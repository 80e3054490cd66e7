"""The bootstrap marker: a ConfigMap that the setup of a cluster creates as its last step.

Until the ConfigMap exists, packages of the default order (999), which are not part of the bootstrap, stay off (spec/runtime
§4.2). A cluster stays bootstrapped even if a user deletes the ConfigMap: once the ConfigMap was seen, it is not watched any
more, and only the next start of a daemon checks again.

Nothing is decided before the first list has arrived, because a daemon that starts must not disable the packages of a running
cluster.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.kube.resource import ObjectKey

log = logging.getLogger(__name__)

PATIENCE_S: Final = 5.0
"""The time in seconds after which the log says why the first list has not arrived, and that nothing is installed meanwhile."""


class Bootstrap:
    """The state of the cluster's bootstrap: it is finished once the ConfigMap ``marker`` exists. Made by `open_bootstrap`."""

    def __init__(self, informer: Informer, marker: ObjectKey) -> None:
        """Prepare to look for the ConfigMap ``marker`` in the informer's cache. Only `open_bootstrap` calls this."""
        self._informer = informer
        self._marker = marker

    @property
    def finished(self) -> bool:
        """True if the ConfigMap that marks the end of the bootstrap exists, as far as the informer knows."""
        return self._informer.get(self._marker) is not None

    async def wait_finished(self) -> None:
        """Wait until the ConfigMap that marks the end of the bootstrap exists."""
        with self._informer.changes() as changes:
            while not self.finished:
                await changes.wait()
        log.info("the cluster is bootstrapped: %s exists", self._marker)


@asynccontextmanager
async def open_bootstrap(client: ClusterClient, marker: ObjectKey) -> AsyncIterator[Bootstrap]:
    """Watch the ConfigMap ``marker`` while the body runs. The body begins once it is known whether the ConfigMap exists."""
    async with open_informer(
        client, marker.resource, marker.namespace, field_selector=f"metadata.name={marker.name}"
    ) as informer:
        while True:
            with trio.move_on_after(PATIENCE_S) as patience:
                await informer.wait_synced()
            if not patience.cancelled_caught:
                break
            why = informer.statistics().last_error or "no answer yet"
            log.warning("nothing is installed until it is known whether %s exists: %s; retrying", marker, why)
        bootstrap = Bootstrap(informer, marker)
        if not bootstrap.finished:
            log.info("the cluster is not bootstrapped until %s exists", marker)
        yield bootstrap
