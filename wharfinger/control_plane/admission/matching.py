"""The check whether a policy or a binding matches a request (``apiserver/pkg/admission/plugin/policy/matching``)."""

from collections.abc import Iterator
from typing import Final

from wharfinger.control_plane.admission.request import SCALE, Resource, namespace_of
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.label_selectors import is_empty, selects
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map, texts
from wharfinger.formats.json.value import JsonObject

ALL: Final = "*"
_NAMESPACE: Final = "Namespace"


def matched(match: JsonObject, admission: Admission, asked: Resource, catalog: Catalog) -> Resource | None:
    """Return the requested resource in the version in which a policy sees it; None if the policy does not match the request.

    With ``matchPolicy: Equivalent``, this may be another version of the resource, which the rules of the policy name.
    """
    if not _namespace_fits(match, admission) or not _object_fits(match, admission):
        return None
    fuzzy = match.get("matchPolicy") == "Equivalent"
    if _by_rules(parts(match, "excludeResourceRules"), admission, asked, catalog, fuzzy=fuzzy) is not None:
        return None
    rules = parts(match, "resourceRules")
    return _by_rules(rules, admission, asked, catalog, fuzzy=fuzzy) if rules else asked


def _namespace_fits(match: JsonObject, admission: Admission) -> bool:
    selector, namespace = match.get("namespaceSelector"), namespace_of(admission)
    of_namespaces = admission.kind.group_kind == _NAMESPACE
    if is_empty(selector) or (not namespace and not of_namespaces):
        return True
    if of_namespaces and not admission.subresource and admission.operation is not Operation.DELETE:
        return selects(selector, text_map(admission.obj, "metadata", "labels"))
    held = admission.view.object("", "namespaces", "", namespace)
    return held is not None and selects(selector, text_map(held, "metadata", "labels"))


def _object_fits(match: JsonObject, admission: Admission) -> bool:
    """Return whether the object selector matches the new or the old object.

    A Scale counts as an object without labels. The options of a connection have no metadata, so only an empty selector matches
    them.
    """
    selector, scaled = match.get("objectSelector"), admission.subresource == SCALE
    return is_empty(selector) or any(
        obj is not None
        and "metadata" in obj
        and selects(selector, {} if scaled else text_map(obj, "metadata", "labels"))
        for obj in (admission.obj, admission.old)
    )


def _by_rules(
    rules: list[JsonObject], admission: Admission, asked: Resource, catalog: Catalog, *, fuzzy: bool
) -> Resource | None:
    if not rules:
        return None
    if any(_rule_fits(rule, admission, asked) for rule in rules):
        return asked
    if not fuzzy:
        return None
    others = [other for other in equivalents(asked, catalog) if other != asked]
    return next((other for rule in rules for other in others if _rule_fits(rule, admission, other)), None)


def equivalents(asked: Resource, catalog: Catalog) -> Iterator[Resource]:
    """Yield all versions of a resource, including the versions in other groups that serve the same objects."""
    for kind in catalog.kinds():
        if kind.collection == asked.kind.collection:
            for version in kind.versions:
                yield Resource(kind, version)


def _rule_fits(rule: JsonObject, admission: Admission, resource: Resource) -> bool:
    names = texts(rule, "resourceNames")
    return (
        _holds(texts(rule, "operations"), admission.operation)
        and _scope_fits(text(rule, "scope"), admission)
        and _holds(texts(rule, "apiGroups"), resource.kind.group)
        and _holds(texts(rule, "apiVersions"), resource.version.name)
        and any(_resource_fits(item, resource.kind.plural, admission.subresource) for item in texts(rule, "resources"))
        and (not names or admission.name in names)
    )


def _holds(items: list[str], wanted: str) -> bool:
    return ALL in items or wanted in items


def _scope_fits(scope: str, admission: Admission) -> bool:
    in_namespace = admission.kind.group_kind != _NAMESPACE and bool(admission.namespace)
    return scope in ("", ALL) or in_namespace == (scope == "Namespaced")


def _resource_fits(item: str, plural: str, subresource: str) -> bool:
    resource, _, below = item.partition("/")
    return resource in (ALL, plural) and below in (ALL, subresource)


def match_of(holder: JsonObject, name: str) -> JsonObject | None:
    """Return ``spec.<name>``, or None. ``name`` is ``matchConstraints`` for a policy, ``matchResources`` for a binding."""
    return part(holder, "spec", name)
