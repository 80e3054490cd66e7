"""Lookups about a release's objects: their keys, their present state in the cluster, and the rows for the objects of a record."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ConflictError, NotFoundError, SilentKindError, UnknownKindError
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.objects.desired import DesiredObject, Identity, desired_object
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.install_order import in_install_order
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, kind_of, name_of, namespace_of

CRD: Final = "CustomResourceDefinition.apiextensions.k8s.io"
CONCURRENCY: Final = 16


async def key_of(client: ClusterClient, owner: Owner, obj: JsonObject) -> ObjectKey:
    """Return the key of an object of a release. Raises UnknownKindError if the server does not serve the object's kind."""
    resource = await with_retries(partial(client.resource_type, *kind_of(obj)))
    namespace = (namespace_of(obj) or owner.namespace) if resource.namespaced else ""
    return ObjectKey(resource, namespace, name_of(obj))


async def look_up(client: ClusterClient, key: ObjectKey) -> JsonObject | None:
    """Return an object as it is in the cluster; None if it does not exist."""
    with suppress(NotFoundError):
        return await with_retries(partial(client.get, key), also=(ConflictError,))
    return None


async def is_namespace_deleted(client: ClusterClient, name: str) -> bool:
    """Return whether a namespace is being deleted, or does not exist (any more)."""
    resource = await with_retries(partial(client.resource_type, "v1", "Namespace"))
    namespace = await look_up(client, ObjectKey(resource, "", name))
    return namespace is None or bool(find_str(namespace, "metadata", "deletionTimestamp"))


async def rows_of(
    client: ClusterClient, owner: Owner, objects: Iterable[JsonObject], drift: DriftPolicy
) -> tuple[DesiredObject, ...]:
    """Return the rows of the objects of a record, without objects of kinds that are no longer served.

    Raises SilentKindError if it is not known whether a kind is served, and the errors of the client.
    """
    rows: dict[Identity, DesiredObject] = {}
    for obj in in_install_order(objects):
        try:
            key = await key_of(client, owner, obj)
        except SilentKindError:
            raise
        except UnknownKindError:
            continue
        row = desired_object(key, owner, obj, drift)
        rows[row.identity] = row
    return tuple(rows.values())
