"""The settings with which a package is configured: the wanted settings, converted to the newest version of its schema.

Settings are written for some version of a schema. They are always converted before Configure, the enabled script, or the hooks
of an uninstall use them. The settings that were configured before, by an earlier version of the package or by an earlier
process, are converted to the same version before old and new settings are compared. So a setting that a conversion only renamed
or rewrote does not count as changed. If the old settings cannot be converted (for example, because their version is not known),
the old and new settings are not compared, so no change of a setting is refused.
"""

import logging

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.conversions import JqRunner, convert, convert_between
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.errors import ConversionError
from wharfinger.runtime.package.findings import AdoptedForRemoval, SettingsConverted
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.settings import ResolvedSettings, carried_over
from wharfinger.runtime.tasks.values import values_of

log = logging.getLogger(__name__)


async def newest_settings(instance: Instance, tools: Tools, host: Host) -> ResolvedSettings:
    """Return the wanted settings, converted to the newest version of the schema. Report them, so that their texts that may come
    from a Secret are masked from now on. Raises ConversionError.
    """
    wanted = instance.desired.settings
    filters = tools.filters.of(instance.id.name)
    settings, version = await convert(instance.loaded().conversions, filters, wanted.settings, wanted.version)
    newest = carried_over(wanted, settings, version)
    host.emit(instance, SettingsConverted(newest))
    return newest


async def comparable_settings(
    definition: Definition, jq: JqRunner, settings: JsonObject | None, version: int
) -> JsonObject | None:
    """Return earlier settings of schema version ``version`` (0 if it is not known), converted to the newest version of
    ``definition``.

    Return None if they cannot be converted. A permanent ConversionError is only logged, because users cannot correct the
    earlier settings. Raises transient ConversionErrors.
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


async def adopt_wanted(instance: Instance, tools: Tools, host: Host) -> None:
    """If the package is not configured, set the values for the hooks that run when the release is uninstalled.

    The values are made from the wanted settings without checks, and are not recorded as configured. Raises ConversionError,
    SettingsError, FormatError.
    """
    if instance.is_configured:
        return
    newest = await newest_settings(instance, tools, host)
    async with instance.values_lock:
        host.emit(instance, AdoptedForRemoval(newest, values_of(instance, newest.settings)))
