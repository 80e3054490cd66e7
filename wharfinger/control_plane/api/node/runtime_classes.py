"""The validation of RuntimeClasses (node.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.resources import resource_errors
from wharfinger.control_plane.api.core.pod_specs.scheduling import toleration_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.label_selectors import labels_errors
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.objects.metadata import core_meta_errors, meta_update_errors
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.control_plane.wire.field_errors import duplicate, each, immutable, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

_KEYS: Final = ("key", "operator", "value", "effect")


def runtime_class_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of a RuntimeClass."""
    handler = text(one, "handler")
    errors = each("handler", handler, dns_label_problems(handler)) if handler else [required("handler")]
    if part(one, "overhead") is not None:
        errors += resource_errors({"limits": find(one, "overhead", "podFixed")}, "overhead", ())
    errors += labels_errors(find(one, "scheduling", "nodeSelector"), "scheduling.nodeSelector")
    return errors + _toleration_errors(one)


def _toleration_errors(one: JsonObject) -> list[FieldError]:
    path = "scheduling.tolerations"
    errors = toleration_errors(find(one, "scheduling", "tolerations"), path)
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(parts(one, "scheduling", "tolerations")):
        key = tuple(text(toleration, name) for name in _KEYS)
        if key in seen:
            errors.append(duplicate(f"{path}[{index}]", internal_form("core.Toleration", toleration)))
        seen.add(key)
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = core_meta_errors(new, namespaced=False, finalizers=False) + runtime_class_errors(new)
    errors += meta_update_errors(new, old, finalizers=False)
    return errors + immutable("handler", text(new, "handler"), text(old, "handler"))


RUNTIME_CLASS_RULES: Final[dict[str, Rules]] = {
    "RuntimeClass.node.k8s.io": Rules(create=runtime_class_errors, update=_update_errors),
}
