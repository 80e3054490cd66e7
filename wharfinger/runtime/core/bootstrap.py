"""Whether the cluster is bootstrapped: it is once a ConfigMap is there that whoever sets the cluster up creates at the end.

Until then packages that are not part of the bootstrap, all those of the last order, stay off (spec/runtime §4.2). It is a latch,
as it is where the idea is from: what was bootstrapped once does not stop being so when somebody tidies a ConfigMap away. Only the
next start of a daemon looks again. After that first sight nothing is watched any more.

The first look has to come back before anything is decided at all: a daemon that starts anew must not put a running cluster's
packages to rest until its first list has arrived.
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
"""After so long without a first list the log says why, and that nothing is installed meanwhile."""


class Bootstrap:
    """What is known of the ConfigMap. Use `open_bootstrap`."""

    def __init__(self, informer: Informer, marker: ObjectKey) -> None:
        """Private to `open_bootstrap`."""
        self._informer = informer
        self._marker = marker

    @property
    def finished(self) -> bool:
        """Whether the ConfigMap is there, as last seen."""
        return self._informer.get(self._marker) is not None

    async def wait_finished(self) -> None:
        """Return once it is there; at once if it is."""
        with self._informer.changes() as changes:
            while not self.finished:
                await changes.wait()
        log.info("the cluster is bootstrapped: %s is there", self._marker)


@asynccontextmanager
async def open_bootstrap(client: ClusterClient, marker: ObjectKey) -> AsyncIterator[Bootstrap]:
    """Follow ``marker``, a ConfigMap, while the body runs, which begins once the cluster has said whether it is there."""
    async with open_informer(
        client, marker.resource, marker.namespace, field_selector=f"metadata.name={marker.name}"
    ) as informer:
        while True:
            with trio.move_on_after(PATIENCE_S) as patience:
                await informer.wait_synced()
            if not patience.cancelled_caught:
                break
            why = informer.statistics().last_error or "no answer yet"
            log.warning("nothing is installed before it is known whether %s is there: %s; trying on", marker, why)
        bootstrap = Bootstrap(informer, marker)
        if not bootstrap.finished:
            log.info("the cluster is not bootstrapped before %s is there", marker)
        yield bootstrap
