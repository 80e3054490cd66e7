"""The check of settings before they are written into a resource.

The settings are checked with the loaded definition. If the package is not loaded (because it waits, is suspended or failed to
load, or because the daemon has just started), they are checked with the definition on disk that the package's recorded state
names. Without a definition, the answer is "not known yet", and the settings are checked when the package is loaded. The check
changes neither the instance nor the recorded state.

Transition rules and immutable settings are checked against the settings that the package was last configured with, converted
to the newest version of the schema. If an earlier process configured the package, the recorded settings are used. The patches
of hooks are part of neither the old nor the new values that are compared.
"""

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.digest import Digest
from wharfinger.packages.settings.check import SettingsChecker
from wharfinger.runtime.inspector import InvalidSettings, SettingsAnswer, UnknownSettings, ValidSettings
from wharfinger.runtime.lifecycle.package_state import PackageState, state_record
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.status.failures import EXPECTED, classify
from wharfinger.runtime.tasks.configuration import comparable_settings

NOT_KNOWN = (
    "the package is not loaded yet, and no version of it is stored on this machine, so its settings are "
    "checked when it is loaded"
)


async def validate_settings(instance: Instance, tools: Tools, settings: JsonObject, version: int = 0) -> SettingsAnswer:
    """Check settings for a package; ``version`` is the version of the schema for which the settings are written; 0 means the
    newest.

    If an expected error prevents the check, it is not raised: the answer is an UnknownSettings.
    """
    try:
        state = await _recorded(instance, tools)
        definition = instance.files.definition or await _stored(state, tools)
        if definition is None:
            return UnknownSettings(NOT_KNOWN)
        checker = SettingsChecker(tools.filters.of(instance.id.name), tools.rules)
        now = instance.configuration.configured if instance.configuration.configured_by is not None else None
        old, of = (
            (instance.configuration.settings, now.version)
            if now is not None
            else (state.configured, state.configured_version)
        )
        report = await checker.check(
            definition, settings, version, await comparable_settings(definition, checker.jq, old, of)
        )
    except EXPECTED as error:
        return UnknownSettings(f"the settings cannot be checked now: {classify(error, instance.masked).message}")
    warnings = _masked(instance, report.warnings)
    if report.problems:
        return InvalidSettings(definition.version, _masked(instance, report.problems), warnings)
    return ValidSettings(definition.version, warnings)


def _masked(instance: Instance, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return the problems with secrets masked: a rule's message may quote configured settings."""
    return tuple(Problem(problem.path, instance.masked(problem.message)) for problem in problems)


async def _recorded(instance: Instance, tools: Tools) -> PackageState:
    """Return the recorded state of a package. Raises the errors of EXPECTED."""
    if instance.record is not None:
        return instance.record.state
    # A separate copy of the record, because a task of the package may be using the instance's record.
    return await state_record(tools.cluster, instance.id).read()


async def _stored(state: PackageState, tools: Tools) -> Definition | None:
    """Return the definition of the version that was installed last, if its files are on this machine and undamaged. Raises one
    of the errors in EXPECTED if a read fails.
    """
    manifest = await tools.store.installed(Digest(state.digest)) if state.digest else None
    if manifest is None:
        return None
    tree = await tools.store.install(manifest)
    name = state.source.rpartition(" ")[2]
    return await trio.to_thread.run_sync(lambda: read_definition(tree, name=name, version=state.version))
