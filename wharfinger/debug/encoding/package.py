"""Packages as JSON, and back (see :mod:`wharfinger.debug.encoding.encoding`).

Shapes; a key with ``?`` may be missing::

    packages:  {apps: {<name>: package}, modules: {<name>: package}}
    package:   {name, kind, namespace, labels?: {<key>: <value>}, definition: {name, version, digest},
                installed: {version, digest}, release_revision,
                status: {state, message, tip, conditions: [...], suspended?, maintenance?, progress?, warnings?: [...]},
                settings, values, hooks: [{name, bindings, runs, last_run?, last_error?, waiting?, reduced?}], queue: queue,
                waits_for?: [...], operations?: [{operation, completed, in_flight?, interrupted?, earlier?}],
                monitors?: [monitor], crds?: {established, kinds}, unmatched_overrides?: [...],
                urls?: [...], drift?: [...], failing?: [...], update?, rollback?}
    progress:  {completed, remaining, waiting_for}
    monitor:   {hook, binding, listed, locked, objects, watches, waiting, events, dropped, last_error?}

``definition`` is the wanted version. `PackageSnapshot.secrets` is never encoded.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from wharfinger.debug.encoding.encoding import queue_from_json, queue_to_json
from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.debug.fields import find_texts, read_flag
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    find,
    find_object,
    find_str,
    need_str,
)
from wharfinger.runtime.inspector import PackageSnapshot

STATUS_FIELDS: Final = ("state", "message", "tip", "conditions", "suspended", "maintenance", "progress", "warnings")
_INSIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "package": ("definition", "name"),
    "version": ("definition", "version"),
    "digest": ("definition", "digest"),
    "installed_version": ("installed", "version"),
    "installed_digest": ("installed", "digest"),
}
"""For each field that a package's JSON document has in the object ``definition`` or ``installed``: the path of the field."""
OWN_FIELDS: Final = frozenset(
    {"settings", "values", "hooks", "queue", "unmatched", "crds", "labels", "secrets", *_INSIDE}
)
"""The fields of a package that this module encodes in its own way."""


def packages_to_json(packages: Iterable[PackageSnapshot]) -> JsonObject:
    """Return all packages as JSON, Applications and Modules separately."""
    apps: JsonObject = {}
    modules: JsonObject = {}
    for package in packages:
        (modules if package.kind == "Module" else apps)[package.name] = package_to_json(package)
    return {"apps": apps, "modules": modules}


def packages_from_json(value: JsonValue) -> tuple[PackageSnapshot, ...]:
    """Read all packages from JSON, sorted by name. Raises ShapeError."""
    both = [*find_object(value, "apps").values(), *find_object(value, "modules").values()]
    return tuple(sorted((package_from_json(item) for item in both), key=lambda package: package.name))


def package_to_json(package: PackageSnapshot) -> JsonObject:
    """Return one package as JSON."""
    plain = record_to_json(package, without=OWN_FIELDS)
    result: JsonObject = {
        **{key: plain.pop(key) for key in ("name", "kind", "namespace")},
        **({"labels": package.labels} if package.labels else {}),
        "definition": {"name": package.package, "version": package.version, "digest": package.digest},
        "installed": {"version": package.installed_version, "digest": package.installed_digest},
        "release_revision": plain.pop("release_revision"),
        "status": {key: plain.pop(key) for key in STATUS_FIELDS if key in plain},
        "settings": package.settings,
        "values": package.values,
        "hooks": [record_to_json(hook) for hook in package.hooks],
        "queue": queue_to_json(package.queue),
        **plain,
    }
    if package.crds is None or package.crds:
        result["crds"] = {"established": package.crds is not None, "kinds": list(package.crds or ())}
    if package.unmatched:
        result["unmatched_overrides"] = list(package.unmatched)
    return result


def package_from_json(value: JsonValue) -> PackageSnapshot:
    """Read one package from JSON. Raises ShapeError."""
    name = need_str(value, "name")
    own: dict[str, object] = {
        **{field: find_str(value, *place) for field, place in _INSIDE.items()},
        "settings": find_object(value, "settings"),
        "values": find_object(value, "values"),
        "queue": queue_from_json(name, find(value, "queue")),
        "unmatched": find_texts(value, "unmatched_overrides"),
        "crds": _crds_from_json(find(value, "crds")),
        "labels": find_object(value, "labels"),
        "secrets": (),
    }
    status = find_object(value, "status")
    flat = {**as_object(value, "package"), **{key: status.get(key) for key in STATUS_FIELDS}}
    return record_from_json(flat, PackageSnapshot, "package", own)


def _crds_from_json(value: JsonValue) -> tuple[str, ...] | None:
    if value is None:
        return ()
    kinds = find_texts(as_object(value, "crds"), "kinds")
    return kinds if read_flag(value, "established") else None
