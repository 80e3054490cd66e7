"""A package looked over by its author's machine: everything that the daemon would find out later, with the line to go to.

What ``package check`` finds is the beginning: definition, schemas with their rules, conversions with their examples. Then what
only shows when something is run: hooks as files (:mod:`~wharfinger.hooks.author.lint_scripts`), what they ask for
(:mod:`~wharfinger.hooks.author.lint_hooks`), schemas that misspell a keyword and the package's own values
(:mod:`~wharfinger.hooks.author.lint_schemas`), definitions of custom resources (:mod:`~wharfinger.hooks.author.lint_crds`),
and templates with nothing but defaults (:mod:`~wharfinger.hooks.author.lint_templates`).

Hooks are asked for their configuration, which runs them with ``--config``; ``hooks=False`` leaves that out. Each check goes on
where another found something, as far as it can: an author wants all of it at once.
"""

from dataclasses import dataclass
from pathlib import Path

import trio

from wharfinger.hooks.author.lint_crds import RefusedFields, lint_crds
from wharfinger.hooks.author.lint_hooks import lint_hooks
from wharfinger.hooks.author.lint_schemas import lint_schemas
from wharfinger.hooks.author.lint_scripts import lint_enabled, lint_scripts
from wharfinger.hooks.author.lint_sources import LintFinding, Sources, finding, in_order
from wharfinger.hooks.author.lint_templates import Rendering, lint_templates
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.config_reader import ConfigReader
from wharfinger.hooks.running.hook_files import HookFiles, find_hook_files
from wharfinger.hooks.watching.filters import Filters
from wharfinger.packages.author.package_check import GivenSettings, Severity, check_package
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.files.package_files import open_files
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.settings.check import SettingsChecker


@dataclass(frozen=True, slots=True)
class LintTools:
    """What a package is looked over with; ``rendering`` None: its templates are not rendered, ``hooks`` None: nor hooks asked.

    ``refused`` checks definitions of custom resources.
    """

    filters: Filters
    rules: Rules
    hooks: ConfigReader | None
    rendering: Rendering | None
    refused: RefusedFields


@dataclass(frozen=True, slots=True)
class LintReport:
    """What was found in a package, in the order of its files; ``definition`` None: it cannot be read."""

    definition: Definition | None
    findings: tuple[LintFinding, ...]

    def count(self, severity: Severity) -> int:
        """How many findings are as bad as that."""
        return sum(each.severity is severity for each in self.findings)


async def lint_package(folder: Path, tools: LintTools, given: GivenSettings | None = None) -> LintReport:
    """Look a package's folder over. Raises PackageError, HookError or FilterError, transient, where that cannot be done now."""
    sources = await trio.to_thread.run_sync(_sources, folder)
    folder = sources.files.root
    checked = await check_package(folder, SettingsChecker(tools.filters, tools.rules), given, defaults=False)
    definition = checked.definition
    found = [sources.located(each.severity, each.message, each.where) for each in checked.findings]
    found += await trio.to_thread.run_sync(lint_schemas, sources, definition)
    found += await trio.to_thread.run_sync(lint_crds, sources, tools.refused)
    found += await lint_enabled(folder)
    found += await _hooks(folder, definition, tools)
    if definition is not None and tools.rendering is not None:
        found += await lint_templates(sources, definition, tools.rendering)
    return LintReport(definition, in_order(found))


def _sources(folder: Path) -> Sources:
    return Sources(open_files(folder.resolve(), folder.resolve().name))


async def _hooks(folder: Path, definition: Definition | None, tools: LintTools) -> list[LintFinding]:
    """A plain chart has none: what it has in ``hooks/`` is its own affair. What cannot be read may have some."""
    if definition is not None and definition.layout is Layout.CHART:
        return []
    layout, batch = (Layout.PACKAGE, ()) if definition is None else (definition.layout, definition.batch_hooks)
    try:
        files: HookFiles = await trio.to_thread.run_sync(lambda: find_hook_files(folder, layout, batch=batch))
    except HookError as error:
        return [finding(error.hook, 0, Severity.ERROR, str(error))]
    except OSError as error:
        return [finding("hooks", 0, Severity.ERROR, f"the folder cannot be read: {error.strerror}")]
    found = await lint_scripts(folder, files)
    if definition is None or tools.hooks is None:
        return found
    broken = {each.file for each in found if each.severity is Severity.ERROR}
    sound = tuple(file for file in files.hooks if file.name not in broken)
    return found + await lint_hooks(HookFiles(sound, ()), tools.hooks, tools.filters)
