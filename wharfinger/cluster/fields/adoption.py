"""Adoption of another tool's fields of the same object, so that a field that leaves the chart is removed from the object.

Server-side apply removes a field that its manager no longer sets, unless another manager owns it too. Fields written by a
user's helm (or `kubectl apply`) are owned by that tool under its own name, and would never be removed. So before an apply, the
tool's entries in ``metadata.managedFields`` become ours: their fields are added to our own entry, and the tool's entries are
removed. ``csaupgrade`` of client-go does the same, but only with fields that were not written by server-side apply. This module
also adopts fields that helm 4 applied server-side.

Helm's entries are always adopted, since helm works on the same release. Entries of ``kubectl apply`` are adopted only as long
as we own no fields of the object: later, they are a user's edit, and are judged as drift.

Pure.
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_str
from wharfinger.formats.redaction.redaction import LAST_APPLIED
from wharfinger.kube.field_sets import FieldSet

HELM_MANAGERS: Final = frozenset({"helm", "helm3", "helm4"})
"""The manager names under which a user's helm writes objects of the same release. Fields of these managers are always
adopted.
"""
KUBECTL_MANAGERS: Final = frozenset({"kubectl-client-side-apply", "before-first-apply"})
_LAST_APPLIED_FIELD: Final = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


def adoption_patch(live: JsonObject, manager: str) -> list[JsonValue]:
    """Return the JSON patch that moves the fields in the managed-fields entries of helm and kubectl to the entry of
    ``manager``. The docstring of this module says which entries are moved.

    Return [] if there are no such entries, or if one of them is unreadable.

    The server refuses the patch (409) if the object changed meanwhile.
    """
    entries = [entry for entry in find_list(live, "metadata", "managedFields") if isinstance(entry, dict)]
    own = next((entry for entry in entries if _is_apply_of(entry, manager)), None)
    taken = [entry for entry in entries if _is_taken(entry, fresh=own is None)]
    if not taken:
        return []
    version = find_str(own if own is not None else taken[-1], "apiVersion")
    joined = [entry for entry in ([own] if own is not None else []) + taken if find_str(entry, "apiVersion") == version]
    try:
        fields = _union(FieldSet.from_fields_v1(entry.get("fieldsV1")) for entry in joined)
    except FormatError:
        return []
    ours: JsonObject = {
        **joined[-1],
        "manager": manager,
        "operation": "Apply",
        "fieldsV1": fields.difference(FieldSet.of_paths([_LAST_APPLIED_FIELD])).to_fields_v1(),
    }
    ours.pop("subresource", None)
    gone = [own, *taken]
    rest: list[JsonValue] = [entry for entry in entries if not any(entry is one for one in gone)]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [*rest, ours]},
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": find_str(live, "metadata", "resourceVersion"),
        },
    ]


def _is_apply_of(entry: JsonObject, manager: str) -> bool:
    return (find_str(entry, "manager"), find_str(entry, "operation")) == (manager, "Apply") and not find_str(
        entry, "subresource"
    )


def _is_taken(entry: JsonObject, *, fresh: bool) -> bool:
    if find_str(entry, "subresource"):
        return False
    manager = find_str(entry, "manager")
    return manager in HELM_MANAGERS or (
        fresh and manager in KUBECTL_MANAGERS and find_str(entry, "operation") == "Update"
    )


def _union(sets: Iterable[FieldSet]) -> FieldSet:
    result = FieldSet()
    for one in sets:
        result = result.union(one)
    return result
