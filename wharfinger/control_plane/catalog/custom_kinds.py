"""CustomResourceDefinitions: the kinds that they define, and the status that the server writes into them.

A definition passes through these states: created (no conditions) → names accepted and established (from then on, the kind is
served) → being deleted (``Terminating``; its instances are deleted, and new ones are refused) → deleted, once it has no
instances.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from wharfinger.control_plane.catalog.columns import AGE, NAME
from wharfinger.control_plane.custom.embedded_objects import embeds
from wharfinger.control_plane.custom.schema import CustomSchema
from wharfinger.control_plane.kinds.kind import (
    CUSTOM_VERBS,
    Column,
    Generation,
    Kind,
    KindVersion,
    ScalePaths,
    Subresource,
)
from wharfinger.control_plane.kinds.type_shapes import crd_list_types, metadata_list_types
from wharfinger.control_plane.storage.interface import Collection
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    canonical_json,
    encode_json,
    find,
    find_list,
    find_object,
    find_str,
)
from wharfinger.formats.json_path.path import JsonPathError, evaluate, parse_json_path
from wharfinger.kube.times import age

CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
METADATA: Final = metadata_list_types()
_VERSION: Final = re.compile(r"v(?P<major>[0-9]+)(?:(?P<stage>alpha|beta)(?P<minor>[0-9]+))?")
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")
_STAGES: Final = {"": 2, "beta": 1, "alpha": 0}


def version_rank(version: str) -> tuple[int, int, int, int]:
    """Return a sort key for versions; a greater key is preferred: GA before beta before alpha before all other names."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (0, 0, 0, 0)
    return (1, _STAGES[found["stage"] or ""], int(found["major"]), int(found["minor"] or 0))


def _names(definition: JsonObject) -> JsonObject:
    """Return the accepted names of a definition, or the names in its ``spec`` if none have been accepted yet."""
    accepted = find_object(definition, "status", "acceptedNames")
    return accepted if accepted.get("plural") else find_object(definition, "spec", "names")


def collection_of_definition(definition: JsonObject) -> Collection:
    """Return the collection that a definition defines, without reading its schemas."""
    return Collection(find_str(definition, "spec", "group"), find_str(_names(definition), "plural"))


def kind_of_definition(definition: JsonObject) -> Kind:
    """Return the kind that a definition defines. Raises ShapeError if the object is not a definition."""
    spec, names = find_object(definition, "spec"), _names(definition)
    kind = find_str(names, "kind")
    declared = [as_object(item, "spec.versions") for item in find_list(spec, "versions")]
    served = sorted(
        (_version(kind, item) for item in declared if item.get("served") is True),
        key=lambda version: version_rank(version.name),
        reverse=True,
    )
    group = find_str(spec, "group")
    return Kind(
        group=group,
        kind=kind,
        plural=find_str(names, "plural"),
        singular=find_str(names, "singular", default=kind.lower()),
        list_kind=find_str(names, "listKind", default=f"{kind}List"),
        namespaced=find_str(spec, "scope") == "Namespaced",
        versions=_with_warnings(group, kind, tuple(served), declared),
        unserved=tuple(_version(kind, item) for item in declared if item.get("served") is not True),
        storage_version=next((find_str(item, "name") for item in declared if item.get("storage") is True), ""),
        short_names=tuple(str(name) for name in find_list(names, "shortNames")),
        categories=tuple(str(name) for name in find_list(names, "categories")),
        verbs=CUSTOM_VERBS,
        custom=True,
        generation=Generation.SPEC,
        converter=_converter(find_object(spec, "conversion")),
    )


def _converter(conversion: JsonObject) -> str:
    """Return the webhook that converts between versions, as JSON; "" without a webhook."""
    is_webhook = find(conversion, "strategy") == "Webhook"
    return canonical_json(find_object(conversion, "webhook")).decode() if is_webhook else ""


def check_definition(definition: JsonObject) -> None:
    """Read a definition including all of its schemas. Raises ShapeError if a part of the definition has the wrong type."""
    waiting = [version.lists for version in kind_of_definition(definition).versions]
    while waiting:
        lists = waiting.pop()
        if lists is not METADATA:
            waiting += lists.fields.values()
            waiting += [lists.element] if lists.element is not None else []


def _subresources(kind: str, declared: JsonObject) -> tuple[Subresource, ...]:
    scale = Subresource("scale", "Scale", _SUBRESOURCE_VERBS, "autoscaling", "v1")
    known = (Subresource("status", kind, _SUBRESOURCE_VERBS), scale)
    return tuple(item for item in known if find(declared, "subresources", item.name) is not None)


