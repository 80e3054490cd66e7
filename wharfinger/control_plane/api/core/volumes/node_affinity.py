"""The validation of a PersistentVolume's node affinity, and the deprecated names of node labels."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.scheduling import node_selector_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire.field_errors import IMMUTABLE, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

_STABLE: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""The current name of each node label that has a deprecated name, by the deprecated name."""
_DEPRECATED: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def affinity_errors(affinity: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a volume's node affinity at ``path``."""
    needed = part(affinity, "required")
    if needed is None:
        return [required(f"{path}.required", "must specify required node constraints")]
    return node_selector_errors(needed, f"{path}.required")


def affinity_change_errors(new: JsonObject | None, old: JsonObject) -> list[FieldError]:
    """Return an error if an affinity changes, unless only deprecated names of labels are replaced."""
    if _renamed(new, old) == old:
        return []
    shown = None if new is None else internal_form("core.VolumeNodeAffinity", new)
    return [invalid("nodeAffinity", shown, f"{IMMUTABLE}, except for updating from beta label to GA")]


def _renamed(new: JsonObject | None, old: JsonObject) -> JsonObject | None:
    """Return the new affinity, with the old name of each label that the update renames from its deprecated name to its current
    name. If only such names changed, the result equals the old affinity.
    """
    terms, before = parts(new, "required", "nodeSelectorTerms"), parts(old, "required", "nodeSelectorTerms")
    if new is None or len(terms) != len(before):
        return new
    named: list[JsonValue] = []
    for term, known in zip(terms, before, strict=True):
        expressions, asked = parts(term, "matchExpressions"), parts(known, "matchExpressions")
        if len(expressions) != len(asked) or not expressions:
            named.append(term)
            continue
        same: list[JsonValue] = [
            {**new_one, "key": old_one["key"]} if _STABLE.get(text(old_one, "key")) == new_one.get("key") else new_one
            for new_one, old_one in zip(expressions, asked, strict=True)
        ]
        named.append({**term, "matchExpressions": same})
    return {**new, "required": {**(part(new, "required") or {}), "nodeSelectorTerms": named}}


def affinity_warnings(affinity: JsonObject | None, path: str) -> list[str]:
    """Return the warnings about deprecated names of node labels."""
    return [
        f"{path}.required.nodeSelectorTerms[{index}].matchExpressions[{number}].key: {key} is {deprecated}"
        for index, term in enumerate(parts(affinity, "required", "nodeSelectorTerms"))
        for number, expression in enumerate(parts(term, "matchExpressions"))
        if (deprecated := deprecated_label(key := text(expression, "key")))
    ]


def deprecated_label(key: str) -> str:
    """Return the warning about a deprecated name of a node label; "" for other labels."""
    return _DEPRECATED.get(key, "")
