"""A package on its author's disk: its hooks, and which of them belongs to whom."""

from pathlib import Path
from typing import Final

from wharfinger.hooks.config import HookConfigError, HookScope
from wharfinger.hooks.discovery import Hook
from wharfinger.hooks.filters import FilterError, Filters
from wharfinger.hooks.hook_files import FOLDER, HookFiles, find_hook_files
from wharfinger.packages.definition import Layout, read_definition
from wharfinger.packages.errors import PackageError
from wharfinger.packages.package_check import own_name

_END_OF_LINE: Final = "\n"


def package_around(hook: Path) -> Path | None:
    """The folder around the nearest ``hooks`` folder that the hook is in; None where it is in none."""
    return next((folder.parent for folder in hook.absolute().parents if folder.name == FOLDER), None)


def section_of_hook(hook: Path) -> str:
    """The key of the values that are the hook's own package's; "" where no package says so."""
    folder = package_around(hook)
    try:
        return "" if folder is None else read_definition(folder, name=own_name(folder), version="").camel
    except PackageError:
        return ""


def hook_files_of(folder: Path, scope: HookScope = HookScope.PACKAGE) -> HookFiles:
    """The hooks of the package in this folder, or of the folder of global hooks. Blocking.

    Raises PackageError where there is no package, HookError for a tree that is out of bounds, OSError where it cannot be read.
    """
    if scope is HookScope.GLOBAL:
        return find_hook_files(folder, Layout.MODULE_FOLDER, scope=scope)
    definition = read_definition(folder, name=own_name(folder), version="")
    return find_hook_files(folder, definition.layout, batch=definition.batch_hooks)


async def check_filters(hook: Hook, filters: Filters) -> None:
    """Compile the filters of a hook. Raises HookConfigError naming each that is none."""
    problems = [text for _, text in await filter_problems(hook, filters)]
    if problems:
        raise HookConfigError(hook.name, tuple(problems))


async def filter_problems(hook: Hook, filters: Filters) -> list[tuple[int, str]]:
    """The kubernetes bindings, by their number, whose jqFilter does not compile, and why."""
    problems: list[tuple[int, str]] = []
    for number, binding in enumerate(hook.config.kubernetes):
        if binding.jq_filter:
            try:
                await filters.check(binding.jq_filter)
            except FilterError as error:
                problems.append((number, f"kubernetes.jqFilter is invalid: {error.why.partition(_END_OF_LINE)[0]}"))
    return problems
