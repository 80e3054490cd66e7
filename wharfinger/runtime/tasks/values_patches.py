"""The changes that hooks make to values and settings. A change is checked with the schemas, then recorded, and then visible.

A *values patch* is kept in the package's recorded state, and is applied on top of all other values from then on. A
*configuration values patch* changes the user's settings, and therefore the resource. addon-operator allows this for hooks of
module folders. So a configuration values patch of such a hook is written into ``spec.settings`` of the Module, or into the
ConfigMap with the Module's settings. Hooks of packages with a ``package.yaml`` may not change settings, because these belong to
the author of the resource.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.api.errors import ConflictError, NotFoundError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, checksum, find_object, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.hooks.running.values_patch import apply_values_patch, compacted
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.settings.values import SettingsError, check_settings, check_values_rules
from wharfinger.runtime.lifecycle.package_state import StateRecord
from wharfinger.runtime.package.findings import ValuesPatched
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.identity import is_global
from wharfinger.runtime.resources.resources import CONFIG_MAP, MODULE, SETTINGS_MAP
from wharfinger.runtime.scheduler.global_flags import flag_document
from wharfinger.runtime.status.failures import HookRunError
from wharfinger.runtime.tasks.values import closed, opened

log = logging.getLogger(__name__)

ATTEMPTS: Final = 4
"""The limit on the attempts to write settings. An attempt fails if another writer changes the settings at the same time."""


@dataclass(frozen=True, slots=True)
class _Patched:
    """A package's values after a values patch; ``changed`` is True if they differ from the former values."""

    values: JsonObject
    patches: tuple[JsonValue, ...]
    changed: bool


async def check_values_patch(instance: Instance, tools: Tools, hook: str, patch: Sequence[JsonValue]) -> None:
    """Check that a values patch could be applied now, without applying it. Raises HookRunError, ClusterError."""
    record = await instance.recorded(tools)
    async with instance.values_lock:
        await _patched(instance, tools, record, hook, patch)


async def patch_values(instance: Instance, tools: Tools, host: Host, hook: str, patch: Sequence[JsonValue]) -> bool:
    """Record a values patch, and apply it; return True if it changed the values.

    Raises HookRunError if the patch cannot be applied, ClusterError if it cannot be recorded.
    """
    record = await instance.recorded(tools)
    async with instance.values_lock:  # hooks of several queues may end at the same time
        patched = await _patched(instance, tools, record, hook, patch)
        if patched.changed:
            await record.update(lambda state: state.patched(patched.patches))
            host.emit(instance, ValuesPatched(patched.values))
        return patched.changed


async def _patched(
    instance: Instance, tools: Tools, record: StateRecord, hook: str, patch: Sequence[JsonValue]
) -> _Patched:
    """Return the values after the patch, checked with the schemas. Raises HookRunError."""
    definition = instance.loaded()
    root = definition.camel
    flags = (
        flag_document(record.state.patches) if is_global(instance.id) else {}
    )  # flags (`ingressEnabled`) are for global hooks only; in other Modules, the key of the values may look like a flag
    before: JsonObject = {**flags, root: opened(instance, instance.configuration.values)}
    try:
        document = apply_values_patch(before, patch, root=root, flags=is_global(instance.id))
        values = closed(instance, as_object(document[root], root), instance.configuration.values)
        report = await check_values_rules(definition, values, instance.configuration.values, tools.rules)
        if report.problems:
            raise SettingsError(report.problems, subject="values")
        patches = compacted(record.state.patches, patch, before)
    except (FormatError, SettingsError) as error:
        raise HookRunError(hook, f"cannot apply values patch: {error}") from error
    return _Patched(
        values, patches, changed=checksum(document) != checksum(before)
    )  # checksums are compared, because Python does not distinguish true from 1


async def patch_settings(instance: Instance, tools: Tools, hook: str, patch: Sequence[JsonValue]) -> None:
    """Change the user's settings, if hooks of the package may do so; the package is reconciled when the watch reports the
    changed resource.

    Raises HookRunError if the hooks may not change settings, or if the result is refused; ClusterError if the result cannot
    be written.
    """
    definition = instance.loaded()
    if definition.layout is not Layout.MODULE_FOLDER:
        raise HookRunError(
            hook,
            "the hook patches the settings of the package (spec.settings), but only hooks of packages in "
            "addon-operator's layout may change settings",
        )
    for attempt in range(ATTEMPTS):
        try:
            await _patch_once(instance, tools, definition, hook, patch)
        except ConflictError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


async def _patch_once(
    instance: Instance, tools: Tools, definition: Definition, hook: str, patch: Sequence[JsonValue]
) -> None:
    root = definition.camel
    key = ObjectKey(MODULE, "", instance.id.name)
    source = await tools.cluster.get(key)
    place = find_object(source, "metadata", "annotations").get(SETTINGS_MAP)
    if isinstance(place, str) and place:
        namespace, _, name = place.partition("/")
        source = await _config_map(tools, ObjectKey(CONFIG_MAP, namespace, name))
        before = _section(source, root)
    else:
        before = find_object(source, "spec", "settings")
    try:
        after = as_object(apply_values_patch({root: before}, patch, root=root)[root], root)
        report = await check_settings(definition, after, None, tools.rules)
        if report.problems:
            raise SettingsError(report.problems, subject="configuration values")
    except (FormatError, SettingsError) as error:
        raise HookRunError(hook, f"cannot apply configuration values patch: {error}") from error
    if checksum(after) == checksum(before):
        return
    log.info("%s: hook %s changes the settings of the package", instance.id, hook)
    if source.get("kind") == CONFIG_MAP.kind:
        changed: JsonObject = {**source, "data": {**find_object(source, "data"), root: write_yaml(after)}}
    else:
        changed = {**source, "spec": {**find_object(source, "spec"), "settings": after}}
    if find_str(changed, "metadata", "resourceVersion"):
        await tools.cluster.replace(changed)
    else:
        await tools.cluster.create(changed)


async def _config_map(tools: Tools, key: ObjectKey) -> JsonObject:
    """Return the ConfigMap; if it does not exist, return a new one to create."""
    try:
        return await tools.cluster.get(key)
    except NotFoundError:
        metadata: JsonObject = {"namespace": key.namespace, "name": key.name}
        return {"apiVersion": "v1", "kind": CONFIG_MAP.kind, "metadata": metadata}


def _section(config_map: JsonObject, root: str) -> JsonObject:
    """Return a Module's section of the ConfigMap with settings. Raises FormatError if the section is not a mapping."""
    text = find_object(config_map, "data").get(root)
    if not isinstance(text, str) or not text.strip():
        return {}
    found = read_yaml(text.encode(), what=f"data.{root}")
    return {} if found is None else as_object(found, f"data.{root}")
