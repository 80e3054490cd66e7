"""Changes that a reviewer must not overlook: lost data, refused updates, and additional rights. Pure."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find, strings_of
from wharfinger.offline.output.comparison import ObjectChange, Verb
from wharfinger.offline.store.identity import shown

_RBAC: Final = "rbac.authorization.k8s.io"
_LOSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PersistentVolumeClaim": "its data may be lost",
        "PersistentVolume": "its data may be lost",
        "Namespace": "everything in it is deleted",
        "CustomResourceDefinition.apiextensions.k8s.io": "every object of its kind is deleted",
        "StatefulSet.apps": "its pods are deleted, and its PersistentVolumeClaims may be deleted",
    }
)
_IMMUTABLE: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = MappingProxyType(
    {
        "Deployment.apps": (("spec", "selector"),),
        "DaemonSet.apps": (("spec", "selector"),),
        "StatefulSet.apps": (
            ("spec", "selector"),
            ("spec", "serviceName"),
            ("spec", "podManagementPolicy"),
            ("spec", "volumeClaimTemplates"),
        ),
        "Job.batch": (("spec", "selector"), ("spec", "template"), ("spec", "completionMode")),
        "PersistentVolumeClaim": (
            ("spec", "storageClassName"),
            ("spec", "accessModes"),
            ("spec", "volumeMode"),
            ("spec", "selector"),
        ),
        "StorageClass.storage.k8s.io": (("provisioner",), ("parameters",), ("reclaimPolicy",), ("volumeBindingMode",)),
        f"RoleBinding.{_RBAC}": (("roleRef",),),
        f"ClusterRoleBinding.{_RBAC}": (("roleRef",),),
    }
)
"""Fields that an API server refuses to change."""
_ROLES: Final = frozenset({f"Role.{_RBAC}", f"ClusterRole.{_RBAC}"})
_BINDINGS: Final = frozenset({f"RoleBinding.{_RBAC}", f"ClusterRoleBinding.{_RBAC}"})


def dangers_of(changes: tuple[ObjectChange, ...]) -> tuple[str, ...]:
    """Return a line for each danger, in the order of the changes."""
    return tuple(line for change in changes for line in _dangers(change))


def _dangers(change: ObjectChange) -> Iterator[str]:
    who, kind = shown(change.id), change.id.kind
    if change.verb is Verb.DELETED:
        if kind in _LOSES:
            yield f"{who} is deleted: {_LOSES[kind]}"
        return
    if change.verb is Verb.CHANGED:
        for path in _IMMUTABLE.get(kind, ()):
            if find(change.before, *path) != find(change.after, *path):
                yield f"{who}: {'.'.join(path)} cannot be changed; the object has to be deleted and created again"
    if kind in _ROLES and (more := _rights(change.after) - _rights(change.before)):
        yield f"{who} gets more rights: {', '.join(sorted(more)[:5])}"
    if kind in _BINDINGS and (subjects := _subjects(change.after) - _subjects(change.before)):
        role = find(change.after, "roleRef", "name")
        yield f"{who} grants {role} to {', '.join(sorted(subjects)[:5])}"


def _rights(obj: JsonObject | None) -> set[str]:
    found: set[str] = set()
    for rule in _items(find(obj, "rules")):
        groups = strings_of(find(rule, "apiGroups")) or [""]
        for verb in strings_of(find(rule, "verbs")):
            for resource in strings_of(find(rule, "resources")):
                found |= {f"{verb} {resource}{'.' if group else ''}{group}" for group in groups}
            found |= {f"{verb} {url}" for url in strings_of(find(rule, "nonResourceURLs"))}
    return found


def _subjects(obj: JsonObject | None) -> set[str]:
    return {
        " ".join(str(find(each, key)) for key in ("kind", "namespace", "name") if find(each, key) is not None)
        for each in _items(find(obj, "subjects"))
    }


def _items(value: JsonValue) -> list[JsonValue]:
    """Return a list as it is, and an empty list for any other value, which an API server would refuse."""
    return value if isinstance(value, list) else []
