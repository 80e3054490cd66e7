"""What the server itself writes into an object before it is stored (the kube-apiserver's strategies and a few controllers).

Two moments, as upstream: defaults that field managers own as if the client had written them, and preparation that nobody
owns. Pure, but for the addresses of Services, which are drawn from those already given.
"""

import base64
from collections.abc import Iterable
from typing import Final

from wharfinger.cluster.control_plane.crds import created_status, with_default_names
from wharfinger.cluster.control_plane.defaults import apply_defaults
from wharfinger.cluster.control_plane.kinds import Kind
from wharfinger.formats.json_value import JsonObject, find, find_object, find_str

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
SERVER_OWNED: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_ADDRESSES: Final = range(1, 250)
"""Last parts of 10.0.0.0/24 that Services are given."""


def metadata_of(obj: JsonObject) -> JsonObject:
    """``metadata``, to be read."""
    return find_object(obj, "metadata")


def with_metadata(obj: JsonObject, changes: JsonObject) -> JsonObject:
    """A copy with metadata fields set; None removes one."""
    metadata = {name: value for name, value in metadata_of(obj).items() if name not in changes}
    metadata.update({name: value for name, value in changes.items() if value is not None})
    return {**obj, "metadata": metadata}


def with_defaults(kind: Kind, obj: JsonObject) -> JsonObject:
    """The object with what a client may leave out; field managers come to own it."""
    if kind.custom:
        return obj
    obj = apply_defaults(obj)
    if kind.group_kind == "Namespace":
        labels = find_object(obj, "metadata", "labels")
        name = find_str(obj, "metadata", "name")
        obj = with_metadata(obj, {"labels": {**labels, NAMESPACE_LABEL: name}})
    if kind.group_kind == DEFINITION:
        obj = with_default_names(obj)
    if kind.group_kind == "Secret" and "stringData" in obj:
        obj = _merged_string_data(obj)
    return obj


def _merged_string_data(secret: JsonObject) -> JsonObject:
    data = dict(find_object(secret, "data"))
    for key, value in find_object(secret, "stringData").items():
        data[key] = base64.b64encode(str(value).encode()).decode()
    return {**{name: value for name, value in secret.items() if name != "stringData"}, "data": data}


def prepared(kind: Kind, obj: JsonObject, services: Iterable[JsonObject]) -> JsonObject:
    """The object as it is first stored: its status, and what its kind adds; ``services`` are all there are."""
    if kind.group_kind == DEFINITION:
        return {**obj, "status": created_status(obj)}
    if kind.initial_status is not None:
        obj = {**obj, "status": dict(kind.initial_status)}
    if kind.group_kind == "Namespace":
        obj = {**obj, "spec": {**find_object(obj, "spec"), "finalizers": ["kubernetes"]}}
    if kind.group_kind == "Service":
        obj = _with_address(obj, services)
    return obj


def _with_address(service: JsonObject, services: Iterable[JsonObject]) -> JsonObject:
    spec = find_object(service, "spec")
    if spec.get("type") == "ExternalName" or spec.get("clusterIP"):
        address = spec.get("clusterIP")
    else:
        taken = {find(other, "spec", "clusterIP") for other in services}
        address = next((ip for part in _ADDRESSES if (ip := f"10.0.0.{part}") not in taken), "10.0.0.254")
    if not address:
        return service
    families = {} if address == "None" else {"ipFamilies": ["IPv4"]}
    policy = {"ipFamilyPolicy": "SingleStack"}
    return {**service, "spec": {**families, **policy, **spec, "clusterIP": address, "clusterIPs": [address]}}


def without_status(obj: JsonObject) -> JsonObject:
    """A copy without ``status``."""
    return {name: value for name, value in obj.items() if name != "status"}
