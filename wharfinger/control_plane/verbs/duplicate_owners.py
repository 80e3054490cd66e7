"""Duplicate entries in ``metadata.ownerReferences``: they are removed, and the client gets a warning."""

from typing import Final

from wharfinger.control_plane.objects.lenient_fields import repeated
from wharfinger.control_plane.objects.object_metadata import with_metadata
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json, find, find_list

_ADVICE: Final = (
    "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
    "duplicate UID(s) observed: "
)


def without_repeated_owners(obj: JsonObject, warnings: list[str], *, admitted: bool) -> JsonObject:
    """Return the object with each owner once. If owners are removed, add a warning with their uids to ``warnings``.

    ``admitted`` is true if mutating admission has already run.
    """
    if not find(obj, "metadata", "ownerReferences"):
        return obj
    owners = find_list(obj, "metadata", "ownerReferences")
    if len(owners) < 2:
        return obj
    twice = repeated([canonical_json(owner) for owner in owners])
    if not twice:
        return obj
    kept: list[JsonValue] = [owner for index, owner in enumerate(owners) if index not in twice]
    gone = [str(find(owners[index], "uid") or "") for index in sorted(twice)]
    when = " after mutating admission happens" if admitted else ""
    warnings.append(f".metadata.ownerReferences contains duplicate entries{when}; {_ADVICE}{', '.join(gone)}")
    return with_metadata(obj, {"ownerReferences": kept})
