"""The validation of CSIStorageCapacities (storage.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.api.core.volumes.node_affinity import deprecated_label
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.label_selectors import selector_errors, shown_selector
from wharfinger.control_plane.objects.lenient_fields import parts, text_map
from wharfinger.control_plane.objects.metadata import meta_update_errors
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import IMMUTABLE, NEGATIVE, each, invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.quantities import amount, canonical_quantity


def capacity_errors(one: JsonObject, *, any_value: bool = False) -> list[FieldError]:
    """Return the errors of a CSIStorageCapacity; with ``any_value``, the selector's values need not be valid label
    values."""
    errors = selector_errors(one.get("nodeTopology"), "nodeTopology", any_value=any_value)
    name = text(one, "storageClassName")
    errors += each("storageClassName", name, subdomain_problems(name))
    capacity = one.get("capacity")
    if capacity is not None and amount(capacity) < 0:
        errors.append(invalid("capacity", canonical_quantity(capacity), NEGATIVE))
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = capacity_errors(new, any_value=bool(selector_errors(old.get("nodeTopology"), "")))
    errors += meta_update_errors(new, old)
    if shown_selector(new.get("nodeTopology")) != shown_selector(old.get("nodeTopology")):
        errors.append(invalid("nodeTopology", shown_selector(new.get("nodeTopology")), IMMUTABLE))
    name = text(new, "storageClassName")
    return errors if name == text(old, "storageClassName") else [*errors, invalid("storageClassName", name, IMMUTABLE)]


def _warnings(new: JsonObject, _old: JsonObject | None) -> list[str]:
    said = [
        f"nodeTopology.matchExpressions[{index}].key: {key} is {deprecated}"
        for index, term in enumerate(parts(new, "nodeTopology", "matchExpressions"))
        if (deprecated := deprecated_label(key := text(term, "key")))
    ]
    labels = text_map(new, "nodeTopology", "matchLabels")
    return said + [
        f"nodeTopology.matchLabels.{label}: {deprecated}" for label in labels if (deprecated := deprecated_label(label))
    ]


STORAGE_CAPACITY_RULES: Final[dict[str, Rules]] = {
    "CSIStorageCapacity.storage.k8s.io": Rules(create=capacity_errors, update=_update_errors, warnings=_warnings),
}
