"""The rules of CSIStorageCapacities (storage.k8s.io/v1)."""

from typing import Final

from wharfinger.cluster.control_plane.quantities import amount, canonical_quantity
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.amounts import text
from wharfinger.cluster.control_plane.validation.field_errors import IMMUTABLE, NEGATIVE, each, invalid
from wharfinger.cluster.control_plane.validation.label_selectors import selector_errors, shown_selector
from wharfinger.cluster.control_plane.validation.metadata import meta_update_errors
from wharfinger.cluster.control_plane.validation.names import subdomain_problems
from wharfinger.cluster.control_plane.validation.parts import parts, text_map
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.cluster.control_plane.validation.volume_affinity import deprecated_label
from wharfinger.formats.json_value import JsonObject


def capacity_errors(one: JsonObject, *, any_value: bool = False) -> list[FieldError]:
    """What is wrong with a CSIStorageCapacity; ``any_value`` as :func:`~.label_selectors.selector_errors` has it."""
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
