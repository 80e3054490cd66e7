"""The fields that the server itself sets in new objects; the strategies in ``api`` set further fields, kind by kind.

Field managers own defaults as if the client had written them, but no manager owns the fields that are set here.
"""

from typing import Final

from wharfinger.control_plane.catalog.custom_kinds import created_status
from wharfinger.control_plane.kinds.kind import DEFINITION, Kind
from wharfinger.formats.json.value import JsonObject

SERVER_OWNED: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def prepared(kind: Kind, obj: JsonObject) -> JsonObject:
    """Return a new object with the initial status that the server sets for its kind."""
    if kind.group_kind == DEFINITION:
        return {**obj, "status": created_status(obj)}
    if kind.initial_status is None or (keeps_status(kind) and "status" in obj):
        return obj
    return {**obj, "status": dict(kind.initial_status)}


def keeps_status(kind: Kind) -> bool:
    """Return whether a new object keeps the status that the client sent (kubelets register Nodes with a status)."""
    return kind.group_kind == "Node"
