"""The checks of a package on its author's machine. They find problems before the daemon does, and name the lines.

The checks of ``package check`` come first: the definition, schemas with their rules, conversions with their examples. The other
checks find problems that the definition alone does not show:

* in the files of hooks (:mod:`~wharfinger.hooks.author.lint_scripts`);
* in the configurations of hooks (:mod:`~wharfinger.hooks.author.lint_hooks`);
* in the keywords of schemas, and in the package's own values (:mod:`~wharfinger.hooks.author.lint_schemas`);
* in definitions of custom resources (:mod:`~wharfinger.hooks.author.lint_crds`);
* in templates, which are rendered with the defaults and the given settings (:mod:`~wharfinger.hooks.author.lint_templates`).

Hooks are run with ``--config`` to get their configuration, unless ``LintTools.hooks`` is None. As far as possible, a check is
made even if another check has findings, because an author wants all findings at once.
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
    """The tools of lint. Without ``rendering``, templates are not rendered; without ``hooks``, no hook is run.

    ``refused`` returns the fields of a custom resource definition that an API server would refuse.
    """

    filters: Filters
    rules: Rules
    hooks: ConfigReader | None
    rendering: Rendering | None
    refused: RefusedFields


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings in a package, sorted by file. ``definition`` is None if the definition cannot be read."""

    definition: Definition | None
    findings: tuple[LintFinding, ...]

    def count(self, severity: Severity) -> int:
        """Return the number of findings of this severity."""
        return sum(each.severity is severity for each in self.findings)


async def lint_package(folder: Path, tools: LintTools, given: GivenSettings | None = None) -> LintReport:
    """Lint the folder of a package. Raises a transient PackageError, HookError or FilterError if the package cannot be linted
    now.
    """
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
    """Check the hooks, unless the package is a plain chart or a folder of manifests, in which ``hooks/`` has no meaning.

    If the definition cannot be read, only the files of the hooks are checked, and no hook is run.
    """
    if definition is not None and definition.layout in {Layout.CHART, Layout.MANIFESTS}:
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
