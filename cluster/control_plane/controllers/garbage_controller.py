"""The garbage collector: watches owners and dependents of every kind, and asks the server before it believes an absence."""

from collections.abc import Iterable

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.control_plane.controllers.garbage import (
    FOREGROUND,
    ORPHAN,
    Owners,
    has_finalizer,
    is_deleted,
    owner_uids,
    reconcile_dependent,
    reconcile_owner,
    waits_for_dependents,
)
from wharfinger.cluster.control_plane.controllers.object_cache import Change, ObjectCache, key_of
from wharfinger.cluster.control_plane.controllers.writes import perform
from wharfinger.cluster.errors import ApiError, NotFoundError
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, JsonValue, find_list, find_str


class _ImpossibleOwnerError(Exception):
    """A cluster-scoped object names a namespaced owner, which says nothing of where that is: it is never collected."""


class GarbageController:
    """A dependent's owners are looked up in the cache, and on the server where it does not have them."""

    def __init__(self, client: ClusterClient, cache: ObjectCache) -> None:
        self.name = "garbage collector"
        self._client = client
        self._cache = cache

    def affected(self, change: Change) -> Iterable[ObjectKey]:
        """Objects with owners or being deleted, the dependents of what goes, and the owners that wait for them."""
        if change.after is not None and (owner_uids(change.after) or is_deleted(change.after)):
            yield change.key
        if change.after is None or (is_deleted(change.after) and has_finalizer(change.after, FOREGROUND)):
            for key, _ in self._cache.dependents(find_str(change.known, "metadata", "uid")):
                yield key
        if change.before is not None:
            for uid in owner_uids(change.before):
                owner = self._cache.key_of_uid(uid)
                if owner is not None:
                    yield owner

    async def reconcile(self, key: ObjectKey) -> float | None:
        """One object, as an owner and as a dependent."""
        obj = self._cache.get(key)
        if obj is None:
            return None
        uid = find_str(obj, "metadata", "uid")
        if is_deleted(obj):
            if has_finalizer(obj, ORPHAN) or has_finalizer(obj, FOREGROUND):
                known = [] if has_finalizer(obj, ORPHAN) else self._cache.dependents(uid)
                plan = reconcile_owner(key, obj, known or await self._all_dependents(key, uid))
                for write in plan.writes:
                    await perform(self._client, write)
            return None
        owners = await self._owners(key, obj)
        plan = reconcile_dependent(key, obj, owners, has_dependents=bool(self._cache.dependents(uid)))
        for write in plan.writes:
            await perform(self._client, write)
        return None

    async def _owners(self, key: ObjectKey, obj: JsonObject) -> Owners:
        solid: set[str] = set()
        waiting: set[str] = set()
        gone: set[str] = set()
        for reference in find_list(obj, "metadata", "ownerReferences"):
            uid = find_str(reference, "uid")
            try:
                owner = await self._owner(key, reference, uid)
            except _ImpossibleOwnerError:
                solid.add(uid)
                continue
            if owner is None:
                gone.add(uid)
            else:
                (waiting if waits_for_dependents(owner) else solid).add(uid)
        return Owners(frozenset(solid), frozenset(waiting), frozenset(gone))

    async def _owner(self, key: ObjectKey, reference: JsonValue, uid: str) -> JsonObject | None:
        known = self._cache.key_of_uid(uid)
        if known is not None:
            return self._cache.get(known)
        api_version, kind = find_str(reference, "apiVersion"), find_str(reference, "kind")
        resource = await self._client.resource_type(api_version, kind)
        if resource.namespaced and not key.namespace:
            raise _ImpossibleOwnerError
        namespace = key.namespace if resource.namespaced else ""
        try:
            found = await self._client.get(ObjectKey(resource, namespace, find_str(reference, "name")))
        except NotFoundError:
            return None
        return found if find_str(found, "metadata", "uid") == uid else None

    async def _all_dependents(self, key: ObjectKey, uid: str) -> list[tuple[ObjectKey, JsonObject]]:
        """The dependents as the server has them: one may have just been made, and must not be lost when set free."""
        found: list[tuple[ObjectKey, JsonObject]] = []
        for resource in self._cache.kinds():
            if key.namespace and not resource.namespaced:
                continue
            try:
                listed = await self._client.list(resource, key.namespace)
            except ApiError as error:
                if error.code not in {404, 405}:
                    raise
                continue
            found += ((key_of(resource, obj), obj) for obj in listed.items if uid in owner_uids(obj))
        return found
