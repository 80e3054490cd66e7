"""The search for the remaining objects of a release without a record, in all served kinds, by the release's label.

A release's records are in its namespace. If that namespace or only the records are deleted, nothing lists the release's other
objects any more: objects without a namespace, and objects in other namespaces. Each of these objects has a label with the
name of its release, so the search lists each kind by that label. The search takes at least one request for each served kind, and
is made only to remove a release that has no record.

The label and the annotations of an object may be copied from another object, so an object belongs to the release only if we
applied it (:func:`~wharfinger.cluster.apply.removal.is_ours`).
"""

import logging
from functools import partial
from http import HTTPStatus

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError
from wharfinger.cluster.api.http_errors import NotServedError
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.apply.removal import is_ours
from wharfinger.cluster.objects.desired import DesiredObject, desired_object
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.lookup import CONCURRENCY
from wharfinger.cluster.objects.ownership import RELEASE_LABEL, Owner
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of

log = logging.getLogger(__name__)

_UNWATCHED = DriftPolicy(DriftMode.OFF)


async def find_remaining(client: ClusterClient, owner: Owner, manager: str) -> tuple[DesiredObject, ...]:
    """Return a row, with the present content, for each existing object of the release that ``manager`` applied.

    Objects that are being deleted are left out. Kinds that cannot be listed (not permitted, or their API server does not
    answer) are skipped, with a warning: the release most probably has no objects of these kinds, so its removal must not wait
    until they can be listed. If a list fails for another reason, its ClusterError is raised.
    """
    served = await with_retries(client.served_kinds)
    hidden = list(served.silent)

    async def look(resource: ResourceType) -> list[DesiredObject]:
        selector = f"{RELEASE_LABEL}={owner.name}"
        try:
            listed = await with_retries(partial(client.list, resource, label_selector=selector))
        except NotServedError:
            return []
        except ApiError as error:
            if error.code != HTTPStatus.FORBIDDEN:
                raise
            hidden.append(resource.group_kind)
            return []
        return [
            desired_object(ObjectKey(resource, namespace_of(obj), name_of(obj)), owner, obj, _UNWATCHED)
            for obj in listed.items
            if is_ours(obj, owner, manager)
        ]

    kinds = [kind for kind in served.kinds if kind.api_version not in served.silent]
    found = {row.identity: row for rows in await each(kinds, look, limit=CONCURRENCY) for row in rows}
    if hidden:
        log.warning(
            "release %s has no record, so its objects are searched by label; these kinds cannot be listed: %s; "
            "search them for objects with the label %s=%s",
            owner,
            ", ".join(sorted(hidden)),
            RELEASE_LABEL,
            owner.name,
        )
    return tuple(found.values())
