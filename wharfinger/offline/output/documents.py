"""Manifests as text: the same objects give the same bytes."""

from collections.abc import Iterable

from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.offline.orchestrator.result import Manifest

_FIRST = ("apiVersion", "kind", "metadata")


def yaml_documents(manifests: Iterable[Manifest]) -> str:
    """Return a stream of YAML documents in the given order; each begins with apiVersion, kind and metadata."""
    return "".join(f"---\n{write_yaml(ordered(each.object))}" for each in manifests)


def json_documents(manifests: Iterable[Manifest]) -> str:
    """Return a ``List`` with all objects as JSON."""
    items: list[JsonValue] = [ordered(each.object) for each in manifests]
    return encode_json({"apiVersion": "v1", "kind": "List", "items": items}).decode() + "\n"


def ordered(obj: JsonObject) -> JsonObject:
    """Return an object with its keys in a fixed order: its identity first, then all others by name."""
    first: JsonObject = {key: _sorted(obj[key]) for key in _FIRST if key in obj}
    return first | {key: _sorted(obj[key]) for key in sorted(obj) if key not in _FIRST}


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value
