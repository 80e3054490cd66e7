"""What the server itself writes into every new object before it is stored; :mod:`.strategies` hold what kinds add.

Unlike defaults, which field managers own as if the client had written them, nobody owns what is written here.
"""

from typing import Final

from wharfinger.cluster.control_plane.crds import created_status
from wharfinger.cluster.control_plane.kinds import DEFINITION, Kind
from wharfinger.formats.json_value import JsonObject, find_object

SERVER_OWNED: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def metadata_of(obj: JsonObject) -> JsonObject:
    """``metadata``, to be read."""
    return find_object(obj, "metadata")


def with_metadata(obj: JsonObject, changes: JsonObject) -> JsonObject:
    """A copy with metadata fields set; None removes one."""
    metadata = {**metadata_of(obj)}
    for name in changes.keys() & metadata.keys():
        del metadata[name]
    metadata.update({name: value for name, value in changes.items() if value is not None})
    return {**obj, "metadata": metadata}


def prepared(kind: Kind, obj: JsonObject) -> JsonObject:
    """The object with the status that its kind begins with."""
    if kind.group_kind == DEFINITION:
        return {**obj, "status": created_status(obj)}
    if kind.initial_status is None or (keeps_status(kind) and "status" in obj):
        return obj
    return {**obj, "status": dict(kind.initial_status)}


def keeps_status(kind: Kind) -> bool:
    """Whether a status that a client gives a new object stays (nodes register themselves with one)."""
    return kind.group_kind == "Node"


def without_status(obj: JsonObject) -> JsonObject:
    """A copy without ``status``."""
    return {name: value for name, value in obj.items() if name != "status"}
