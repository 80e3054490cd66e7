"""The defaults of Kubernetes 1.36, kind by kind. They follow recorded answers of its API server.

Defaults differ from the values that a kind's strategy sets at creation (cluster IPs, node ports, the first status). In managed
fields, defaults belong to the manager that writes the object. The values of a strategy belong to no manager, because they are
added later, when the object is stored.

Every rule only adds what is missing, so defaulting twice changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from wharfinger.control_plane.api.by_kind.other_groups_defaults import GROUP_DEFAULTS, TIMED_DEFAULTS
from wharfinger.control_plane.api.by_kind.workload_defaults import WORKLOAD_DEFAULTS
from wharfinger.control_plane.api.core.defaults import CORE_DEFAULTS
from wharfinger.control_plane.api.core.pod_specs.defaults import POD_DEFAULTS
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types, is_builtin
from wharfinger.control_plane.kinds.typed_form import typed_form
from wharfinger.formats.json.value import JsonObject, as_object, find
from wharfinger.kube.resource import kind_of, split_api_version

DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    **CORE_DEFAULTS,
    **POD_DEFAULTS,
    **WORKLOAD_DEFAULTS,
    **GROUP_DEFAULTS,
}
"""The functions that set the defaults, by group and kind."""
EMPTY_LISTS_KEPT: Final[Mapping[tuple[str, str], Sequence[tuple[str, ...]]]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): (
        ("spec", "behavior", "scaleDown", "policies"),
        ("spec", "behavior", "scaleUp", "policies"),
    ),
}
"""Lists that are kept if they are sent empty, so that validation can refuse them."""

_APART: Final = frozenset({("", "Pod")})
"""Kinds whose defaults neither depend on the metadata nor change it."""


def apply_defaults(obj: JsonObject, now: datetime | None = None) -> JsonObject:
    """Return a copy of the object in the form that its Go type prints, with the defaults of its kind.

    For kinds that are not built in, only the metadata is formatted; the defaults of custom kinds come from their schema.
    ``now`` is the initial value of a few fields; without it they are not filled in.
    """
    api_version, kind = kind_of(obj)
    group, version = split_api_version(api_version)
    formed = typed_form(obj, builtin_list_types(group, version, kind))
    if is_builtin(group, version, kind):
        rule = DEFAULTS.get((group, kind))
        if rule is not None:
            for path in EMPTY_LISTS_KEPT.get((group, kind), ()):
                if find(obj, *path) == []:
                    as_object(find(formed, *path[:-1]), path[-2])[path[-1]] = []
            rule(formed)
        if now is not None and (timed := TIMED_DEFAULTS.get((group, kind))) is not None:
            timed(formed, now)
    return formed


def defaults_after(obj: JsonObject, before: JsonObject, now: datetime | None = None) -> JsonObject:
    """Return the object as :func:`apply_defaults` does, after a change of the stored state ``before``.

    Members that are identical (``is``) to those of ``before`` already have their form and their defaults. If this is true for all
    members except the metadata, and the defaults of the kind do not depend on the metadata, only the metadata is formatted.
    """
    if obj.keys() != before.keys() or not all(
        obj[name] is value for name, value in before.items() if name != "metadata"
    ):
        return apply_defaults(obj, now)
    api_version, kind = kind_of(obj)
    group, version = split_api_version(api_version)
    rule = (group, kind)
    if (rule in DEFAULTS and rule not in _APART) or rule in TIMED_DEFAULTS:
        return apply_defaults(obj, now)
    metadata = as_object(obj["metadata"], "metadata")
    return {**obj, "metadata": typed_form(metadata, builtin_list_types(group, version, kind).field("metadata"))}
