"""The check of a package before anybody installs it.

It reports problems for which the daemon would refuse the package, and other problems that the daemon would not report.

`check_package` reads a folder as the daemon does when it loads a package (definition, schemas with their rules, conversions,
CRDs), and checks ``values.yaml`` as if the user had given no settings. Then it goes further: it compiles all jq programs of the
conversions, converts the examples in the package, and checks given settings as the daemon would check those of an Application.
It does not run hooks; ``wharfinger hook config`` runs a hook to read its configuration.

The result is a list of `CheckFinding`. Problems of the package are never raised as errors. An error is raised only if the
result cannot be determined now, for example because a worker process died. A jq program that takes too long is a finding, too:
the daemon would retry the conversion, because the machine may be busy, but the author should make the program faster.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.conversions import X_CONFIG_VERSION, program_problems
from wharfinger.packages.definition.crd_files import read_crds
from wharfinger.packages.definition.definition import Definition, Layout, read_definition
from wharfinger.packages.definition.module_folder import VALUES_FILE, split_weight
from wharfinger.packages.definition.package_file import (
    MAX_BYTES,
    MODULE_FILE,
    PACKAGE_FILE,
    read_module_file,
    read_package_file,
)
from wharfinger.packages.errors import ArtifactError, ConversionError, PackageError
from wharfinger.packages.files.package_files import open_files
from wharfinger.packages.rendering.chart_use import chart_use
from wharfinger.packages.settings.check import SettingsChecker
from wharfinger.packages.settings.conversion_cases import ConversionCase, read_cases, run_case
from wharfinger.packages.settings.schema_defaults import refused_defaults
from wharfinger.packages.settings.unread_settings import unread_settings
from wharfinger.packages.settings.values import MAX_VALUES, check_package_rules, default_problems

_SCHEMA: Final = "the settings schema"
_VALUES_SCHEMA: Final = "the values schema"
_CHECKED_BY_HELM: Final = (
    "Helm checks the settings of a plain chart (values.schema.json) when it renders; nothing was checked here"
)


class Severity(StrEnum):
    """The severity of a finding: a package with an error fails the check, a package with only warnings passes it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One problem of a package; ``where`` is a file of the package, a field of the settings, or ""."""

    severity: Severity
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


HookCheck: TypeAlias = Callable[[Path], tuple[CheckFinding, ...]]
"""A function that returns the problems of the hook files in a package's folder, without running them. Blocking."""


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """Settings to check. ``version`` is as in ``spec.settingsVersion``; 0 is the newest."""

    settings: JsonObject
    version: int = 0


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check.

    ``definition`` is None if it could not be read. ``cases`` is the number of conversion examples that were run.
    """

    definition: Definition | None
    findings: tuple[CheckFinding, ...]
    cases: int = 0
    settings_checked: bool = False

    def count(self, severity: Severity) -> int:
        """Return the number of findings of this severity."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def passed(self) -> bool:
        """True if there are no errors."""
        return not self.count(Severity.ERROR)


async def check_package(
    folder: Path,
    checker: SettingsChecker,
    given: GivenSettings | None = None,
    *,
    hooks: HookCheck | None = None,
    defaults: bool = True,
) -> CheckReport:
    """Check a package's folder, including the files of its hooks if ``hooks`` is given.

    Without ``given``, the package's values are checked as if the user had set nothing, unless ``defaults`` is False. Raises
    PackageError, transient, if the check cannot be done now.
    """
    try:
        definition = await trio.to_thread.run_sync(_read, folder)
    except PackageError as error:
        return CheckReport(None, (_error(str(error)),))
    findings = await _programs(definition, checker)
    sound = not findings
    findings += [CheckFinding(Severity.WARNING, "", message) for message in definition.warnings]
    cases: tuple[ConversionCase, ...] = ()
    if sound:
        try:
            cases = await trio.to_thread.run_sync(_cases, folder, definition)
        except ArtifactError as error:
            findings.append(_error(str(error)))
        for case in cases:
            if why := await run_case(case, definition.conversions, checker.jq):
                findings.append(CheckFinding(Severity.ERROR, f"{case.where} ({case.name})", why))
    findings += _untested(definition, cases)
    if hooks is not None and definition.layout is not Layout.CHART:
        found = await trio.to_thread.run_sync(hooks, folder)
        findings += found
        sound = sound and not any(finding.severity is Severity.ERROR for finding in found)
    if given is None and defaults:
        findings += [CheckFinding(Severity.ERROR, VALUES_FILE, str(each)) for each in default_problems(definition)]
        refused = await trio.to_thread.run_sync(refused_defaults, definition)
        for where, some in zip((_SCHEMA, _VALUES_SCHEMA), refused, strict=True):
            findings += [CheckFinding(Severity.ERROR, where, str(each.problem)) for each in some]
    if given is None or not sound:
        return CheckReport(definition, tuple(findings), len(cases))
    try:
        report = await checker.check(definition, given.settings, given.version)
    except ConversionError as error:
        findings.append(_too_slow(error, "settings"))
        return CheckReport(definition, tuple(findings), len(cases))
    findings += [CheckFinding(Severity.ERROR, _field(each), each.message) for each in report.problems]
    findings += [CheckFinding(Severity.WARNING, _field(each), each.message) for each in report.warnings]
    if definition.layout is Layout.CHART:
        findings.append(CheckFinding(Severity.WARNING, "settings", _CHECKED_BY_HELM))
        unread = await trio.to_thread.run_sync(_unread, folder, definition, given.settings)
        findings += [CheckFinding(Severity.WARNING, _field(each), each.message) for each in unread]
    return CheckReport(definition, tuple(findings), len(cases), settings_checked=True)


