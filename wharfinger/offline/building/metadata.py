"""Common labels and annotations of objects, as Flux's ``spec.commonMetadata`` sets them."""

from wharfinger.formats.json.value import JsonObject, find_object


def with_common_metadata(objects: tuple[JsonObject, ...], common: JsonObject) -> tuple[JsonObject, ...]:
    """Return objects with the ``labels`` and ``annotations`` of ``common``, which override those of the objects."""
    if not common:
        return objects
    made: list[JsonObject] = []
    for obj in objects:
        metadata = dict(find_object(obj, "metadata"))
        for key in ("labels", "annotations"):
            if added := find_object(common, key):
                metadata[key] = {**find_object(metadata, key), **added}
        made.append({**obj, "metadata": metadata})
    return tuple(made)
