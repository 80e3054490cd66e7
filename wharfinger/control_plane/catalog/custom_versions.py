"""The versions of a custom kind: an object is stored in one version, and shown in any version.

A stored object is read with the schema of the version in which it was stored: it is pruned and gets that version's
defaults. Then a webhook converts it to the requested version; without a webhook, only its apiVersion changes. After the
conversion, fields that the requested version does not declare are dropped, but no defaults of that version are added. A
written object is converted to the storage version in the same way. ``managedFields`` are not converted: an entry that was made
in another version is kept as long as that version declares all fields of the object.

Source: apiextensions-apiserver, ``crdConversionRESTOptionsGetter`` and the nop converter; structured-merge-diff's Updater.
"""

from collections.abc import Iterator

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.custom_kinds import custom_of
from wharfinger.control_plane.catalog.webhook_conversions import by_webhook
from wharfinger.control_plane.custom.defaulting import without_nulls
from wharfinger.control_plane.custom.pruning import pruned
from wharfinger.control_plane.kinds.kind import Kind, KindVersion
from wharfinger.control_plane.merging.typed_check import all_type_problems
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_str
from wharfinger.kube.resource import split_api_version


def version_of(kind: Kind, api_version: str) -> KindVersion | None:
    """Return the version of a kind that an object's apiVersion names, served or not; None for an unknown version."""
    group, name = split_api_version(api_version)
    if group != kind.group:
        return None
    return kind.version(name) or next((version for version in kind.unserved if version.name == name), None)


def shown_custom(served: Served, obj: JsonObject) -> JsonObject:
    """Return a stored object as the served version shows it; the object itself if nothing changes.

    Raises ConversionsNeededError and StatusError, like every conversion by a webhook.
    """
    api_version = find_str(obj, "apiVersion")
    stored = version_of(served.kind, api_version)
    if stored is not None and (custom := custom_of(stored)) is not None:
        obj = custom.completed(obj)
    if api_version == served.api_version:
        return obj
    converted = _converted(by_webhook(served.kind, obj, served.api_version), served.version, served.api_version)
    if (custom := custom_of(served.version)) is not None:
        custom.is_complete(converted)  # mark it as complete, so that it gets no defaults of this version
    return converted


def stored_custom(served: Served, obj: JsonObject) -> JsonObject:
    """Return an object in the version in which its kind is stored."""
    return converted_custom(served.kind, obj, served.kind.stored_api_version)


def converted_custom(kind: Kind, obj: JsonObject, api_version: str) -> JsonObject:
    """Return an object in a version of its kind; the object itself if it has that version, or there is no such version."""
    version = version_of(kind, api_version)
    if version is None or obj.get("apiVersion") == api_version:
        return obj
    return _converted(by_webhook(kind, obj, api_version), version, api_version)


def undeclared(served: Served, entries_of: JsonObject, *states: JsonObject) -> str:
    """Check the states against the schemas of the other API versions that the managed fields of ``entries_of`` name.

    Return the error of the first field that one of these versions does not declare; "" if there is none.
    """
    found = (all_type_problems(state, other.lists) for other in _other_versions(served, entries_of) for state in states)
    return next(filter(None, found), "")


def _other_versions(served: Served, obj: JsonObject) -> Iterator[KindVersion]:
    entries = find_list(obj, "metadata", "managedFields")
    found = dict.fromkeys(find_str(entry, "apiVersion") for entry in entries if isinstance(entry, dict))
    for api_version in found:
        group, name = split_api_version(api_version)
        version = served.kind.version(name) if group == served.kind.group else None
        if version is not None and name != served.version.name:
            yield version


def _converted(obj: JsonObject, version: KindVersion, api_version: str) -> JsonObject:
    kept, _ = pruned(version.schema, {**obj, "apiVersion": api_version}, root=True)
    return as_object(without_nulls(version.schema, kept), "the object")
