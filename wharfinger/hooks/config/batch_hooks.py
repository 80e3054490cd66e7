"""The document that an executable with several hooks (a batch) prints for ``hook config`` (spec hook-protocol §1.5). Pure.

The document is a JSON object. It contains the hooks, a readiness hook, and a flag that is true if the executable can check
settings. Older executables print only the list of hooks. The document is read leniently: null means missing, unknown keys are
ignored, ``executeHookOnEvent`` may be a plain true or false, and an interval may be a number of nanoseconds. Each hook is
rewritten as a document of version 1, the format that other hooks print, and is then checked as such. But two defaults of
kubernetes bindings differ: the bindings are in the group ``main``, and full objects are not kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    find,
    find_list,
    find_str,
    type_name,
)
from wharfinger.hooks.config.bindings import UNBOUND, HookConfig, HookScope
from wharfinger.hooks.config.config import MAX_BYTES, check_hook_config
from wharfinger.hooks.config.problems import HookConfigError

VERSION: Final = "v1"
MAX_ENTRIES: Final = 500
MAX_NAME: Final = 253
GROUP: Final = "main"
"""The group of kubernetes bindings that do not name a group."""
_ORDERS: Final = (
    "onStartup", "beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm", "beforeAll", "afterAll"
)  # fmt: skip
_SCHEDULE: Final = ("name", "crontab", "allowFailure", "queue", "group", "includeSnapshotsFrom")
_KUBERNETES: Final = (
    "name", "kind", "apiVersion", "nameSelector", "namespace", "labelSelector", "fieldSelector", "executeHookOnEvent",
    "executeHookOnSynchronization", "waitForSynchronization", "keepFullObjectsInMemory", "jqFilter", "allowFailure",
    "resynchronizationPeriod", "includeSnapshotsFrom", "queue", "group",
)  # fmt: skip
_VERBS: Final[list[JsonValue]] = ["Added", "Modified", "Deleted"]


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One hook of a batch; ``name`` is its own name, which need not be unique in the batch."""

    name: str
    config: HookConfig


@dataclass(frozen=True, slots=True)
class Batch:
    """The content of an executable: its hooks in the order of indexes, its readiness hook, and whether it checks settings."""

    hooks: tuple[BatchEntry, ...]
    readiness: HookConfig | None
    settings_check: bool


def read_batch(document: bytes, *, hook: str, scope: HookScope = HookScope.PACKAGE) -> Batch:
    """Read the output of the executable ``hook`` for ``hook config``.

    Raises HookConfigError. If one of the hooks inside the executable is wrong, the error names this hook.
    """
    try:
        found = _batch_object(document)
        entries = find_list(found, "hooks")
        if len(entries) > MAX_ENTRIES:
            raise FormatError(f"{len(entries)} hooks, over the limit of {MAX_ENTRIES}")
        names = [_name_of(entry, number) for number, entry in enumerate(entries)]
        checks = find(found, "has_settings_check")
        if not isinstance(checks, bool | None):
            raise FormatError(f"has_settings_check: expected true or false, found {type_name(checks)}")
    except FormatError as error:
        raise HookConfigError(hook, (str(error),)) from error
    hooks = tuple(
        BatchEntry(name, _config_of(entry, f"{hook}:{name}:{number}", scope))
        for number, (name, entry) in enumerate(zip(names, entries, strict=True))
    )
    readiness = find(found, "readiness")
    ready = None if readiness is None else _config_of(readiness, f"{hook}-readiness", scope)
    if not hooks and ready is None and checks is not True:
        raise HookConfigError(hook, ("its output for `hook config` contains no hook",))
    return Batch(hooks, ready, checks is True)


def _batch_object(document: bytes) -> JsonObject:
    if not document.strip():
        raise FormatError("it printed nothing for `hook config`; an executable with hooks must print them and exit")
    found = _without_nulls(decode_json(document, max_bytes=MAX_BYTES, what="its output for `hook config`"))
    if isinstance(found, list):
        return {"hooks": found}
    known = as_object(found, "its output for `hook config`")
    if (version := find(known, "version")) != VERSION:
        raise FormatError(f"'version' value {version!r} is unsupported" if version else "'version' is required")
    return known


def _name_of(entry: JsonValue, number: int) -> str:
    """Return the name of one entry in the document of an executable. It becomes part of the hook's name in logs and metrics."""
    name = find_str(as_object(entry, f"hooks.{number}"), "metadata", "name")
    if len(name) > MAX_NAME or not name.isprintable():
        raise FormatError(
            f"hooks.{number}.metadata.name: {name[:80]!r} is not a name of at most {MAX_NAME} printable characters"
        )
    return name


def _config_of(entry: JsonValue, hook: str, scope: HookScope) -> HookConfig:
    """Check one entry of a batch hook's configuration, and return the configuration of its hook. Raises HookConfigError."""
    try:
        document = _as_version_1(as_object(entry, "its configuration"))
    except FormatError as error:
        raise HookConfigError(hook, (str(error),)) from error
    return UNBOUND if document.keys() == {"configVersion"} else check_hook_config(document, hook=hook, scope=scope)


def _as_version_1(entry: JsonObject) -> JsonObject:
    document: JsonObject = {"configVersion": entry.get("configVersion", VERSION), **_picked(entry, _ORDERS)}
    for key, rewritten in (("schedule", _schedule), ("kubernetes", _kubernetes)):
        if items := _each(entry, key, rewritten):
            document[key] = items
    if settings := entry.get("settings"):
        document["settings"] = _settings(settings)
    return document


def _each(entry: JsonObject, key: str, rewritten: Callable[[JsonObject], JsonObject]) -> list[JsonValue]:
    return [rewritten(as_object(item, f"{key}.{number}")) for number, item in enumerate(find_list(entry, key))]


def _schedule(item: JsonObject) -> JsonObject:
    return _without_empty(_picked(item, _SCHEDULE))


def _kubernetes(item: JsonObject) -> JsonObject:
    binding: JsonObject = {"group": GROUP, "keepFullObjectsInMemory": False}
    binding |= _without_empty(_picked(item, _KUBERNETES))
    runs = item.get("executeHookOnEvent")
    if isinstance(runs, list):
        binding["executeHookOnEvent"] = runs
    elif isinstance(runs, bool):
        binding["executeHookOnEvent"] = list(_VERBS) if runs else []
    terms = find(binding, "fieldSelector", "matchExpressions")
    if isinstance(terms, list):
        filled = [{"value": "", **term} if isinstance(term, dict) else term for term in terms]
        binding["fieldSelector"] = {**as_object(binding["fieldSelector"], "fieldSelector"), "matchExpressions": filled}
    return binding


def _settings(settings: JsonValue) -> JsonValue:
    """Rewrite the settings of a batch hook as settings of version 1. A missing field is added, because version 1 requires both
    fields. An interval that is a number of nanoseconds gets a unit.
    """
    if not isinstance(settings, dict):
        return settings
    interval = settings.get("executionMinInterval", 0)
    if isinstance(interval, int) and not isinstance(interval, bool):
        interval = f"{interval}ns"
    return {"executionMinInterval": interval, "executionBurst": settings.get("executionBurst", 0)}


def _picked(entry: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: entry[key] for key in keys if key in entry}


def _without_empty(item: JsonObject) -> JsonObject:
    """Drop empty selectors, lists and texts, which programs write for a missing value."""
    found = {
        key: _without_empty(inner) if isinstance(inner, dict) and key != "matchLabels" else inner
        for key, inner in item.items()
    }
    return {key: value for key, value in found.items() if value not in ({}, [], "")}


def _without_nulls(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
