"""The check of a package before anybody installs it: files and default values that the daemon would refuse, and more.

`check_package` reads a folder as the daemon does when it loads a package (definition, schemas with their rules, conversions,
CRDs), checks ``values.yaml`` as for a user who sets nothing, then goes further: every program of a conversion is compiled, the
examples that the package brings are converted, and settings that are given are checked as an Application's would be. Hooks are
not run; ``wharfinger hook config`` asks one.

What is found is a list of `CheckFinding`; nothing is raised for a bad package, only for what cannot be told now (a worker died).
A program that takes too long is found, too: the daemon would try it again, in case that the machine was busy, but an author must
be told.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.schemas.problems import Problem
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
from wharfinger.packages.settings.check import SettingsChecker
from wharfinger.packages.settings.conversion_cases import ConversionCase, read_cases, run_case
from wharfinger.packages.settings.values import MAX_VALUES, check_package_rules, default_problems

_SCHEMA: Final = "the settings schema"
_CHECKED_BY_HELM: Final = (
    "of a plain chart, they are Helm's to check (values.schema.json) when it renders; nothing was checked here"
)


class Severity(StrEnum):
    """An error keeps a package, or settings, from being installed; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One thing that is wrong; ``where`` is a file of the package, a field of the settings, or ""."""

    severity: Severity
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


HookCheck: TypeAlias = Callable[[Path], tuple[CheckFinding, ...]]
"""Finds what is wrong with the files of the hooks in a package's folder, and runs none of them. Blocking."""


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """Settings to be checked; ``version`` as ``spec.settingsVersion``, 0 for the newest."""

    settings: JsonObject
    version: int = 0


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What came of it. ``definition`` None: it could not be read. ``cases``: examples of conversions that were run."""

    definition: Definition | None
    findings: tuple[CheckFinding, ...]
    cases: int = 0
    settings_checked: bool = False

    def count(self, severity: Severity) -> int:
        """How many findings are as bad as that."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def passed(self) -> bool:
        """No error."""
        return not self.count(Severity.ERROR)


async def check_package(
    folder: Path,
    checker: SettingsChecker,
    given: GivenSettings | None = None,
    *,
    hooks: HookCheck | None = None,
    defaults: bool = True,
) -> CheckReport:
    """Look a package's folder over, its hooks' files as well if there is who does that.

    Without ``given``, its values are checked as they are for a user who sets nothing; ``defaults=False`` leaves that out.
    Raises PackageError, transient, where that cannot be done now.
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
    return CheckReport(definition, tuple(findings), len(cases), settings_checked=True)


def read_given_settings(data: bytes, what: str, version: int) -> GivenSettings:
    """Settings from a file: YAML or JSON, an object or nothing. Raises ArtifactError naming the file."""
    if len(data) > MAX_VALUES:
        raise ArtifactError(f"{what}: {len(data)} bytes is over the limit of {MAX_VALUES}")
    try:
        document = read_yaml(data, what=what)
        return GivenSettings({} if document is None else as_object(document, what), version)
    except FormatError as error:
        raise ArtifactError(str(error)) from error


async def _programs(definition: Definition, checker: SettingsChecker) -> list[CheckFinding]:
    """What does not compile, of rules and of conversions. Raises PackageError, transient, where that cannot be told now."""
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
    """Of a program that takes too long. Raises any other error again."""
    if not error.late:
        raise error
    return CheckFinding(Severity.ERROR, where, str(error))


def _field(problem: Problem) -> str:
    return f"settings.{problem.path}" if problem.path else "settings"


def _read(folder: Path) -> Definition:
    name = own_name(folder)
    definition = read_definition(folder, name=name, version="")
    if definition.layout is not Layout.CHART:
        read_crds(folder)
    return definition


def own_name(folder: Path) -> str:
    """What the package calls itself, else what its folder is called; the number before a module's name is no part of it.

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
    """What works, and is a trap for whoever changes it next."""
    chain = definition.conversions
    if not chain.declared:
        message = f"says no {X_CONFIG_VERSION}, and conversions lead to {chain.current}; say so, beside its type"
        yield CheckFinding(Severity.WARNING, _SCHEMA, message)
    for conversion in chain.conversions:
        if not any(case.from_version < conversion.version <= case.to_version for case in cases):
            message = f"no example in testcases.yaml converts to version {conversion.version}"
            yield CheckFinding(Severity.WARNING, conversion.file, message)


def _error(message: str) -> CheckFinding:
    """Of a message that names its place itself."""
    return CheckFinding(Severity.ERROR, "", " ".join(message.split()))