def read_given_settings(data: bytes, what: str, version: int) -> GivenSettings:
    """Return the settings in a file: YAML or JSON, an object or nothing. Raises ArtifactError naming the file."""
    if len(data) > MAX_VALUES:
        raise ArtifactError(f"{what}: {len(data)} bytes is over the limit of {MAX_VALUES}")
    try:
        document = read_yaml(data, what=what)
        return GivenSettings({} if document is None else as_object(document, what), version)
    except FormatError as error:
        raise ArtifactError(str(error)) from error


async def _programs(definition: Definition, checker: SettingsChecker) -> list[CheckFinding]:
    """Return findings about validation rules and conversion programs that do not compile.

    Raises a transient PackageError if this cannot be determined now.
    """
    findings: list[CheckFinding] = []
    try:
        await check_package_rules(definition, checker.rules)
    except ArtifactError as error:
        findings.append(_error(str(error)))
    try:
        findings += [_error(problem) for problem in await program_problems(definition.conversions, checker.jq)]
    except ConversionError as error:
        findings.append(_too_slow(error))
    return findings


def _too_slow(error: ConversionError, where: str = "") -> CheckFinding:
    """Return the finding for a program that takes too long. Raises any other error again."""
    if not error.late:
        raise error
    return CheckFinding(Severity.ERROR, where, str(error))


def _unread(folder: Path, definition: Definition, settings: JsonObject) -> tuple[Problem, ...]:
    return unread_settings(chart_use(folder, is_package=definition.chart_file is not None), settings)


def _field(problem: Problem) -> str:
    return f"settings.{problem.path}" if problem.path else "settings"


def _read(folder: Path) -> Definition:
    name = own_name(folder)
    definition = read_definition(folder, name=name, version="")
    if definition.layout is not Layout.CHART:
        read_crds(folder)
    return definition


def own_name(folder: Path) -> str:
    """Return the name in ``package.yaml`` or ``module.yaml``, else the name of the folder.

    If one of these files exists, but has no name, the folder's name is returned without its weight: ``web`` for ``002-web``.
    Blocking. Raises ArtifactError.
    """
    called = folder.resolve().name
    files = open_files(folder, called)
    for file, read in ((PACKAGE_FILE, read_package_file), (MODULE_FILE, read_module_file)):
        data = files.read(file, limit=MAX_BYTES)
        if data is not None:
            return read(data).name or split_weight(called)[1]
    return called


def _cases(folder: Path, definition: Definition) -> tuple[ConversionCase, ...]:
    return read_cases(open_files(folder, definition.name), definition.conversions)


def _untested(definition: Definition, cases: tuple[ConversionCase, ...]) -> Iterator[CheckFinding]:
    """Yield a warning if there are conversions but the schema has no version, and one for each conversion without an example."""
    chain = definition.conversions
    if not chain.declared:
        message = f"has no {X_CONFIG_VERSION}, but conversions lead to version {chain.current}; add it beside `type`"
        yield CheckFinding(Severity.WARNING, _SCHEMA, message)
    for conversion in chain.conversions:
        if not any(case.from_version < conversion.version <= case.to_version for case in cases):
            message = f"no example in testcases.yaml converts to version {conversion.version}"
            yield CheckFinding(Severity.WARNING, conversion.file, message)


def _error(message: str) -> CheckFinding:
    """Return a finding for an error whose message names the place of the problem."""
    return CheckFinding(Severity.ERROR, "", " ".join(message.split()))
