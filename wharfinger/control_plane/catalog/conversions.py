"""The conversions of built-in kinds whose versions differ in form: from each version to the stored one and back.

Two kinds are converted. HorizontalPodAutoscalers are stored as autoscaling/v2; autoscaling/v1 shows one metric as a field
and all other metrics as annotations. Events are stored in the core group's form; in events.k8s.io, their fields are named
differently. The functions are pure: each takes an object and returns another (or the same, if there is nothing to convert).
Conversions between versions of custom kinds are in :mod:`~wharfinger.control_plane.catalog.custom_versions`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.control_plane.api.apps.deployments import ROLLBACK_TO
from wharfinger.control_plane.api.autoscaling.versions import autoscaler_v1, autoscaler_v2
from wharfinger.control_plane.api.batch.cron_schedules import integer_problem
from wharfinger.control_plane.api.by_kind.workload_defaults import TEMPLATE_GENERATION
from wharfinger.control_plane.catalog.builtin_kinds import EVENT_OBJECT_FIELDS
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.unserved_kinds import is_former
from wharfinger.control_plane.kinds.type_shapes import ListTypes, builtin_list_types, is_builtin
from wharfinger.control_plane.kinds.typed_form import typed_form
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str
from wharfinger.kube.resource import split_api_version

Convert: TypeAlias = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of one version of a kind to the stored version (``stored``) and back (``shown``).

    ``fields`` maps the names of fields in field selectors of this version to the names of the same fields in the stored form.
    """

    stored: Convert
    shown: Convert
    fields: Mapping[str, str]


def to_stored(served: Served, obj: JsonObject) -> JsonObject:
    """Return an object of the served version in the form in which its kind is stored."""
    conversion = CONVERSIONS.get((served.kind.group_kind, served.api_version))
    return obj if conversion is None else conversion.stored(obj)


def shown(served: Served, obj: JsonObject) -> JsonObject:
    """Return a stored object as the served version shows it; the object itself if it already has that version."""
    if obj.get("apiVersion") == served.api_version:
        return obj
    conversion = CONVERSIONS.get((served.kind.group_kind, served.api_version))
    return {**obj, "apiVersion": served.api_version} if conversion is None else conversion.shown(obj)


def settled(served: Served, obj: JsonObject) -> JsonObject:
    """Return an object of the served version in the form in which a client would read it back after it was stored."""
    conversion = CONVERSIONS.get((served.kind.group_kind, served.api_version))
    return obj if conversion is None else conversion.shown(conversion.stored(obj))


def check_annotations(served: Served, obj: JsonObject) -> None:
    """Refuse (400) an annotation that is not a number, if kube-apiserver's internal type keeps it as a number."""
    known = _NUMBERS.get(served.kind.group_kind)
    if known is None:
        return
    name, prefix = known
    value = find(obj, "metadata", "annotations", name)
    if isinstance(value, str) and (value or not prefix) and (problem := integer_problem(value, "ParseInt")):
        why = f"{prefix.format(value)}{problem}"
        version, kind = served.version.name, served.kind.kind
        raise status.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def is_converted(served: Served) -> bool:
    """Return whether objects of any version of the kind have another form than the stored objects."""
    return served.kind.group_kind in _CONVERTED


def at_version(served: Served, obj: JsonObject, api_version: str) -> tuple[JsonObject, ListTypes] | None:
    """Return a stored object as a version of its kind shows it, and that version's list types; None for an unknown version."""
    group, name = split_api_version(api_version)
    version = served.kind.version(name) if group == served.kind.group else None
    if version is None:
        return None
    return shown(Served(served.kind, version), obj), version.lists


def with_known_entries(served: Served, obj: JsonObject) -> JsonObject:
    """Return the object without those entries of ``managedFields`` that name an unknown version of its kind."""
    entries = find(obj, "metadata", "managedFields")
    if not isinstance(entries, list):
        return obj
    kept = [entry for entry in entries if _is_version(served, find_str(entry, "apiVersion"))]
    if len(kept) == len(entries):
        return obj
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name != "managedFields"}
    return {**obj, "metadata": {**metadata, "managedFields": kept} if kept else metadata}


def _is_version(served: Served, api_version: str) -> bool:
    if api_version == served.api_version:
        return True
    group, version = split_api_version(api_version)
    kind = served.kind
    if kind.custom:
        return group == kind.group and kind.version(version) is not None
    return is_builtin(group, version, kind.kind) or is_former(group, version, kind.kind, kind.group)


def stored_field(served: Served, path: str) -> str:
    """Return the path, in the stored form of the kind, of a field that a selector names."""
    conversion = CONVERSIONS.get((served.kind.group_kind, served.api_version))
    return path if conversion is None else conversion.fields.get(path, path)


_NUMBERS: Final = {
    "DaemonSet.apps": (TEMPLATE_GENERATION, ""),
    "Deployment.apps": (
        ROLLBACK_TO,
        f"failed to parse annotation[{ROLLBACK_TO}]={{}} as int64: ",
    ),
}
"""Kinds with an annotation that holds a number: the annotation's name, and the text that precedes the parse error."""
_EVENT_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
"""The field names of events.k8s.io/v1, each with the name that the field has in the core group."""


def _stored_event(obj: JsonObject) -> JsonObject:
    """Return an Event of events.k8s.io in the form of the core group."""
    renamed = {_EVENT_NAMES.get(name, name): value for name, value in obj.items()}
    return typed_form({**renamed, "apiVersion": "v1"}, builtin_list_types("", "v1", "Event"))


def _shown_event(obj: JsonObject) -> JsonObject:
    """Return an Event of the core group in the form of events.k8s.io."""
    names = {stored: shown for shown, stored in _EVENT_NAMES.items()}
    renamed = {names.get(name, name): value for name, value in obj.items()}
    shown: JsonObject = {**renamed, "apiVersion": "events.k8s.io/v1"}
    return typed_form(shown, builtin_list_types("events.k8s.io", "v1", "Event"))


CONVERSIONS: Final[Mapping[tuple[str, str], Conversion]] = {
    ("Event.events.k8s.io", "events.k8s.io/v1"): Conversion(
        _stored_event,
        _shown_event,
        {
            "reportingController": "reportingComponent",
            **{f"regarding.{name}": f"involvedObject.{name}" for name in EVENT_OBJECT_FIELDS},
        },
    ),
    ("HorizontalPodAutoscaler.autoscaling", "autoscaling/v1"): Conversion(autoscaler_v2, autoscaler_v1, {}),
}
"""The conversions by ``Kind.group_kind`` and apiVersion."""
_CONVERTED: Final = frozenset(group_kind for group_kind, _ in CONVERSIONS)
