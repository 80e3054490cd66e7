"""Views of objects: Tables for ``kubectl get``, and metadata alone (meta.k8s.io/v1)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from wharfinger.control_plane.api.apps.deployments import ROLLBACK_TO
from wharfinger.control_plane.api.autoscaling.defaults import ROUND_TRIP
from wharfinger.control_plane.api.by_kind.workload_defaults import TEMPLATE_GENERATION
from wharfinger.control_plane.api.core.pods.cells import row_conditions
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.negotiation import View
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_object, find_str

META: str = "meta.k8s.io/v1"


_STATUS_WITHOUT: Final = frozenset(
    {
        "APIService.apiregistration.k8s.io",
        "CustomResourceDefinition.apiextensions.k8s.io",
        "DeviceTaintRule.resource.k8s.io",
        "ResourceClaim.resource.k8s.io",
    }
)
"""Kinds whose subresource ``status`` cannot be shown as a Table."""


_FIELDS_AS_ANNOTATIONS: Final = {
    "DaemonSet.apps": frozenset({TEMPLATE_GENERATION}),
    "Deployment.apps": frozenset({ROLLBACK_TO}),
    "HorizontalPodAutoscaler.autoscaling": frozenset(ROUND_TRIP),
}
"""Annotations that represent fields of kube-apiserver's internal types. Objects have them only in some API versions, so the view
of the metadata alone does not show them."""


def has_tables(served: Served, subresource: str) -> bool:
    """Return whether a resource can be shown as a Table; with ``subresource``, whether this subresource can.

    A resource can be shown as a Table, unless it is computed (``Kind.virtual``) and cannot be listed. Of the subresources, only
    ``scale`` and, for most kinds, ``status`` can be shown as a Table.
    """
    kind = served.kind
    if subresource == "status":
        return kind.group_kind not in _STATUS_WITHOUT
    return subresource == "scale" or not (subresource or (kind.virtual and "list" not in kind.verbs))


def check_include_object(value: str) -> str:
    """Return the ``includeObject`` option of a request for a Table; "" means Metadata. Raises StatusError (400)."""
    if value not in {"", "Metadata", "Object", "None"}:
        raise status.bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{value}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return value or "Metadata"


def table(
    served: Served,
    items: Sequence[JsonObject],
    metadata: JsonObject,
    include: str,
    now: datetime,
    *,
    headers: bool = True,
) -> JsonObject:
    """Return a Table of objects.

    If ``headers`` is false, the Table has no column definitions. In a watch, only the Table of the first event has them.
    """
    definitions: list[JsonValue] = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in served.version.columns
    ]
    return {
        "kind": "Table",
        "apiVersion": META,
        "metadata": metadata,
        "columnDefinitions": definitions if headers else None,
        "rows": [_row(served, item, include, now) for item in items],
    }


def _row(served: Served, item: JsonObject, include: str, now: datetime) -> JsonObject:
    row: JsonObject = {"cells": [column.cell(item, now) for column in served.version.columns]}
    if served.kind.group_kind == "Pod" and (conditions := row_conditions(item)):
        row["conditions"] = conditions
    if include == "Object":
        row["object"] = item
    else:
        row["object"] = partial(served, item) if include == "Metadata" else None
    return row


def partial(served: Served, item: JsonObject) -> JsonObject:
    """Return the metadata of an object, without annotations that represent fields of the server's internal types."""
    metadata = item.get("metadata") or {}
    hidden = _FIELDS_AS_ANNOTATIONS.get(served.kind.group_kind)
    if hidden is not None and isinstance(metadata, dict):
        shown = {name: value for name, value in find_object(metadata, "annotations").items() if name not in hidden}
        rest = {name: value for name, value in metadata.items() if name != "annotations"}
        metadata = {**rest, "annotations": shown} if shown else rest
    return {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": metadata}


def object_view(
    served: Served, item: JsonObject, view: View, include: str, now: datetime, *, headers: bool = True
) -> JsonObject:
    """Return one object in the view that the client requested."""
    if view is View.TABLE:
        metadata = item.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        return table(served, [item], {"resourceVersion": version} if version else {}, include, now, headers=headers)
    return partial(served, item) if view is View.METADATA else item


def list_view(
    served: Served, items: Sequence[JsonObject], metadata: JsonObject, view: View, include: str, now: datetime
) -> JsonObject:
    """Return a list in the view that the client requested; items of built-in lists have no apiVersion and kind, items of custom
    lists do.
    """
    if view is View.TABLE:
        return table(served, items, metadata, include, now)
    if view in {View.METADATA, View.METADATA_LIST}:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": META,
            "metadata": metadata,
            "items": [partial(served, item) for item in items] or None,
        }
    kind = served.kind
    if kind.custom:
        return {
            "apiVersion": served.api_version,
            "items": list(items),
            "kind": kind.list_kind,
            "metadata": {"continue": "", **metadata},
        }
    bare: list[JsonValue] = [
        {name: value for name, value in item.items() if name not in {"apiVersion", "kind"}} for item in items
    ]
    return {"kind": kind.list_kind, "apiVersion": served.api_version, "metadata": metadata, "items": bare}


def at_version(document: JsonObject, version: str) -> JsonObject:
    """Return a document of the group meta.k8s.io in another version of that group. Only the fields ``apiVersion`` change."""
    if version == "v1":
        return document
    api_version = f"meta.k8s.io/{version}"
    if document.get("kind") == "Table":
        rows = [
            {**row, "object": {**find_object(row, "object"), "apiVersion": api_version}}
            if isinstance(row, dict) and find_str(row, "object", "kind") == "PartialObjectMetadata"
            else row
            for row in find_list(document, "rows")
        ]
        return {**document, "apiVersion": api_version, "rows": rows}
    items = [{**item, "apiVersion": api_version} for item in find_list(document, "items") if isinstance(item, dict)]
    listed: JsonObject = {"items": [*items]} if "items" in document else {}
    return {**document, "apiVersion": api_version, **listed}
