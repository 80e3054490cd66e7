"""ControllerRevisions: the numbered templates that a StatefulSet or DaemonSet has had.

If a template is used again, its old revision becomes the newest. Of the revisions that no Pod uses, only the newest
``revisionHistoryLimit`` ones are kept.
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
    """Return an owner's revisions, oldest first."""
    return sorted(state.owned(REVISIONS, owner), key=lambda one: (find_int(one, "revision"), name_of(one)))


def ensure_revision(
    state: ClusterState, owner: JsonObject, data: JsonObject, labels: JsonObject, digest: str, annotations: JsonObject
) -> JsonObject | None:
    """Return the revision with ``data``, the current template of ``owner``.

    If the revision exists, make it the newest one; otherwise create it. Return None if it cannot be created.
    """
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


def delete_old_revisions(state: ClusterState, owner: JsonObject, used: Collection[str]) -> None:
    """Delete the oldest revisions that ``used`` does not name, so that at most ``revisionHistoryLimit`` of these are left."""
    spare = [one for one in revisions_of(state, owner) if name_of(one) not in used]
    surplus = len(spare) - find_int(owner, "spec", "revisionHistoryLimit", default=10)
    for one in spare[: max(surplus, 0)]:
        state.delete(key_of(REVISIONS, one), one)


def template_of(revision: JsonObject) -> JsonObject:
    """Return the pod template in a revision."""
    template = find_object(revision, "data", "spec", "template")
    return {name: value for name, value in template.items() if name != "$patch"}


def revision_of_pod(pod: JsonObject) -> str:
    """Return the ``controller-revision-hash`` of a Pod."""
    return find_str(labels_of(pod), "controller-revision-hash")


def revision_hashes(pods: Iterable[JsonObject]) -> set[str]:
    """Return the revision hashes of Pods."""
    return {revision_of_pod(pod) for pod in pods}
