"""The resources that the daemon makes for modules directories. Pure.

There is one PackageRepository for each directory and one for the folder of global hooks, one Module for each module, and the
Module ``global``. All carry a label that marks them as managed. Facts that have no field in ``spec`` are in annotations:
whether the module's files switch the module on, the static layer of its values
(:mod:`~wharfinger.runtime.resources.static_values`), and a digest of the module's content. When the digest changes, the
Module's resource requests a reconciliation, so that the module is installed again.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonObject, checksum, encode_json, find, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.global_folder import GLOBAL_PACKAGE
from wharfinger.packages.definition.module_folder import GLOBAL_NAME
from wharfinger.packages.definition.modules_dir import FoundModule
from wharfinger.packages.errors import ArtifactError
from wharfinger.runtime.controllers.config_map import ModuleSettings
from wharfinger.runtime.resources.resources import ENABLED_BY_DEFAULT, GROUP, REQUESTED, SETTINGS_MAP, VERSION
from wharfinger.runtime.resources.static_values import MAX_STATIC, STATIC_VALUES

MANAGED_BY: Final = "wharfinger.dev/managed-by"
"""The label of the resources that are made from the modules directory. A resource without this label is never changed."""
MODULES_DIR: Final = "modules-dir"
GLOBAL_HOOKS: Final = "wharfinger.dev/global-hooks"
"""The annotation that marks the Module with the global hooks; its value is ``"true"``."""
CONTENT: Final = "wharfinger.dev/content"
"""The annotation with the digest of the files and static values from which the Module's resource was last applied."""
PROBLEM: Final = "wharfinger.dev/config-map-problem"
"""The annotation of the Module ``global`` that says why the current ConfigMap with settings is not used."""
NO_VERSION: Final = "0.0.0"
"""The version of a folder whose files state no version."""
MAX_PROBLEM: Final = 1024


@dataclass(frozen=True, slots=True)
class WantedModule:
    """The wanted state of a Module. ``repository`` and ``package`` say where its files are, ``content`` is their
    digest.
    """

    name: str
    repository: str
    package: str
    version: str
    content: str
    settings: ModuleSettings = field(default_factory=ModuleSettings)
    static: JsonObject = field(default_factory=dict, repr=False)
    enabled_by_default: bool | None = None
    """True if the module's files turn the module on by default; None for the Module ``global``, which is always on."""
    problem: str = ""


def wanted_module(
    found: FoundModule, version: str, content: str, settings: ModuleSettings, static: JsonObject, *, enabled: bool
) -> WantedModule:
    """Return the wanted Module for a module's folder; ``enabled`` is the default that the module's files state."""
    return WantedModule(
        name=found.name,
        repository=repository_name(found.dir),
        package=found.folder,
        version=version or NO_VERSION,
        content=content,
        settings=settings,
        static=static,
        enabled_by_default=enabled,
    )


def wanted_global(folder: Path, content: str, settings: JsonObject, static: JsonObject, problem: str) -> WantedModule:
    """Return the wanted Module ``global`` for the folder of global hooks."""
    return WantedModule(
        name=GLOBAL_NAME,
        repository=repository_name(folder),
        package=GLOBAL_PACKAGE,
        version=NO_VERSION,
        content=content,
        settings=ModuleSettings(settings, enabled=True),
        static=static,
        problem=problem,
    )


def repository_name(folder: Path) -> str:
    """Return the name of a folder's PackageRepository; it depends only on the folder's path."""
    return f"modules-dir-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"


def repository_object(folder: Path) -> JsonObject:
    """Return the object to apply for the PackageRepository of a folder."""
    return _object("PackageRepository", repository_name(folder), {}, {"folder": {"path": str(folder)}})


def module_object(wanted: WantedModule, live: JsonObject | None, settings_map: ObjectKey | None = None) -> JsonObject:
    """Return the object to apply for a Module; ``live`` is the existing resource, None if there is none. Raises ArtifactError
    if the object would be invalid.

    ``settings_map`` is the ConfigMap from which the Module's settings come, and into which its hooks write changed settings.

    If a user has requested a reconciliation by an annotation of ``live``, the annotation is kept, unless the content has
    changed.
    """
    static = encode_json(wanted.static)
    if len(static) > MAX_STATIC:
        raise ArtifactError(
            f"module {wanted.name}: expected at most {MAX_STATIC} bytes of static values beside its folder, found "
            f"{len(static)}; put them into the module's own values.yaml"
        )
    content = checksum([wanted.content, wanted.static])
    before = find_object(live, "metadata", "annotations")
    requested = find_str(before, REQUESTED) if find_str(before, CONTENT) == content else content
    annotations: JsonObject = {CONTENT: content, REQUESTED: requested, STATIC_VALUES: static.decode()}
    if wanted.enabled_by_default is None:
        annotations[GLOBAL_HOOKS] = "true"
    else:
        annotations[ENABLED_BY_DEFAULT] = "true" if wanted.enabled_by_default else "false"
    if settings_map is not None:
        annotations[SETTINGS_MAP] = f"{settings_map.namespace}/{settings_map.name}"
    if wanted.problem:
        annotations[PROBLEM] = wanted.problem[:MAX_PROBLEM]
    spec: JsonObject = {
        "packageName": wanted.package,
        "packageVersion": wanted.version,
        "packageRepositoryName": wanted.repository,
        "settings": wanted.settings.settings,
    }
    if wanted.settings.enabled is not None:
        spec["enabled"] = wanted.settings.enabled
    if wanted.settings.maintenance:
        spec["maintenance"] = wanted.settings.maintenance
    return _object("Module", wanted.name, annotations, spec)


def is_managed(obj: JsonObject) -> bool:
    """Return whether the daemon made a resource for a modules directory, one of its modules, or the global hooks."""
    return find(obj, "metadata", "labels", MANAGED_BY) == MODULES_DIR


def deviates(live: JsonObject, wanted: JsonObject) -> bool:
    """Return whether a resource differs from the wanted object; additional labels, annotations and spec fields are ignored."""
    return any(
        find(live, *path, key) != value
        for path in (("metadata", "labels"), ("metadata", "annotations"), ("spec",))
        for key, value in find_object(wanted, *path).items()
    )


def _object(kind: str, name: str, annotations: JsonObject, spec: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": name, "labels": {MANAGED_BY: MODULES_DIR}}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": metadata, "spec": spec}
