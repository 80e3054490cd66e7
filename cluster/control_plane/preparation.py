"""What the server itself writes into a new object before it is stored (the kube-apiserver's strategies).

Unlike defaults, which field managers own as if the client had written them, nobody owns what is written here. Pure: the
addresses of Services are drawn from those that are not given yet.
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.cluster.control_plane.crds import created_status
from wharfinger.cluster.control_plane.kinds import DEFINITION, Kind
from wharfinger.formats.json_value import JsonObject, find, find_object

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
    families: JsonObject = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    return {**service, "spec": {**families, **spec, "clusterIP": address, "clusterIPs": [address]}}


def without_status(obj: JsonObject) -> JsonObject:
    """A copy without ``status``."""
    return {name: value for name, value in obj.items() if name != "status"}
