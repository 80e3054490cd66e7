"""The roles and bindings that every kube-apiserver creates (``roles.json``, made by generate_bootstrap_roles.py).

Missing roles and bindings are created at every start. Existing roles and bindings are not modified, so changes by a user are
kept.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.kubernetes_version import table
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, decode_json, find_object, find_str
from wharfinger.kube.times import format_time

DATA: Final = table(Path(__file__).with_name("roles.json"))
MAX_DATA_BYTES: Final = 200_000
API_VERSION: Final = "rbac.authorization.k8s.io/v1"
_GROUP: Final = "rbac.authorization.k8s.io"
_PLURALS: Final = {
    "ClusterRole": "clusterroles",
    "Role": "roles",
    "ClusterRoleBinding": "clusterrolebindings",
    "RoleBinding": "rolebindings",
}
_SHARED: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AUTOUPDATE: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_AGGREGATOR: Final = "clusterrole-aggregation-controller"


def install(backend: Backend) -> None:
    """Store the built-in roles and bindings that do not exist yet."""
    time = format_time(backend.now())
    for key, obj in _objects():
        if backend.storage.get(key) is None:
            metadata = find_object(obj, "metadata")
            entries: list[JsonValue] = (
                [{**entry, "time": time} for entry in metadata["managedFields"] if isinstance(entry, dict)]
                if isinstance(metadata["managedFields"], list)
                else []
            )
            stamps: JsonObject = {"uid": backend.new_uid(), "creationTimestamp": time, "managedFields": entries}
            backend.put(key, {**obj, "metadata": {**metadata, **stamps}})


@cache
def _objects() -> tuple[tuple[Key, JsonObject], ...]:
    listed = decode_json(DATA.read_bytes(), max_bytes=MAX_DATA_BYTES, what=DATA.name)
    return tuple(_read(listed))


def _read(listed: JsonValue) -> Iterator[tuple[Key, JsonObject]]:
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, dict):
            continue
        kind, name, namespace = find_str(entry, "kind"), find_str(entry, "name"), find_str(entry, "namespace")
        labels = {**_SHARED, **find_object(entry, "labels")}
        fields: JsonObject = {
            field: entry[field] for field in entry if field in {"aggregationRule", "rules", "subjects", "roleRef"}
        }
        metadata: JsonObject = {"name": name, **({"namespace": namespace} if namespace else {})}
        metadata |= {"labels": dict(sorted(labels.items())), "annotations": dict(_AUTOUPDATE)}
        metadata["managedFields"] = _entries(labels, fields)
        obj: JsonObject = {"kind": kind, "apiVersion": API_VERSION, "metadata": metadata, **fields}
        yield Key(Collection(_GROUP, _PLURALS[kind]), namespace, name), obj


def _entries(labels: JsonObject, fields: JsonObject) -> list[JsonValue]:
    """Return the managed fields of a role or binding.

    The server owns all fields, except the rules of an aggregated role, which the aggregation controller owns.
    """
    owned: JsonObject = {
        "f:metadata": {
            "f:annotations": {".": {}, **{f"f:{name}": {} for name in _AUTOUPDATE}},
            "f:labels": {".": {}, **{f"f:{name}": {} for name in sorted(labels)}},
        }
    }
    aggregated = "aggregationRule" in fields
    for field in fields:
        if field == "aggregationRule":
            owned = {"f:aggregationRule": {".": {}, "f:clusterRoleSelectors": {}}, **owned}
        elif not (aggregated and field == "rules"):
            owned[f"f:{field}"] = {}
    entries: list[JsonValue] = [_entry("kube-apiserver", "Update", owned)]
    return [_entry(_AGGREGATOR, "Apply", {"f:rules": {}}), *entries] if aggregated else entries


def _entry(manager: str, operation: str, owned: JsonObject) -> JsonObject:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": API_VERSION,
        "time": "",
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }
