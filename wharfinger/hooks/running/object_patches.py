"""The application of a hook's object operations (spec hook-protocol §3.1), one after the other, and the report of their
failures.

There is no transaction: after a failed operation the next operations are still tried, and nothing is rolled back. All operations
must be repeatable, because a hook that runs again requests them again. A *transient* failure means that the same operation may
succeed later.

If a ``JQPatch`` or ``CreateOrUpdate`` conflicts with another write (409), it is retried, up to :data:`ATTEMPTS` attempts. A
``Delete`` waits until a watch reports that the object is gone, at most for :data:`GONE_S`. So every operation ends in bounded
time.

With a ``mark``, objects that an operation creates are marked with the release, so that they are deleted together with it;
existing objects are not marked.

If ``namespace`` is given, the hook belongs to an Application in this namespace. An operation on another namespace, or on a
cluster-scoped object, is refused; an operation that names no namespace gets the Application's namespace.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import random
from typing import Final, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.releases.hook_made import HookMark
from wharfinger.cluster.watch.object_waits import Laggards, wait_gone
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, canonical_json, find_object, find_str, type_name
from wharfinger.hooks.running.object_operations import (
    Create,
    Delete,
    IfExists,
    JqPatch,
    JsonPatch,
    MergePatch,
    Operation,
    Target,
)
from wharfinger.hooks.watching.filters import FilterError, Filters
from wharfinger.kube.resource import ObjectKey, ResourceType, kind_of, name_of, namespace_of

ATTEMPTS: Final = 4
"""The limit of attempts if a write conflicts with another write."""
RETRY_S: Final = 0.01
"""The pause before the second attempt. Each further pause is five times as long. Each pause is prolonged at random by up to a
tenth.
"""
GONE_S: Final = 20.0
"""The longest time to wait until a deleted object is gone."""

NOT_OURS: Final = "an Application's hooks may only change objects of its own namespace"


class OperationError(Exception):
    """An operation cannot be done as requested; ``transient`` is true if the same operation may succeed later."""

    def __init__(self, why: str, *, transient: bool = False) -> None:
        super().__init__(why)
        self.transient = transient


@dataclass(frozen=True, slots=True)
class OperationFailure:
    """An operation that failed: its message, and whether a retry without a change can help."""

    message: str
    transient: bool

    def __str__(self) -> str:
        """Return the message, such as ``Create object v1/ConfigMap/ns/name: …``."""
        return self.message


async def apply_operations(
    client: ClusterClient,
    filters: Filters,
    operations: Iterable[Operation],
    *,
    namespace: str | None = None,
    mark: HookMark | None = None,
    jitter: Callable[[], float] = random,
) -> tuple[OperationFailure, ...]:
    """Apply all ``operations`` and return the failures, in order.

    ``namespace`` is the only namespace in which an Application's hook may change objects. ``jitter`` gives numbers in [0, 1).
    """
    patcher = _Patcher(client, filters, namespace, mark, jitter)
    failures: list[OperationFailure] = []
    for operation in operations:
        try:
            await patcher.do(operation)
        except (ClusterError, FilterError, OperationError) as error:
            failures.append(OperationFailure(f"{operation}: {error}", error.transient))
        except FormatError as error:
            failures.append(OperationFailure(f"{operation}: {error}", transient=False))
    return tuple(failures)


@dataclass(frozen=True, slots=True)
class _Patcher:
    client: ClusterClient
    filters: Filters
    namespace: str | None
    mark: HookMark | None
    jitter: Callable[[], float]

    async def do(self, operation: Operation) -> None:
        """Apply one operation. Raises ClusterError, FilterError, FormatError, OperationError."""
        match operation:
            case Create():
                await self._create(operation)
            case Delete():
                await self._delete(operation)
            case JqPatch() | MergePatch() | JsonPatch():
                try:
                    await self._patch(operation)
                except NotFoundError:
                    if not operation.ignore_missing:
                        raise
            case _:
                assert_never(operation)

    async def _patch(self, operation: JqPatch | MergePatch | JsonPatch) -> None:
        key = await self._key(operation.target)
        match operation:
            case JqPatch():
                await self._until_no_conflict(lambda: self._filter_once(key, operation))
            case MergePatch():
                await self.client.merge_patch(key, operation.patch, subresource=operation.subresource)
            case JsonPatch():
                await self.client.json_patch(key, operation.patch, subresource=operation.subresource)
            case _:
                assert_never(operation)

    async def _create(self, operation: Create) -> None:
        obj = await self._placed(operation.object)
        match operation.if_exists:
            case IfExists.FAIL:
                await self.client.create(self._marked(obj))
            case IfExists.LEAVE:
                try:
                    await self.client.create(self._marked(obj))
                except ConflictError as error:
                    _need_already_exists(error)
            case IfExists.REPLACE:
                await self._until_no_conflict(lambda: self._create_or_replace_once(obj))
            case _:
                assert_never(operation.if_exists)

    async def _create_or_replace_once(self, obj: JsonObject) -> None:
        """Create the object, or replace it if it exists. Raises ConflictError if another writer was faster, or deleted the object
        after it was found to exist.
        """
        try:
            await self.client.create(self._marked(obj))
        except ConflictError as error:
            _need_already_exists(error)
        else:
            return
        metadata, resource = find_object(obj, "metadata"), await self._resource(obj)
        key = ObjectKey(resource, namespace_of(obj) if resource.namespaced else "", name_of(obj))
        try:
            live = await self.client.get(key)
            version = find_str(live, "metadata", "resourceVersion")
            if self.mark is not None and self.mark.is_on(live):
                obj = self._marked(obj)
                metadata = find_object(obj, "metadata")
            await self.client.replace({**obj, "metadata": {**metadata, "resourceVersion": version}})
        except NotFoundError as error:
            raise ConflictError(409, "Conflict", f"{error.message}; the object was deleted meanwhile") from error

    async def _delete(self, operation: Delete) -> None:
        key = await self._key(operation.target)
        try:
            uid = find_str(await self.client.get(key), "metadata", "uid") if operation.wait else ""
            await self.client.delete(key, propagation=operation.propagation)
        except NotFoundError:
            return
        if operation.wait:
            await self._wait_gone(key, uid)

    async def _wait_gone(self, key: ObjectKey, uid: str) -> None:
        why = "still there"

        def note(laggards: Laggards) -> None:
            nonlocal why
            why = next((state.message for state in laggards.values()), why)

        with trio.move_on_after(GONE_S) as limit:
            await wait_gone(self.client, {key: uid}, progress=note)
        if limit.cancelled_caught:
            raise OperationError(f"{key} still exists after {GONE_S:g} s: {why}", transient=True)

    async def _filter_once(self, key: ObjectKey, operation: JqPatch) -> None:
        """Read the object, filter it, and write it if the filter changed anything."""
        old = await self.client.get(key)
        new = await self.filters.apply(operation.program, old)
        if not isinstance(new, dict):
            raise OperationError(f"the jq filter must return an object for the given object, not {type_name(new)}")
        if _identity(new) != _identity(old):
            raise OperationError("the jq filter must not change apiVersion, kind, namespace or name")
        if canonical_json(new) != canonical_json(old):
            await self.client.replace(new, subresource=operation.subresource)

    async def _until_no_conflict(self, attempt: Callable[[], Awaitable[None]]) -> None:
        delay_s = RETRY_S
        for _ in range(ATTEMPTS - 1):
            try:
                return await attempt()
            except ConflictError:
                await trio.sleep(delay_s * (1 + self.jitter() / 10))
                delay_s *= 5
        return await attempt()

    # -- places

    async def _key(self, target: Target) -> ObjectKey:
        resource = await self.client.find_resource(target.kind, target.api_version)
        namespace = self._namespace(resource, target.namespace)
        if resource.namespaced and not namespace:
            raise OperationError(f"{resource.group_kind} is namespaced: name a namespace")
        return ObjectKey(resource, namespace, target.name)

    async def _placed(self, obj: JsonObject) -> JsonObject:
        """Return the object of an operation, with a namespace if it is needed.

        In an Application's hook, an object that names no namespace gets the Application's namespace. Raises OperationError if
        the object does not belong to this namespace.
        """
        if self.namespace is None:
            return obj
        namespace = self._namespace(await self._resource(obj), namespace_of(obj))
        return {**obj, "metadata": {**find_object(obj, "metadata"), "namespace": namespace}}

    def _marked(self, obj: JsonObject) -> JsonObject:
        return obj if self.mark is None else self.mark.put_on(obj)

    async def _resource(self, obj: JsonObject) -> ResourceType:
        return await self.client.resource_type(*kind_of(obj))

    def _namespace(self, resource: ResourceType, asked: str) -> str:
        """Return the namespace of an object of this kind. Raises OperationError if it is not the Application's own."""
        if self.namespace is None:
            return asked if resource.namespaced else ""
        if not resource.namespaced:
            raise OperationError(f"{resource.group_kind} is cluster-scoped: {NOT_OURS} ({self.namespace})")
        if asked not in {"", self.namespace}:
            raise OperationError(f"namespace {asked} is not the Application's own: {NOT_OURS} ({self.namespace})")
        return self.namespace


def _identity(obj: JsonObject) -> tuple[str, str, str, str]:
    return (*kind_of(obj), namespace_of(obj), name_of(obj))


def _need_already_exists(error: ConflictError) -> None:
    """Ignore the conflict of a creation if the object exists already. Otherwise raise it, because the object was not created."""
    if error.reason != "AlreadyExists":
        raise error
