"""Merge patches that change only the metadata of a built-in kind: labels, annotations, finalizers, owners.

These patches are the most frequent writes, and have a faster path: the result shares all other members with the stored
object, so the next steps of an update do not decode, default or validate them again. Any other patch, and a patch with an
error, takes the common path of all patches, which also produces the error messages.
"""

from typing import Final

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.wire.bodies import BodyError, read_body
from wharfinger.control_plane.wire.decoding import DecodingError, decoded
from wharfinger.control_plane.wire.go_json import may_repeat
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.server_patch import merge_patched

_HEAD: Final = frozenset({"apiVersion", "kind"})
_READ: Final = _HEAD | {"metadata"}


def with_patched_metadata(served: Served, live: JsonObject, data: bytes) -> JsonObject | None:
    """Return the object after a merge patch that changes only metadata. Return None for any other patch, and for an invalid
    patch.
    """
    try:
        patch = read_body(data, Encoding.JSON).value
    except BodyError:
        return None
    if not isinstance(patch, dict) or not isinstance(changes := patch.get("metadata"), dict):
        return None
    if not patch.keys() <= _READ or any(patch[name] != live.get(name) for name in _HEAD & patch.keys()):
        return None
    before = live.get("metadata")
    if not isinstance(before, dict) or "managedFields" in changes or may_repeat(data, patch):
        return None
    patched = merge_patched({name: value for name, value in before.items() if name != "managedFields"}, changes)
    try:
        read = decoded({"metadata": patched}, served.version.lists)
    except DecodingError:
        return None
    metadata = read.obj.get("metadata")
    if read.strict or not isinstance(metadata, dict):
        return None
    if "managedFields" in before:
        metadata["managedFields"] = before["managedFields"]
    return {**live, "metadata": metadata}
