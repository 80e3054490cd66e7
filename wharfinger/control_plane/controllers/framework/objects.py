"""Helpers for objects of any kind: their keys, metadata, owners and conditions, and whether they are being deleted."""

from typing import Final

from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str

NAMESPACES: Final = Collection("", "namespaces")
NODES: Final = Collection("", "nodes")
PODS: Final = Collection("", "pods")
SERVICES: Final = Collection("", "services")
ENDPOINTS: Final = Collection("", "endpoints")
EVENTS: Final = Collection("", "events")
ACCOUNTS: Final = Collection("", "serviceaccounts")
CONFIG_MAPS: Final = Collection("", "configmaps")
CLAIMS: Final = Collection("", "persistentvolumeclaims")
VOLUMES: Final = Collection("", "persistentvolumes")
QUOTAS: Final = Collection("", "resourcequotas")
CONTROLLERS: Final = Collection("", "replicationcontrollers")
DEPLOYMENTS: Final = Collection("apps", "deployments")
REPLICA_SETS: Final = Collection("apps", "replicasets")
STATEFUL_SETS: Final = Collection("apps", "statefulsets")
DAEMON_SETS: Final = Collection("apps", "daemonsets")
REVISIONS: Final = Collection("apps", "controllerrevisions")
JOBS: Final = Collection("batch", "jobs")
CRON_JOBS: Final = Collection("batch", "cronjobs")
SLICES: Final = Collection("discovery.k8s.io", "endpointslices")
BUDGETS: Final = Collection("policy", "poddisruptionbudgets")
CLASSES: Final = Collection("storage.k8s.io", "storageclasses")
API_SERVICES: Final = Collection("apiregistration.k8s.io", "apiservices")
FLOW_SCHEMAS: Final = Collection("flowcontrol.apiserver.k8s.io", "flowschemas")
PRIORITY_LEVELS: Final = Collection("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
SERVICE_RANGES: Final = Collection("networking.k8s.io", "servicecidrs")

OVER: Final = frozenset({"Succeeded", "Failed"})
"""The phases of Pods that have ended."""


def key_of(collection: Collection, obj: JsonObject) -> Key:
    """Return the key of an object of a collection."""
    return Key(collection, find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))


def name_of(obj: JsonValue) -> str:
    """Return ``metadata.name``."""
    return find_str(obj, "metadata", "name")


def uid_of(obj: JsonValue) -> str:
    """Return ``metadata.uid``."""
    return find_str(obj, "metadata", "uid")


def generation_of(obj: JsonValue) -> int:
    """Return ``metadata.generation``, or 0 if it is absent."""
    found = find(obj, "metadata", "generation")
    return found if isinstance(found, int) else 0


def labels_of(obj: JsonValue) -> JsonObject:
    """Return ``metadata.labels``."""
    return find_object(obj, "metadata", "labels")


def annotation(obj: JsonValue, name: str) -> str:
    """Return the text of an annotation, or ""."""
    return find_str(obj, "metadata", "annotations", name)


def number_in(text: str) -> int | None:
    """Return the number that a text of one to nine digits represents, or None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def is_deleted(obj: JsonValue) -> bool:
    """Return whether the object is being deleted."""
    return find(obj, "metadata", "deletionTimestamp") is not None


def owner_uids(obj: JsonValue) -> tuple[str, ...]:
    """Return the uids of the object's owner references, in order."""
    return tuple(find_str(owner, "uid") for owner in find_list(obj, "metadata", "ownerReferences"))


def controller_of(obj: JsonValue) -> JsonObject | None:
    """Return the owner reference of the object's controller, or None."""
    for owner in find_list(obj, "metadata", "ownerReferences"):
        if isinstance(owner, dict) and owner.get("controller") is True:
            return owner
    return None


def is_controlled_by(obj: JsonValue, owner: JsonValue) -> bool:
    """Return whether ``owner`` is the object's controller."""
    return find_str(controller_of(obj), "uid") == uid_of(owner) != ""


def owner_reference(obj: JsonObject) -> JsonObject:
    """Return the owner reference with which another object names ``obj`` as its controller."""
    return {
        "apiVersion": find_str(obj, "apiVersion"),
        "kind": find_str(obj, "kind"),
        "name": name_of(obj),
        "uid": uid_of(obj),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def with_fields(obj: JsonObject, **changes: JsonValue) -> JsonObject:
    """Return the object with these members of its metadata replaced; a value of None removes the member."""
    metadata = find_object(obj, "metadata") | changes
    return {**obj, "metadata": {name: value for name, value in metadata.items() if value is not None}}


def replicas_of(obj: JsonValue) -> int:
    """Return ``spec.replicas``, or 1 if it is absent."""
    found = find(obj, "spec", "replicas")
    return found if isinstance(found, int) else 1


def condition_of(obj: JsonValue, kind: str) -> JsonObject | None:
    """Return the condition of a type, or None."""
    for entry in find_list(obj, "status", "conditions"):
        if isinstance(entry, dict) and entry.get("type") == kind:
            return entry
    return None


def is_true(obj: JsonValue, kind: str) -> bool:
    """Return whether the object's condition of the type ``kind`` is True."""
    return find(condition_of(obj, kind), "status") == "True"


def is_over(pod: JsonValue) -> bool:
    """Return whether a Pod has ended."""
    return find_str(pod, "status", "phase") in OVER
