"""ControllerRevisions: the templates that a StatefulSet or DaemonSet had, numbered.

A template that was there before gets its old revision again, as the newest. Those beyond ``revisionHistoryLimit`` that no Pod
is of are forgotten.
"""

from collections.abc import Collection, Iterable

from wharfinger.control_plane.controllers.framework.objects import (
    REVISIONS,
    key_of,
    labels_of,
    name_of,
    owner_reference,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.formats.json.value import JsonObject, find, find_int, find_object, find_str


def revisions_of(state: ClusterState, owner: JsonObject) -> list[JsonObject]:
    """An owner's revisions, oldest first."""
    return sorted(state.owned(REVISIONS, owner), key=lambda one: (find_int(one, "revision"), name_of(one)))


def synced(
    state: ClusterState, owner: JsonObject, data: JsonObject, labels: JsonObject, digest: str, annotations: JsonObject
) -> JsonObject | None:
    """The revision of an owner's present template, which is made or becomes the newest; None where it cannot be made."""
    known = revisions_of(state, owner)
    newest = find_int(known[-1], "revision") if known else 0
    for one in known:
        if find(one, "data") == data:
            if find_int(one, "revision") == newest:
                return one
            return state.update(key_of(REVISIONS, one), {**one, "revision": newest + 1})
    metadata: JsonObject = {
        "name": f"{name_of(owner)}-{digest}",
        "namespace": find_str(owner, "metadata", "namespace"),
        "labels": labels,
        "ownerReferences": [owner_reference(owner)],
    }
    if annotations:
        metadata["annotations"] = annotations
    return state.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "data": data,
            "revision": newest + 1,
        }
    )


def forget_old(state: ClusterState, owner: JsonObject, used: Collection[str]) -> None:
    """Delete the oldest revisions beyond the limit; ``used`` are the names of those that are kept whatever their age."""
    spare = [one for one in revisions_of(state, owner) if name_of(one) not in used]
    surplus = len(spare) - find_int(owner, "spec", "revisionHistoryLimit", default=10)
    for one in spare[: max(surplus, 0)]:
        state.delete(key_of(REVISIONS, one), one)


def template_of(revision: JsonObject) -> JsonObject:
    """The pod template that a revision holds."""
    template = find_object(revision, "data", "spec", "template")
    return {name: value for name, value in template.items() if name != "$patch"}


def revision_of_pod(pod: JsonObject) -> str:
    """The ``controller-revision-hash`` of a Pod."""
    return find_str(labels_of(pod), "controller-revision-hash")


def names(pods: Iterable[JsonObject]) -> set[str]:
    """The revisions that Pods are of."""
    return {revision_of_pod(pod) for pod in pods}
