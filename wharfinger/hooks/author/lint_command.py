"""The command ``wharfinger package lint``, which finds problems of a package on its author's machine and names their lines."""

import argparse
import json
import os
import shutil
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import counted
from wharfinger.formats.option_values import path_option
from wharfinger.hooks.author.lint_crds import RefusedFields
from wharfinger.hooks.author.lint_templates import Rendering
from wharfinger.hooks.author.package_lint import LintReport, LintTools, lint_package
from wharfinger.hooks.author.printing import say, tell
from wharfinger.hooks.containment.hook_environment import AskedVariable, add_environment_option, hook_environment
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.config_reader import ConfigReader, ProcessConfigReader
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.packages.author.package_check import GivenSettings, Severity, read_given_settings
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.rendering.helm_command import KUBE_VERSION
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.packages.settings.values import MAX_VALUES

EXIT_FOUND: Final = 1
EXIT_USAGE: Final = 2


def add_lint(actions: "argparse._SubParsersAction[argparse.ArgumentParser]", refused: RefusedFields) -> None:
    """Add ``package lint FOLDER`` to the actions of ``wharfinger package``.

    ``refused`` returns the fields of a custom resource definition that an API server would refuse.
    """
    lint = actions.add_parser(
        "lint",
        help="find problems of a package before it is installed, with line numbers",
        description="Check a package as `package check` does. Also find hooks that cannot be run, hooks with an invalid "
        "configuration, filter or crontab, misspelled keywords in schemas, values that their schema refuses, templates that "
        "Helm cannot render, objects outside of an Application's namespace, and invalid CRDs. Findings are printed as "
        "FILE:LINE: SEVERITY: MESSAGE. "
        "Hooks are run with --config. Exit code 0: no errors; 1: errors (with --strict: errors or warnings); 2: wrong "
        "usage, or the check was not possible, for example because a process could not be started.",
    )
    lint.add_argument("folder", type=path_option, metavar="FOLDER", help="the package's folder")
    lint.add_argument(
        "--settings",
        type=path_option,
        metavar="FILE",
        help="a YAML or JSON file with settings to check and to render with (default: no settings)",
    )
    lint.add_argument("--no-hooks", action="store_true", help="do not run hooks with --config")
    lint.add_argument("--no-templates", action="store_true", help="do not render the templates")
    lint.add_argument(
        "--helm",
        default="helm",
        metavar="PROGRAM",
        help="the Helm program that renders the templates (default: %(default)s)",
    )
    lint.add_argument(
        "--kubernetes-version",
        default=KUBE_VERSION,
        metavar="VERSION",
        help="the version of Kubernetes that templates see (default: %(default)s)",
    )
    add_environment_option(lint)
    lint.add_argument("--strict", action="store_true", help="count warnings as errors")
    lint.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")
    lint.set_defaults(handler=lint_command, refused=refused)


def lint_command(args: argparse.Namespace) -> int:
    """Lint a package and print the findings."""
    folder = cast("Path", args.folder)
    if not folder.is_dir():
        why = "it is a file, not a folder" if folder.exists() else "no such folder"
        return _not_told(f"{folder}: {why}; name the folder with the package's files")
    helm = shutil.which(cast("str", args.helm))
    if helm is None and not args.no_templates:
        return _not_told(
            f"no {args.helm!r} on PATH; install Helm 3.14 or newer, name it with --helm, or use --no-templates"
        )
    try:
        given = _given(cast("Path | None", args.settings))
    except PackageError as error:
        return _not_told(str(error))
    rendering = None
    if helm is not None and not args.no_templates:
        rendering = Rendering(Path(helm), {} if given is None else given.settings, cast("str", args.kubernetes_version))
    environ = hook_environment(os.environ, cast("list[AskedVariable]", args.hook_env)).variables
    reader = None if args.no_hooks else ProcessConfigReader(environment=environ)
    refused = cast("RefusedFields", args.refused)
    report = trio.run(_lint, folder, rendering, given, reader, refused)
    if isinstance(report, Exception):
        return _not_told(f"the package cannot be checked now: {report}; try again")
    say(_json(report) if args.output == "json" else _text(report))
    bad = report.count(Severity.ERROR) + (report.count(Severity.WARNING) if args.strict else 0)
    return EXIT_FOUND if bad else 0


async def _lint(
    folder: Path,
    rendering: Rendering | None,
    given: GivenSettings | None,
    reader: ConfigReader | None,
    refused: RefusedFields,
) -> LintReport | Exception:
    """Return the report of the checks, or the error that prevented them.

    The error is returned and not raised, because the nurseries of the pools would wrap it in an exception group.
    """
    async with open_jq_pool(None, workers=1) as filters, open_cel_pool(None, workers=1) as rules:
        try:
            return await lint_package(folder, LintTools(filters, rules, reader, rendering, refused), given)
        except (PackageError, HookError, FilterError) as error:
            return error


def _given(path: Path | None) -> GivenSettings | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return read_given_settings(file.read(MAX_VALUES + 1), str(path), 0)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error


def _not_told(why: str) -> int:
    tell(f"error: {why}")
    return EXIT_USAGE


def _text(report: LintReport) -> str:
    return "".join(f"{line}\n" for line in [*map(str, report.findings), _summary(report)])


def _summary(report: LintReport) -> str:
    definition = report.definition
    who = "the package" if definition is None else f"{definition.name} {definition.version}".strip()
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    return f"{who}: {counted(errors, 'error', none='no')}, {counted(warnings, 'warning', none='no')}"


def _json(report: LintReport) -> str:
    """Return the report as ASCII JSON, which cannot contain control characters for terminals."""
    definition = report.definition
    document: JsonObject = {
        "package": None if definition is None else {"name": definition.name, "version": definition.version},
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
        "findings": [
            {"file": each.file, "line": each.line or None, "severity": each.severity.value, "message": each.message}
            for each in report.findings
        ],
    }
    return json.dumps(document, indent=2) + "\n"
