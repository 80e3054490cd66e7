"""Take over what another tool wrote of the same object, so that a field that leaves the chart leaves the object.

Server-side apply removes a field that its manager no longer sets, unless somebody else owns it, too. What a person's helm (or
`kubectl apply`) wrote is owned by that tool under its own name, and would stay for ever. So before our first apply its entries
in ``metadata.managedFields`` are made ours: the fields of an Update are joined with what we own, and the entry is gone. That is
what ``csaupgrade`` of client-go does; unlike it, what helm 4 applied server-side is taken over as well.

Helm's entries are always taken over: it works on the same release. Those of ``kubectl apply`` only as long as we own nothing of
the object: later, they are a person's edit, which is drift and judged as such.

Pure.
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_str
from wharfinger.kube.field_sets import FieldSet

HELM_MANAGERS: Final = frozenset({"helm", "helm3", "helm4"})
"""Under these names a person's helm wrote, for the same release: what it owns is taken without asking."""
KUBECTL_MANAGERS: Final = frozenset({"kubectl-client-side-apply", "before-first-apply"})
_LAST_APPLIED: Final = ("f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration")


def adoption_patch(live: JsonObject, manager: str) -> list[JsonValue]:
    """The JSON patch that makes the other tools' entries ours; [] where there are none, or none that can be read.

    It is refused (409) where the object changed meanwhile.
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
        "fieldsV1": fields.difference(FieldSet.of_paths([_LAST_APPLIED])).to_fields_v1(),
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
