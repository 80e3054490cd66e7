"""A package's current values: all layers, with the patches of hooks on top (spec/runtime §8.5)."""

from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, as_object
from wharfinger.hooks.running.values_patch import reapplied
from wharfinger.packages.settings.values import merged_values
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import is_global

MAX_PATHS: Final = 5
_SHOWN: Final = ("discovery", "modules")
"""The keys of objects that every package gets under ``global``; these objects exist even if they are empty."""


def values_of(instance: Instance, settings: JsonObject) -> JsonObject:
    """Return the values with all layers (spec/runtime §8.5).

    The layers are the values of the package, the user's settings, the defaults of the schemas, and the patches of hooks.
    """
    definition = instance.loaded()
    values = merged_values(definition, settings)
    if not instance.patches:
        return values
    document = reapplied({definition.camel: opened(instance, values)}, instance.patches)
    return closed(instance, as_object(document[definition.camel], definition.camel), values)


def opened(instance: Instance, values: JsonObject) -> JsonObject:
    """Return the values to which the patches of hooks are applied. The values for global hooks always have the objects that
    _SHOWN names, so that a hook may add values to them.
    """
    return {**{key: {} for key in _SHOWN}, **values} if is_global(instance.id) else values


def closed(instance: Instance, values: JsonObject, before: JsonObject) -> JsonObject:
    """Return the values without the objects that `opened` added, if they are still empty after the patches."""
    if not is_global(instance.id):
        return values
    return {key: value for key, value in values.items() if value != {} or key not in _SHOWN or key in before}


def changed_paths(before: JsonObject, after: JsonObject) -> tuple[str, ...]:
    """Return the paths at which two documents differ (such as ``web.replicas``), at most MAX_PATHS; the paths contain no
    values.
    """
    found: list[str] = []

    def look(old: JsonValue, new: JsonValue, path: str) -> None:
        if len(found) == MAX_PATHS or old == new:
            return
        if isinstance(old, dict) and isinstance(new, dict):
            for key in sorted({*old, *new}):
                look(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        else:
            found.append(path)

    look(before, after, "")
    return tuple(found)
