"""A package on its author's disk: its hooks and its values, and the search for the package to which a hook belongs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.enabled_script import SCRIPT, why_not_run
from wharfinger.hooks.running.hook_files import FOLDER, HookFiles, find_hook_files
from wharfinger.hooks.watching.filters import FilterError, Filters
from wharfinger.packages.author.package_check import CheckFinding, Severity, own_name
from wharfinger.packages.charts.chart import CHART_FILE
from wharfinger.packages.definition.definition import Layout, read_definition
from wharfinger.packages.definition.global_folder import GLOBAL_PACKAGE, read_global_definition
from wharfinger.packages.definition.module_folder import GLOBAL_NAME, VALUES_FILE
from wharfinger.packages.definition.package_file import MODULE_FILE, PACKAGE_FILE, PackageType
from wharfinger.packages.errors import PackageError
from wharfinger.packages.settings.values import hook_values, merged_values

SAMPLE_NAMESPACE: Final = "default"
"""The namespace of the Application to which the hook belongs in a sample run."""
_END_OF_LINE: Final = "\n"
_WITH_VALUES: Final = (PACKAGE_FILE, MODULE_FILE, CHART_FILE, VALUES_FILE, "openapi")
"""The files and folders of a package that affect its values."""


def package_around(hook: Path) -> Path | None:
    """Return the parent of the nearest ``hooks`` folder that contains the hook; None if there is none."""
    return next((folder.parent for folder in hook.absolute().parents if folder.name == FOLDER), None)


def section_of_hook(hook: Path) -> str:
    """Return the key under which a hook finds the values of its package; "" if the package cannot be read, or there is none."""
    folder = package_around(hook)
    try:
        return "" if folder is None else read_definition(folder, name=own_name(folder), version="").camel
    except PackageError:
        return ""


def sample_identity(hook: Path) -> dict[str, str]:
    """Return the variables that name a hook's package, as if the package were installed under its own name. Blocking.

    There are no variables for a hook outside of any package, or if the package cannot be read.
    """
    folder = package_around(hook)
    if folder is None:
        return {}
    if folder.name == GLOBAL_PACKAGE:
        return {"MODULE_NAME": GLOBAL_NAME}
    try:
        definition = read_definition(folder, name=own_name(folder), version="")
    except PackageError:
        return {}
    if definition.type is PackageType.APPLICATION:
        return {"APPLICATION_NAME": definition.name, "APPLICATION_NAMESPACE": SAMPLE_NAMESPACE}
    return {"MODULE_NAME": definition.name}


@dataclass(frozen=True, slots=True)
class OwnValues:
    """The content of the two files with values that a hook gets: its package's values, and the user's settings
    (``config_values``).
    """

    values: JsonObject
    config_values: JsonObject


def values_of_hook(hook: Path, config_values: JsonObject) -> OwnValues:
    """Return the values that the daemon would give the hook. Blocking.

    ``config_values`` are the user's settings. They are returned as they are if the hook is not in a package, or if nothing in the
    package's folder defines values. Raises PackageError if the package is not valid.
    """
    folder = package_around(hook)
    if folder is None or not any((folder / name).exists() for name in _WITH_VALUES):
        return OwnValues({}, config_values)
    settings = find_object(config_values, GLOBAL_NAME)
    if folder.name == GLOBAL_PACKAGE:
        definition = read_global_definition(folder, version="")
        return OwnValues({GLOBAL_NAME: merged_values(definition, settings)}, {GLOBAL_NAME: settings})
    definition = read_definition(folder, name=own_name(folder), version="")
    own = find_object(config_values, definition.camel)
    return OwnValues(
        hook_values(definition, settings, merged_values(definition, own)), hook_values(definition, settings, own)
    )


def hook_files_of(folder: Path, scope: HookScope = HookScope.PACKAGE) -> HookFiles:
    """Return the hooks of the package in this folder, or of the folder of global hooks. Blocking.

    Raises PackageError if there is no package, HookError if the tree of files exceeds the limits, and OSError if it cannot be
    read.
    """
    if scope is HookScope.GLOBAL:
        return find_hook_files(folder, Layout.MODULE_FOLDER, scope=scope)
    definition = read_definition(folder, name=own_name(folder), version="")
    return find_hook_files(folder, definition.layout, batch=definition.batch_hooks)


def check_hook_files(folder: Path) -> tuple[CheckFinding, ...]:
    """Return the errors and warnings that the daemon would report about the files of the package's hooks. Blocking.

    No hook is run.
    """
    try:
        warnings = list(hook_files_of(folder).warnings)
    except (HookError, OSError) as error:
        return (CheckFinding(Severity.ERROR, "", str(error)),)
    if why := why_not_run(folder / SCRIPT):
        warnings.append(f"{SCRIPT}: {why}")
    return tuple(CheckFinding(Severity.WARNING, "", warning) for warning in warnings)


async def check_filters(hook: Hook, filters: Filters) -> None:
    """Compile the filters of a hook. Raises HookConfigError, which names each filter that does not compile."""
    problems = [text for _, text in await filter_problems(hook, filters)]
    if problems:
        raise HookConfigError(hook.name, tuple(problems))


async def filter_problems(hook: Hook, filters: Filters) -> list[tuple[int, str]]:
    """Return the indexes of the kubernetes bindings whose jqFilter does not compile, each with the reason."""
    problems: list[tuple[int, str]] = []
    for number, binding in enumerate(hook.config.kubernetes):
        if binding.jq_filter:
            try:
                await filters.check(binding.jq_filter)
            except FilterError as error:
                problems.append((number, f"kubernetes.jqFilter is invalid: {error.why.partition(_END_OF_LINE)[0]}"))
    return problems
