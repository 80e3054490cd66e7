"""The scope of a release: the whole cluster, or only its own namespace.

The release of an Application is confined to its namespace unless a label of the namespace or an option of the daemon allows more.
A confined release may have only objects of namespaced kinds in its namespace: no object of a cluster-scoped kind, no object of
another namespace, no definition in ``crds/``, and no chart hook outside of the namespace. Discovery determines whether a kind is
namespaced, because a manifest cannot be trusted to state it. A kind that discovery does not know is judged once it is known; none
of its objects can be written before that.

The scope is enforced twice. `check_scope` checks all objects of an install or upgrade before the first write, so that no
operation is carried out in part. `check_key` checks every single apply, even for a row that was made from a record, because
users of the namespace may be able to write records.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ReleaseError, UnknownKindError
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.objects.desired import DesiredObject
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey, ResourceType, kind_of, name_of, namespace_of

log = logging.getLogger(__name__)

CLUSTER_SCOPE_LABEL: Final = "wharfinger.dev/cluster-scope"
"""A label of a namespace; its value ``allowed`` lets the Applications in the namespace have objects in the whole cluster."""
ALLOWED: Final = "allowed"
MAX_NAMED: Final = 5
"""The largest number of objects that a message names."""

Confined = Callable[[Owner], bool]
"""A function that returns whether a release may have only objects of its own namespace."""


class OutsideNamespaceError(ReleaseError):
    """A release that is confined to its namespace contains an object outside of it. A retry helps only after such objects were
    allowed, or the release was changed.
    """


def unconfined(_owner: Owner) -> bool:
    """Return False, so that every release may have objects in the whole cluster."""
    return False


def remedy(namespace: str) -> str:
    """Return the text that ends a message about objects outside of an Application's namespace. It explains how to allow them."""
    return (
        f"install the package as a Module, or allow such objects for the namespace: "
        f"kubectl label namespace {namespace} {CLUSTER_SCOPE_LABEL}={ALLOWED}"
    )


CLUSTER_SCOPED: Final = " (cluster-scoped)"
"""The text that messages append to the name of a cluster-scoped object."""


def is_outside(key: ObjectKey, owner: Owner) -> bool:
    """Return whether an object lies outside of the namespace of its release."""
    return not key.resource.namespaced or key.namespace != owner.namespace


def check_key(key: ObjectKey, owner: Owner) -> None:
    """Raise OutsideNamespaceError for an object outside of the namespace of its release."""
    if is_outside(key, owner):
        raise _refusal(owner, [key])


async def check_scope(
    client: ClusterClient, owner: Owner, objects: Iterable[JsonObject], definitions: Iterable[JsonObject] = ()
) -> None:
    """Check that none of these objects lies outside of the namespace of the release.

    Raises OutsideNamespaceError, which names the first objects that lie outside, and the errors of the client. ``objects``
    contains the items of Lists, not the Lists themselves; ``definitions`` are those of ``crds/``. An object is ignored if the
    client raises UnknownKindError for its kind.
    """
    outside = [key for key in await _keys(client, owner, [*definitions, *objects]) if is_outside(key, owner)]
    if outside:
        raise _refusal(owner, outside)


async def outside_of(client: ClusterClient, owner: Owner, objects: Sequence[JsonObject]) -> list[bool]:
    """Return, for each object, whether it lies outside of the namespace of the release. An object whose kind is not known yet
    counts as inside.
    """
    return [any(is_outside(key, owner) for key in await _keys(client, owner, [obj])) for obj in objects]


async def _keys(client: ClusterClient, owner: Owner, objects: Iterable[JsonObject]) -> list[ObjectKey]:
    known: dict[tuple[str, str], ResourceType | None] = {}
    keys: list[ObjectKey] = []
    for obj in objects:
        kind = kind_of(obj)
        if kind not in known:
            try:
                known[kind] = await with_retries(partial(client.resource_type, *kind))
            except UnknownKindError:
                known[kind] = None
        resource = known[kind]
        if resource is not None:
            namespace = (namespace_of(obj) or owner.namespace) if resource.namespaced else ""
            keys.append(ObjectKey(resource, namespace, name_of(obj)))
    return keys


def only_inside(owner: Owner, rows: Sequence[DesiredObject]) -> tuple[DesiredObject, ...]:
    """Return the rows whose objects lie inside of the namespace of their release, and log the others.

    Rows that were made from a record need this check, because any user who may write Secrets in the namespace can write a record.
    """
    outside = [row.key for row in rows if is_outside(row.key, owner)]
    if outside:
        log.warning(
            "release %s: its record names objects outside of the namespace %s, to which an Application is confined: %s; "
            "they are neither watched nor corrected",
            owner,
            owner.namespace,
            _named(outside),
        )
    return tuple(row for row in rows if not is_outside(row.key, owner))


def _named(keys: Sequence[ObjectKey]) -> str:
    return listed((f"{key}{'' if key.resource.namespaced else CLUSTER_SCOPED}" for key in keys), MAX_NAMED)


def _refusal(owner: Owner, outside: Sequence[ObjectKey]) -> OutsideNamespaceError:
    verb = "is" if len(outside) == 1 else "are"
    return OutsideNamespaceError(
        f"release {owner}: {_named(outside)} {verb} outside of the namespace {owner.namespace}, to which an Application is "
        f"confined; nothing was applied; {remedy(owner.namespace)}"
    )
