"""Version 0 of a hook's configuration, rewritten as version 1 (spec hook-protocol §1.4.8). Pure.

Hooks written before ``configVersion`` existed are still supported, because many addon-operator modules have such hooks. Fields
that version 0 lacks get the values that keep the old behavior: everything runs in the main queue, and hooks do not run at
Synchronization.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list

_VERBS: Final = {"add": "Added", "update": "Modified", "delete": "Deleted"}
_TEXTS: Final = ("name", "crontab", "kind", "objectName", "jqFilter")
"""The fields that the contract reads as text even if they were written as a number or a boolean."""


def coerced(document: JsonObject) -> JsonObject:
    """Convert numbers and booleans to text in the fields _TEXTS, because version 0 of the contract accepts them there."""
    lists = {key: value for key in ("schedule", "onKubernetesEvent") if isinstance(value := document.get(key), list)}
    return {**document, **{key: [_coerced_item(item) for item in items] for key, items in lists.items()}}


def _coerced_item(item: JsonValue) -> JsonValue:
    if not isinstance(item, dict):
        return item
    texts: JsonObject = {key: _text(item[key]) for key in _TEXTS if isinstance(item.get(key), bool | int | float)}
    return {**item, **texts}


def _text(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_version_1(document: JsonObject) -> JsonObject:
    """Rewrite a document of the shape VERSION_0 into the shape VERSION_1, with the bindings in the same order."""
    rewritten: JsonObject = {"configVersion": "v1", **document}
    rewritten.pop("onKubernetesEvent", None)
    if schedules := find_list(document, "schedule"):
        rewritten["schedule"] = [_picked(item, "name", "crontab", "allowFailure") for item in schedules]
    if events := find_list(document, "onKubernetesEvent"):
        rewritten["kubernetes"] = [_kubernetes(item) for item in events]
    return rewritten


def _kubernetes(item: JsonValue) -> JsonObject:
    binding = _picked(item, "kind", "jqFilter", "allowFailure")
    binding["name"] = find(item, "name") or "onKubernetesEvent"
    binding["executeHookOnSynchronization"] = False
    if events := find_list(item, "event"):
        binding["executeHookOnEvent"] = [_VERBS[str(event)] for event in events]
    if labels := find(item, "selector"):
        binding["labelSelector"] = labels
    if name := find(item, "objectName"):
        binding["nameSelector"] = {"matchNames": [name]}
    if not find(item, "namespaceSelector", "any") and (names := find_list(item, "namespaceSelector", "matchNames")):
        binding["namespace"] = {"nameSelector": {"matchNames": list(names)}}
    return binding


def _picked(item: JsonValue, *keys: str) -> JsonObject:
    return {key: value for key in keys if (value := find(item, key)) is not None}
