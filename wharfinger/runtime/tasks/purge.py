"""The task Purge. After a package's release is uninstalled, it deletes objects that the package's workloads left behind in the
package's namespace (spec/runtime §8.7).

A package declares in its values the kinds that its workloads make at run time::

    orphanResources:
      - {kind: PersistentVolumeClaim, version: v1}
      - {kind: Database, version: db.example.com/v1}

A version without a group means every group that has the kind in this version. When the release is gone, the task deletes the
objects of these kinds in the package's namespace whose label ``app.kubernetes.io/instance`` names the release. Invalid entries
of the declaration are logged and skipped, because a retry would read the same entries. Objects are purged only when an
Application is removed, because a Module may share its namespace with other packages.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError, UnknownKindError
from wharfinger.cluster.objects.ownership import is_kept, owner_of
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.package.events import Removing
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.identity import AppId

log = logging.getLogger(__name__)

DECLARATION: Final = "orphanResources"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
MAX_KINDS: Final = 100
PURGE: Final = "purge"


async def purge(instance: Instance, tools: Tools, host: Host) -> None:
    """Delete the objects of the kinds that the package's values declare in ``orphanResources``. If a deletion fails, raise
    ClusterError after the other deletions were tried.
    """
    steps = instance.journalled()
    declared = isinstance(instance.id, AppId) and bool(instance.configuration.values.get(DECLARATION))
    if not declared or instance.removal.disowned or steps.done(PURGE) is not None:
        return
    with steps.taking(PURGE):
        host.emit(instance, Removing("Removing", "deleting the objects that the package's workloads left behind"))
        problems: list[ClusterError] = []
        for resource in await _kinds(instance, tools):
            try:
                await _purge_kind(instance, tools, resource, problems)
            except ClusterError as error:
                problems.append(error)
        if problems:
            raise problems[0]


async def _purge_kind(instance: Instance, tools: Tools, resource: ResourceType, problems: list[ClusterError]) -> None:
    namespace, label = instance.id.namespace, f"{INSTANCE_LABEL}={instance.id.release}"
    client = instance.acting(tools)
    for obj in (await tools.cluster.list(resource, namespace, label_selector=label)).items:
        if not _is_orphan(obj, instance):
            continue
        key = ObjectKey(resource, namespace, find_str(obj, "metadata", "name"))
        try:
            with suppress(NotFoundError, ConflictError):  # the object is gone, or another object has its name by now
                await client.delete(key, uid=find_str(obj, "metadata", "uid"))
                log.info("%s: deleted %s, which the package's workloads had left behind", instance.id, key)
        except ClusterError as error:
            problems.append(error)


def _is_orphan(obj: JsonObject, instance: Instance) -> bool:
    """Return whether an object is to be deleted: no policy keeps it, it is not being deleted already, and it belongs to no
    other release.
    """
    owner = owner_of(obj)
    foreign = bool(owner.name) and (owner.name, owner.namespace) != (instance.id.release, instance.id.namespace)
    return not find_str(obj, "metadata", "deletionTimestamp") and not is_kept(obj) and not foreign


async def _kinds(instance: Instance, tools: Tools) -> list[ResourceType]:
    """Return the kinds that the package's values declare in ``orphanResources``, if they are namespaced and the API server
    serves them.
    """
    served = await tools.cluster.api_versions()
    found: dict[ResourceType, None] = {}
    for kind, version in _declared(instance):
        wanted = [entry for entry in served if _names(entry, kind, version)]
        for entry in wanted or [f"{version}/{kind}"]:
            with suppress(UnknownKindError):
                resource = await tools.cluster.resource_type(entry.rpartition("/")[0], kind)
                if resource.namespaced:
                    found[resource] = None
    return list(found)


def _names(served: str, kind: str, version: str) -> bool:
    """Return whether a kind such as ``apps/v1/Deployment`` is the declared kind in the declared version. A declared version
    ``v1`` matches every group; ``apps/v1`` matches only the group ``apps``.
    """
    api_version, _, name = served.rpartition("/")
    return name == kind and (
        api_version == version or ("/" not in version and api_version.rpartition("/")[2] == version)
    )


def _declared(instance: Instance) -> Iterator[tuple[str, str]]:
    try:
        entries = find_list(instance.configuration.values, DECLARATION)
    except FormatError as error:
        log.warning("%s: %s; the declaration is skipped", instance.id, error)
        return
    for number, entry in enumerate(entries[:MAX_KINDS]):
        try:
            kind, version = find_str(entry, "kind"), find_str(entry, "version")
        except FormatError as error:
            log.warning("%s: %s[%d]: %s; the entry is skipped", instance.id, DECLARATION, number, error)
            continue
        if not kind or not version:
            log.warning(
                "%s: %s[%d]: kind and version are required; the entry is skipped", instance.id, DECLARATION, number
            )
            continue
        yield kind, version
