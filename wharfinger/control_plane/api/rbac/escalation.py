"""The protection against privilege escalation: users can only grant permissions that they have.

To write a role, a user needs all of its permissions, or the verb ``escalate``; to bind a role, all of its permissions, or the
verb ``bind``. Violations are refused before the object itself is validated. Each combination of group, resource, verb and
name is checked separately.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.control_plane.access.rbac import RBAC, bound_role, decide, grants
from wharfinger.control_plane.access.role_rules import ALL, Attributes, rules_of, strings
from wharfinger.control_plane.api.common.admission import Admission, Operation, Plugin
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, find_list, find_object, find_str

_FIELDS: Final = ("apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs")
_SHOWN: Final = ("APIGroups", "Resources", "NonResourceURLs", "ResourceNames", "Verbs")
_EVERYTHING: Final[tuple[JsonObject, ...]] = (
    {"verbs": [ALL], "apiGroups": [ALL], "resources": [ALL]},
    {"verbs": [ALL], "nonResourceURLs": [ALL]},
)
_GARBAGE: Final = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
"""The metadata that the garbage collector changes. A write that changes only these fields grants no permission."""


def refuse_escalation(admission: Admission, obj: JsonObject) -> JsonObject:
    """Return the object unchanged if the user may write it.

    Raises StatusError: 403 if the user may not; 404 if the role of a binding does not exist.
    """
    if admission.user.administrator or _only_garbage(obj, admission.old):
        return obj
    if "Binding" in admission.kind.kind:
        _check_binding(admission, obj)
    else:
        _check_role(admission, obj)
    return obj


def _only_garbage(new: JsonObject, old: JsonObject | None) -> bool:
    return old is not None and _rest(new) == _rest(old)


def _rest(obj: JsonObject) -> JsonObject:
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name not in _GARBAGE}
    return {**obj, "metadata": metadata}


def _check_role(admission: Admission, obj: JsonObject) -> None:
    asked = Attributes(
        user=admission.user,
        verb="escalate",
        namespace=admission.namespace,
        group=RBAC,
        resource=admission.kind.plural,
        name=admission.name if admission.operation is Operation.UPDATE else "",
    )
    if decide(admission.view, asked).allowed:
        return
    _confirm(admission, rules_of(obj))
    if (_aggregates(obj) or _aggregates(admission.old)) and _missing(admission, _EVERYTHING):
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise status.forbidden(admission.kind, admission.name, why)


def _aggregates(role: JsonObject | None) -> bool:
    return role is not None and bool(find_list(find_object(role, "aggregationRule"), "clusterRoleSelectors"))


def _check_binding(admission: Admission, obj: JsonObject) -> None:
    reference = find_object(obj, "roleRef")
    plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(find_str(reference, "kind"), "")
    name = find_str(reference, "name")
    asked = Attributes(
        user=admission.user,
        verb="bind",
        namespace=admission.namespace,
        group=find_str(reference, "apiGroup"),
        resource=plural,
        name=name,
    )
    if plural and decide(admission.view, asked).allowed:
        return
    role = bound_role(admission.view, reference, admission.namespace)
    if role is None:
        raise status.not_found(admission.kind, name)
    _confirm(admission, rules_of(role))


def _confirm(admission: Admission, rules: Sequence[JsonObject]) -> None:
    missing = _missing(admission, rules)
    if missing:
        groups = " ".join(f'"{group}"' for group in admission.user.groups)
        why = (
            f'user "{admission.user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
            + "\n".join(sorted({_shown(rule) for rule in _compact(missing)}))
        )
        raise status.forbidden(admission.kind, admission.name, why)


def _missing(admission: Admission, rules: Sequence[JsonObject]) -> list[JsonObject]:
    held = [
        grant.rule for grant in grants(admission.view, admission.user, admission.namespace) if grant.rule is not None
    ]
    parts = (part for rule in rules for part in _parts(rule))
    return [part for part in parts if not any(_covers(rule, part) for rule in held)]


def _parts(rule: JsonObject) -> Iterator[JsonObject]:
    """Yield the parts of a rule. Each has one path and verb, or one group, resource and verb, and at most one name."""
    verbs = strings(rule, "verbs")
    names: tuple[tuple[str, ...], ...] = tuple((name,) for name in strings(rule, "resourceNames")) or ((),)
    for group in strings(rule, "apiGroups"):
        for resource in strings(rule, "resources"):
            for verb in verbs:
                for name in names:
                    named: JsonObject = {"resourceNames": list(name)} if name else {}
                    yield {"apiGroups": [group], "resources": [resource], "verbs": [verb], **named}
    for path in strings(rule, "nonResourceURLs"):
        for verb in verbs:
            yield {"nonResourceURLs": [path], "verbs": [verb]}


def _covers(rule: JsonObject, part: JsonObject) -> bool:
    names = strings(rule, "resourceNames")
    return (
        _holds(rule, part, "verbs")
        and _holds(rule, part, "apiGroups")
        and all(_covers_resource(strings(rule, "resources"), resource) for resource in strings(part, "resources"))
        and all(_covers_path(strings(rule, "nonResourceURLs"), path) for path in strings(part, "nonResourceURLs"))
        and (not names or (bool(strings(part, "resourceNames")) and _holds(rule, part, "resourceNames")))
    )


def _holds(rule: JsonObject, part: JsonObject, field: str) -> bool:
    held = strings(rule, field)
    return (ALL in held and field != "resourceNames") or all(value in held for value in strings(part, field))


def _covers_resource(held: Sequence[str], resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return ALL in held or resource in held or (bool(slash) and f"*/{subresource}" in held)


def _covers_path(held: Sequence[str], path: str) -> bool:
    return any(one == path or (one.endswith(ALL) and path.startswith(one.rstrip(ALL))) for one in held)


def _compact(parts: Sequence[JsonObject]) -> list[JsonObject]:
    """Merge the parts of rules that differ only in their verbs. Parts with non-resource URLs are not merged."""
    found: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for part in parts:
        rest = tuple(strings(part, field) for field in _FIELDS[:-1])
        key = (*rest, strings(part, "verbs")) if strings(part, "nonResourceURLs") else rest
        found.setdefault(key, []).extend(strings(part, "verbs"))
    return [
        {**{field: list(values) for field, values in zip(_FIELDS, key, strict=False)}, "verbs": list(verbs)}
        for key, verbs in found.items()
    ]


def _shown(rule: JsonObject) -> str:
    """Return a rule in the form ``{APIGroups:[""], Resources:["pods"], Verbs:["get"]}``."""
    parts = [
        f"{shown}:[{' '.join(chr(34) + value + chr(34) for value in strings(rule, field))}]"
        for field, shown in zip(_FIELDS, _SHOWN, strict=True)
        if strings(rule, field)
    ]
    return f"{{{', '.join(parts)}}}"


ESCALATION: Final = Plugin(
    name="RoleEscalation",
    operations=frozenset({Operation.CREATE, Operation.UPDATE}),
    resources=frozenset(f"{kind}.{RBAC}" for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
    mutate=refuse_escalation,
)
"""The escalation check as an admission plugin. kube-apiserver makes this check in the storage layer of roles and bindings, at
the same point of a request."""
