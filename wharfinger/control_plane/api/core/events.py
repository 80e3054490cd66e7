"""The validation of Events: the rules of v1, and the stricter ones that events.k8s.io/v1 adds."""

from typing import Final

from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.control_plane.objects.metadata import core_meta_errors, meta_update_errors
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, immutable, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.selectors import key_problems
from wharfinger.kube.times import parse_time

_LIMITS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_MISMATCH: Final = "does not match event.namespace"
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _legacy_errors(event: JsonObject, reporter: str) -> list[FieldError]:
    """Return the errors that apply to events of both API versions.

    ``reporter`` is the name that the event's API version has for the field ``reportingComponent``.
    """
    namespace, involved = text(event, "metadata", "namespace"), text(event, "involvedObject", "namespace")
    errors: list[FieldError] = []
    if not _is_set(event.get("eventTime")):
        fits = namespace in {"", "default"} if not involved else namespace == involved
        errors += [] if fits else [invalid("involvedObject.namespace", involved, _MISMATCH)]
    else:
        if not involved and namespace not in {"default", "kube-system"}:
            errors.append(invalid("involvedObject.namespace", involved, _MISMATCH))
        errors += _reporter_errors(event, reporter)
    return errors + each("namespace", namespace, subdomain_problems(namespace))


def _reporter_errors(event: JsonObject, reporter: str) -> list[FieldError]:
    controller = text(event, "reportingComponent")
    errors = [] if controller else [required(reporter)]
    errors += each(reporter, controller, key_problems(controller))
    for name, limit in _LIMITS.items():
        value = text(event, name)
        if not value and name != "message":
            errors.append(required(name))
        if len(value.encode()) > limit:
            errors.append(invalid(name, "", f"can have at most {limit} characters"))
    return errors


def _is_set(time: JsonValue) -> bool:
    return isinstance(time, str) and parse_time(time) is not None


def _create_errors(event: JsonObject) -> list[FieldError]:
    return _legacy_errors(event, "reportingComponent")


def _update_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    return _create_errors(new)


def _series_errors(event: JsonObject) -> list[FieldError]:
    series = part(event, "series")
    if series is None:
        return []
    errors = [] if number(series, "count") >= 2 else [invalid("series.count", "", "should be at least 2")]
    return errors if _is_set(series.get("lastObservedTime")) else [*errors, required("series.lastObservedTime")]


def strict_event_errors(event: JsonObject) -> list[FieldError]:
    """Return the errors of a new event of events.k8s.io/v1; ``event`` has the fields of core/v1."""
    errors = _legacy_errors(event, "reportingController") + core_meta_errors(event) + _series_errors(event)
    if not _is_set(event.get("eventTime")):
        errors.append(required("eventTime"))
    kind = text(event, "type")
    if kind not in {"Normal", "Warning"}:
        errors.append(invalid("type", "", f"has invalid value: {kind}"))
    unset = [
        (_is_set(event.get("firstTimestamp")), "firstTimestamp"),
        (_is_set(event.get("lastTimestamp")), "lastTimestamp"),
        (number(event, "count") != 0, "count"),
        (bool(text(event, "source", "component") or text(event, "source", "host")), "source"),
    ]
    return errors + [invalid(name, "", "needs to be unset") for is_set, name in unset if is_set]


def strict_event_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of an updated event of events.k8s.io/v1; apart from metadata, only ``series`` may change.

    Both events have the fields of core/v1.
    """
    errors = _legacy_errors(new, "reportingController") + meta_update_errors(new, old)
    if new.get("series") != old.get("series"):
        errors += _series_errors(new)
    for name in (
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
    ):
        errors += immutable(name, _shown(name, new.get(name)), _shown(name, old.get(name)))
    for name in ("eventTime", "action", "related", "reportingComponent", "reportingInstance"):
        called = "reportingController" if name == "reportingComponent" else name
        errors += immutable(called, _shown(name, new.get(name)), _shown(name, old.get(name)))
    return errors


def _shown(name: str, value: JsonValue) -> JsonValue:
    """Return the value of a field as kube-apiserver's errors print it, in the form of its internal Go type."""
    if name in {"involvedObject", "related"} and isinstance(value, dict):
        return {_go_name(member): value.get(member) or "" for member in _REFERENCE}
    if name == "source":
        return {"Component": find(value, "component") or "", "Host": find(value, "host") or ""}
    zero: dict[str, JsonValue] = {"count": 0, "related": None, "eventTime": None}
    if name.endswith("Timestamp"):
        return value
    return value if value is not None else zero.get(name, "")


def _go_name(member: str) -> str:
    return {"uid": "UID", "apiVersion": "APIVersion"}.get(member, member[0].upper() + member[1:])


EVENT_RULES: Final = Rules(create=_create_errors, update=_update_errors)
STRICT_EVENT_RULES: Final = Rules(create=strict_event_errors, update=strict_event_update_errors)
