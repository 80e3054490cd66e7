"""The deletion of the objects that a package's hooks made, after the package's release was uninstalled.

The package's recorded state has the kinds of these objects; a kind is recorded before the first object of this kind is made.
Each object has the mark of :mod:`~wharfinger.cluster.releases.hook_made`. An object with ``helm.sh/resource-policy: keep`` is
kept. Objects that hold data, such as PersistentVolumeClaims, are kept unless the package's deletion policy allows their
deletion; the same holds for the objects of a release.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress

from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError, UnknownKindError
from wharfinger.cluster.objects.ownership import PROTECTED, Owner, is_kept
from wharfinger.cluster.releases.hook_made import HookMark
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of
from wharfinger.runtime.lifecycle.package_state import PackageStateError
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.release_policy import DeletionPolicy

log = logging.getLogger(__name__)


async def collect_made(instance: Instance, tools: Tools) -> None:
    """Delete the objects that the package's hooks made, as far as its deletion policy allows.

    Raises ClusterError, but only after all kinds were tried.
    """
    try:
        record = await instance.recorded(tools)
    except PackageStateError as error:
        log.warning(
            "%s: the objects that its hooks made are kept, because the record of their kinds cannot be read: %s",
            instance.id,
            error,
        )
        return
    policy = instance.removal.deletion
    if not record.state.made or policy is DeletionPolicy.ORPHAN:
        return
    client = instance.acting(tools)
    mark, problems = HookMark(Owner(instance.id.release, instance.id.namespace)), list[ClusterError]()
    for resource in await _kinds(record.state.made, tools):
        if resource.group_kind in PROTECTED and policy is not DeletionPolicy.DELETE_ALL:
            continue
        try:
            for key, obj in await _made(instance, tools, mark, resource):
                with suppress(NotFoundError, ConflictError):  # gone, or another object has the name by now
                    await client.delete(key, uid=find_str(obj, "metadata", "uid"))
                    log.info("%s: deleted %s, which a hook of the package had created", instance.id, key)
        except ClusterError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    await record.update(lambda state: state.collected())


async def _made(
    instance: Instance, tools: Tools, mark: HookMark, resource: ResourceType
) -> list[tuple[ObjectKey, JsonObject]]:
    where = instance.id.namespace if isinstance(instance.id, AppId) and resource.namespaced else ""
    listed = await tools.cluster.list(resource, where, label_selector=mark.selector)
    return list(_to_delete(listed.items, resource, mark))


def _to_delete(
    objects: tuple[JsonObject, ...], resource: ResourceType, mark: HookMark
) -> Iterator[tuple[ObjectKey, JsonObject]]:
    for obj in objects:
        if mark.is_on(obj) and not is_kept(obj) and not find_str(obj, "metadata", "deletionTimestamp"):
            yield ObjectKey(resource, namespace_of(obj) if resource.namespaced else "", name_of(obj)), obj


async def _kinds(made: frozenset[str], tools: Tools) -> list[ResourceType]:
    """Return the kinds that the API server still serves. If a kind's definition is gone, the kind's objects are gone, too."""
    found: list[ResourceType] = []
    for entry in sorted(made):
        api_version, _, kind = entry.rpartition("/")
        with suppress(UnknownKindError):
            found.append(await tools.cluster.resource_type(api_version, kind))
    return found
