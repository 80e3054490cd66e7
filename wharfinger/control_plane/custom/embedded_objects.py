"""Objects inside objects (``x-kubernetes-embedded-resource``), with their own kind, API version and metadata."""

from dataclasses import replace

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import at_step, indexed, joined
from wharfinger.control_plane.kinds.type_shapes import metadata_list_types
from wharfinger.control_plane.kinds.undeclared_fields import prune
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.objects.name_rules import segment_name
from wharfinger.control_plane.objects.names import dns_1035_label_problems
from wharfinger.control_plane.wire.field_errors import invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json
from wharfinger.formats.schemas.structural import members, parts, sorted_parts


def embeds(schema: JsonObject) -> bool:
    """Return whether a schema has embedded objects. If not, no other function of this module is needed."""
    if schemas.EMBEDDED.encode() not in encode_json(schema):
        return False  # searching the text takes a hundredth of the time of visiting all nodes
    return schemas.has(schema, lambda node: schemas.flag(node, schemas.EMBEDDED))


def embedded_errors(schema: JsonObject, value: JsonValue, path: str = "", *, root: bool = False) -> list[FieldError]:
    """Return the errors of the embedded objects in a value; ``root`` is set if the value itself is an embedded object."""
    errors: list[FieldError] = []
    if isinstance(value, dict) and (root or schemas.flag(schema, schemas.EMBEDDED)):
        errors += _object_errors(value, path)
    for step, part, node in sorted_parts(schema, value):
        if node is not None:
            errors += embedded_errors(node, part, at_step(schema, path, step))
    return errors


def _object_errors(obj: JsonObject, path: str) -> list[FieldError]:
    errors = [required(joined(path, name)) for name in ("apiVersion", "kind") if name not in obj]
    for name in sorted(obj.keys() & {"apiVersion", "kind"}):
        errors += _name_errors(name, obj[name], joined(path, name))
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        errors += _metadata_errors(metadata, joined(path, "metadata"))
    return errors


def _metadata_errors(metadata: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of embedded metadata; unlike in other objects, the name may be missing."""
    named: JsonObject = {"metadata": {**metadata, "name": metadata.get("name") or "unnamed"}}
    found = core_meta_errors(named, namespaced=bool(metadata.get("namespace")), name=segment_name, finalizers=False)
    return [replace(error, field=path + error.field.removeprefix("metadata")) for error in found]


def _name_errors(name: str, value: JsonValue, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [invalid(path, value, "must be a string")]
    if not value:
        return [invalid(path, value, "must not be empty")]
    if name == "apiVersion":
        return [invalid(path, value, f"unexpected GroupVersion string: {value}")] if value.count("/") > 1 else []
    problems = dns_1035_label_problems(value.lower())
    why = "may have mixed case, but should otherwise match: " + ",".join(problems)
    return [invalid(path, value, why)] if problems else []


def coerced(schema: JsonObject, value: JsonValue, path: str = "", *, root: bool = False) -> FieldError | None:
    """Return the error of the first ``apiVersion`` or ``kind`` of an embedded object that is not a string; None if all are."""
    embedded = root or schemas.flag(schema, schemas.EMBEDDED)
    for step, part, node in sorted_parts(schema, value):
        place = indexed(path, step) if isinstance(step, int) else joined(path, step)
        if embedded and step in {"apiVersion", "kind"} and not isinstance(part, str):
            return invalid(place, part, "must be a string")
        found = None if node is None else coerced(node, part, place)
        if found is not None:
            return found
    return None


def coerced_metadata(schema: JsonObject, value: JsonValue) -> tuple[JsonValue, list[str]]:
    """Return the value with only known metadata in embedded objects, and the paths of unknown metadata, sorted."""
    unknown: list[str] = []
    kept = _coerced_metadata(schema, value, "", unknown)
    return kept, sorted(unknown)


def _coerced_metadata(schema: JsonObject, value: JsonValue, path: str, unknown: list[str]) -> JsonValue:
    if isinstance(value, dict):
        kept = dict(value)
        for name, member, node, _ in members(schema, value):
            if name == "metadata" and schemas.flag(schema, schemas.EMBEDDED) and isinstance(member, dict):
                kept[name], more = prune(member, metadata_list_types())
                unknown += [joined(joined(path, name), field) for field in more]
            if node is not None:
                kept[name] = _coerced_metadata(node, kept[name], joined(path, name), unknown)
        return kept
    if isinstance(value, list):
        return [
            item if node is None else _coerced_metadata(node, item, at_step(schema, path, index), unknown)
            for index, item, node in parts(schema, value)
        ]
    return value
