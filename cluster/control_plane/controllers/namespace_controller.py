"""The controller of namespaces: furnishes those that live, empties those that are being deleted."""

from collections.abc import Iterable

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.control_plane.controllers.namespaces import (
    ROOT_CA,
    is_terminating,
    reconcile_active,
    reconcile_terminating,
)
from wharfinger.cluster.control_plane.controllers.object_cache import Change, ObjectCache, key_of
from wharfinger.cluster.control_plane.controllers.worker import Clock
from wharfinger.cluster.control_plane.controllers.writes import perform
from wharfinger.cluster.errors import ApiError
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject

_FURNITURE = frozenset({("ServiceAccount", "default"), ("ConfigMap", ROOT_CA)})


class NamespaceController:
    """What is in a namespace that is being deleted is read from the server, not from the cache: nothing may be missed."""

    def __init__(self, client: ClusterClient, cache: ObjectCache, now: Clock, root_ca: str) -> None:
        self.name = "Namespace"
        self._client = client
        self._cache = cache
        self._now = now
        self._root_ca = root_ca

    def affected(self, change: Change) -> Iterable[ObjectKey]:
        """A namespace itself; the namespace whose furniture went; one that is being deleted, when something in it went."""
        kind, namespace = change.key.resource.group_kind, change.key.namespace
        if kind == self.name:
            yield change.key
        elif namespace and change.after is None:
            for key, obj in self._cache.of_kind(self.name):
                if key.name == namespace and (is_terminating(obj) or (kind, change.key.name) in _FURNITURE):
                    yield key

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Furnish or empty one namespace."""
        namespace = self._cache.get(key)
        if namespace is None:
            return None
        if is_terminating(namespace):
            plan = reconcile_terminating(key, namespace, await self._content(key.name), self._now())
        else:
            furniture = {
                (one.resource.group_kind, one.name)
                for kind, name in _FURNITURE
                for one, _ in self._cache.of_kind(kind, key.name)
                if one.name == name
            }
            plan = reconcile_active(
                namespace,
                has_account=("ServiceAccount", "default") in furniture,
                has_root_ca=("ConfigMap", ROOT_CA) in furniture,
                root_ca=self._root_ca,
            )
        for write in plan.writes:
            await perform(self._client, write)
        return plan.again_s

    async def _content(self, namespace: str) -> list[tuple[ObjectKey, JsonObject]]:
        """All objects in a namespace, of every mirrored kind."""
        found: list[tuple[ObjectKey, JsonObject]] = []
        for resource in self._cache.kinds():
            if not resource.namespaced:
                continue
            try:
                listed = await self._client.list(resource, namespace)
            except ApiError as error:
                if error.code not in {404, 405}:
                    raise
                continue
            found += ((key_of(resource, obj), obj) for obj in listed.items)
        return found
