"""What a package is configured with: the settings that are wanted, as the newest version of its schema wants them.

Settings are written for some version of a schema, and nothing of the package looks at them before they went through its
conversions: neither Configure, nor the enabled script, nor hooks on the way out. What was configured before, by an earlier
version of the package or an earlier process, is brought to the same version before the two are compared, so a setting that a
conversion has renamed or written in another way did not change. Where that cannot be done (a version was taken back, or nobody
knows for which one they were), there is nothing to compare with, and nothing is refused for it.
"""

import logging

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.conversions import JqRunner, convert, convert_between
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.errors import ConversionError
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.resources.settings import ResolvedSettings, carried_over
from wharfinger.runtime.tasks.values import values_of

log = logging.getLogger(__name__)


async def newest_settings(instance: Instance, tools: Tools) -> ResolvedSettings:
    """What is wanted now, as of the newest version. From here on nothing of it is shown that may be made of a Secret.

    Raises ConversionError.
    """
    wanted = instance.wanted_settings
    filters = tools.filters.of(instance.id.name)
    settings, version = await convert(instance.loaded().conversions, filters, wanted.settings, wanted.version)
    instance.newest = carried_over(wanted, settings, version)
    return instance.newest


async def comparable_settings(
    definition: Definition, jq: JqRunner, settings: JsonObject | None, version: int
) -> JsonObject | None:
    """Settings that were configured before, of schema version ``version`` (0: not known), as of the newest one of ``definition``.

    None where nothing can be compared with them. Raises ConversionError, transient ones only: nobody could mend the others.
    """
    chain = definition.conversions
    if settings is None or version not in range(1, chain.current + 1):
        return None
    if version == chain.current or not settings:
        return settings
    try:
        return await convert_between(chain, jq, settings, version, chain.current)
    except ConversionError as error:
        if error.transient:
            raise
        log.warning("%s: the earlier settings cannot be compared with the new ones: %s", definition.name, error)
        return None


async def adopt_wanted(instance: Instance, tools: Tools) -> None:
    """Values for hooks that are asked on the way out of a package which was not configured: of what is wanted, not checked.

    Nothing is held to them later. Raises ConversionError, SettingsError, FormatError.
    """
    if instance.is_configured:
        return
    newest = await newest_settings(instance, tools)
    async with instance.values_lock:
        instance.values = values_of(instance, newest.settings)
        instance.configured, instance.configured_by = newest, None
