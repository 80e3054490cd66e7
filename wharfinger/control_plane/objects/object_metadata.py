"""The metadata of objects, and copies of objects with other metadata or without a status."""

from wharfinger.formats.json.value import JsonObject, find_object


def metadata_of(obj: JsonObject) -> JsonObject:
    """Return ``metadata``, which must not be altered."""
    return find_object(obj, "metadata")


def with_metadata(obj: JsonObject, changes: JsonObject) -> JsonObject:
    """Return a copy with changed fields of the metadata; the value None removes a field."""
    metadata = {**metadata_of(obj)}
    for name in changes.keys() & metadata.keys():
        del metadata[name]
    metadata.update({name: value for name, value in changes.items() if value is not None})
    return {**obj, "metadata": metadata}


def without_status(obj: JsonObject) -> JsonObject:
    """Return a copy without ``status``."""
    return {name: value for name, value in obj.items() if name != "status"}
