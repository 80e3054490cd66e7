"""The scope of Applications: their own namespace, or the whole cluster.

By default, an Application reads and writes only in its own namespace. A namespace with the label ``wharfinger.dev/cluster-scope:
allowed`` lets its Applications reach the whole cluster; only users who may edit namespaces can set the label. With the option
``--application-scope cluster``, which is meant for a daemon with a single tenant, all Applications reach the whole cluster.

One watch follows the namespaces that have the label. The scope is part of each Application's desired state, so adding or
removing the label changes the desired state, and wakes parked tasks. Until the labels are known, no namespace counts as having
the label. This module only determines the scope; :mod:`wharfinger.cluster.objects.scope` refuses objects outside of it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.objects.scope import ALLOWED, CLUSTER_SCOPE_LABEL
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.kube.resource import ObjectKey, ResourceType

NAMESPACE: Final = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)


class ApplicationScope(StrEnum):
    """The default scope of Applications, for namespaces without the label."""

    NAMESPACE = "namespace"
    CLUSTER = "cluster"


class ScopeLabels:
    """The namespaces whose Applications reach the whole cluster. Made by `open_scope_labels`."""

    def __init__(self, scope: ApplicationScope, informer: Informer) -> None:
        self.informer = informer
        self._scope = scope

    def allows(self, namespace: str) -> bool:
        """Return whether Applications in this namespace may have objects in the whole cluster."""
        return self._scope is ApplicationScope.CLUSTER or self._labelled(namespace)

    async def follow(self, changed: Callable[[str], None]) -> None:
        """Call ``changed`` with the name of each namespace whose ``cluster-scope`` label is added or removed, until
        cancelled.
        """
        with self.informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    changed(key.name)

    def _labelled(self, namespace: str) -> bool:
        return self.informer.get(ObjectKey(NAMESPACE, "", namespace)) is not None


@asynccontextmanager
async def open_scope_labels(client: ClusterClient, scope: ApplicationScope) -> AsyncIterator[ScopeLabels]:
    """Follow the ``cluster-scope`` labels of namespaces while the body runs. The body does not wait for the first list of
    namespaces.
    """
    async with open_informer(client, NAMESPACE, label_selector=f"{CLUSTER_SCOPE_LABEL}={ALLOWED}") as informer:
        yield ScopeLabels(scope, informer)