@dataclass(frozen=True, slots=True)
class CustomVersion(KindVersion):
    """One version of a custom kind, with its schema for defaults and validation."""

    custom: CustomSchema | None = field(default=None, compare=False)


def custom_of(version: KindVersion) -> CustomSchema | None:
    """Return the schema for defaults and validation of a custom version; None for a built-in version."""
    return version.custom if isinstance(version, CustomVersion) else None


def _version(kind: str, declared: JsonObject) -> KindVersion:
    schema = find_object(declared, "schema", "openAPIV3Schema")
    scale = find(declared, "subresources", "scale")
    columns = tuple(
        column
        for item in find_list(declared, "additionalPrinterColumns")
        if (column := _column(as_object(item, "additionalPrinterColumns"))) is not None
    )
    return CustomVersion(
        find_str(declared, "name"),
        (NAME, *(columns or (AGE,))),
        crd_list_types(schema),
        schema=schema,
        embeds=embeds(schema),
        status=find(declared, "subresources", "status") is not None,
        scale=None if scale is None else _scale_paths(as_object(scale, "subresources.scale")),
        subresources=_subresources(kind, declared),
        selectable=tuple(
            find_str(item, "jsonPath").removeprefix(".") for item in find_list(declared, "selectableFields")
        ),
        custom=CustomSchema(schema, scale=None if scale is None else as_object(scale, "subresources.scale")),
    )


def _scale_paths(scale: JsonObject) -> ScalePaths:
    return ScalePaths(
        find_str(scale, "specReplicasPath"), find_str(scale, "statusReplicasPath"), find_str(scale, "labelSelectorPath")
    )


def _with_warnings(
    group: str, kind: str, versions: tuple[KindVersion, ...], declared: list[JsonObject]
) -> tuple[KindVersion, ...]:
    """Return the versions; each deprecated one has a warning: the text in the definition, or the server's standard text."""
    deprecated = {find_str(item, "name"): item for item in declared if item.get("deprecated") is True}
    current = next((version.name for version in versions if version.name not in deprecated), "")
    result = []
    for version in versions:
        warning = ""
        if version.name in deprecated:
            hint = f"; use {group}/{current} {kind}" if current else ""
            warning = find_str(deprecated[version.name], "deprecationWarning") or (
                f"{group}/{version.name} {kind} is deprecated{hint}"
            )
        result.append(replace(version, warning=warning))
    return tuple(result)


def _column(item: JsonObject) -> Column | None:
    """Return a printer column, or None if its path cannot be parsed; as in kube-apiserver, this is not reported."""
    kind = find_str(item, "type", default="string")
    try:
        steps = parse_json_path(find_str(item, "jsonPath"))
    except JsonPathError:
        return None
    priority = item.get("priority")
    return Column(
        find_str(item, "name"),
        lambda obj, now: _cell(evaluate(steps, obj), kind, now),
        type=kind,
        format=find_str(item, "format"),
        description=find_str(item, "description")
        or f"Custom resource definition column (in JSONPath format): {find_str(item, 'jsonPath')}",
        priority=priority if isinstance(priority, int) else 0,
    )


def _cell(values: list[JsonValue], kind: str, now: datetime) -> JsonValue:
    if not values:
        return None
    value = values[0]
    if kind == "date":
        return age(value, now) if isinstance(value, str) else None
    if kind == "string":
        return _shown(value)
    accepts: dict[str, Callable[[JsonValue], bool]] = {
        "integer": lambda item: isinstance(item, int) and not isinstance(item, bool),
        "number": lambda item: isinstance(item, int | float) and not isinstance(item, bool),
        "boolean": lambda item: isinstance(item, bool),
    }
    return value if kind in accepts and accepts[kind](value) else None


def _shown(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return encode_json(value).decode()
    return None if value is None else str(value)


def created_status(definition: JsonObject) -> JsonObject:
    """Return the status with which a definition is created."""
    return {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": _stored([], definition)}


def updated_status(definition: JsonObject) -> JsonObject:
    """Return the new status of a definition whose storage version may have changed; ``storedVersions`` keeps earlier ones."""
    status = find_object(definition, "status")
    return {**status, "storedVersions": _stored(find_list(status, "storedVersions"), definition)}


def _stored(known: list[JsonValue], definition: JsonObject) -> list[JsonValue]:
    """Return the versions in which objects may be stored, including the current storage version."""
    versions = find_list(definition, "spec", "versions")
    storage = next((find_str(item, "name") for item in versions if find(item, "storage") is True), None)
    return known if storage is None or storage in known else [*known, storage]
