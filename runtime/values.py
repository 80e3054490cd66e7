"""A package's values as they are now: every layer, those that hooks have patched on top (spec/runtime §8.5)."""

from wharfinger.formats.json_value import JsonObject, as_object
from wharfinger.hooks.values_patch import reapplied
from wharfinger.packages.values import merged_values
from wharfinger.runtime.instance import Instance


def values_of(instance: Instance) -> JsonObject:
    """All layers of the values (spec/runtime §8.5): the package's, the user's, the schemas' defaults, what hooks have patched."""
    definition = instance.loaded()
    values = merged_values(definition, instance.wanted_settings.settings)
    if not instance.patches:
        return values
    return as_object(reapplied({definition.camel: values}, instance.patches)[definition.camel], definition.camel)
