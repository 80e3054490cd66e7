"""The number of replicas in an object, which a write of its scale changes."""

from collections.abc import Sequence

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import NEGATIVE, invalid
from wharfinger.formats.json.value import JsonObject, as_object, find_int, find_str


def rescaled(served: Served, obj: JsonObject, _version: str, scale: JsonObject) -> JsonObject:
    """Return an object with the replicas of its scale, after a webhook or a policy has changed the scale. Raises StatusError."""
    if served.version.scale is None:
        raise status.no_such_resource()
    replicas = find_int(scale, "spec", "replicas")
    check_replicas(served, find_str(obj, "metadata", "name"), replicas)
    return with_number(obj, field_of(served.version.scale.replicas), replicas)


def check_replicas(served: Served, name: str, replicas: int) -> None:
    """Refuse a negative number of replicas of a built-in kind. Raises StatusError (422)."""
    if replicas < 0 and not served.kind.custom:
        raise status.invalid("autoscaling", "Scale", name, [invalid("spec.replicas", replicas, NEGATIVE)])


def field_of(path: str) -> list[str]:
    """Return the names of the fields in a path like ``.spec.replicas``."""
    return path.strip(".").split(".")


def with_number(obj: JsonObject, path: Sequence[str], value: int) -> JsonObject:
    """Return an object with a number at a path. Raises ShapeError."""
    if len(path) == 1:
        return {**obj, path[0]: value}
    inner = as_object(obj.get(path[0]) or {}, path[0])
    return {**obj, path[0]: with_number(inner, path[1:], value)}
