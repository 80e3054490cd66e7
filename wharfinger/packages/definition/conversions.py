"""The conversion of settings that were written for an older version of a package's schema to the newest version.

A schema changes: a setting is renamed, another becomes a list. Users should not have to edit their settings on the day of an
upgrade. So the schema has a version (``x-config-version`` in its file, 1 by default), and the package contains a conversion from
each version to the next, as in modules of Deckhouse::

    # openapi/conversions/v2.yaml
    version: 2
    conversions:                                     # jq programs, each run on the result of the one before
      - .auth.enabled = .auth.enable | del(.auth.enable)
    description: {en: auth.enable is called auth.enabled}

Settings are converted if the resource states which version they are written for (``spec.settingsVersion``). Without a version,
they count as written for the newest version.

Invariants. The package must have a conversion to each version from 2 to the newest; otherwise it is refused when it is read,
and the error names the missing file. Every program's result must be an object; otherwise nothing is converted, and the error
names the program and its version. Only the user's settings are converted, before defaults are added; empty settings are not
converted.

The programs come from the package, and are not trusted. `JqRunner` limits the size and the time of each program. The time limit
for all programs of a conversion together is in this module.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

import trio

from wharfinger.formats.errors import FormatError, ProgramError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, type_name
from wharfinger.formats.listing import listed
from wharfinger.packages.errors import ArtifactError, ConversionError
from wharfinger.packages.files.package_files import PackageFiles
from wharfinger.packages.files.strict_fields import at, closed_object, items, number, open_object, text

CONVERSIONS_FOLDER: Final = "openapi/conversions"
CASES_FILES: Final = ("testcases.yaml", "conversions_test.yaml")
"""The files in CONVERSIONS_FOLDER with examples (:mod:`wharfinger.packages.settings.conversion_cases`)."""
X_CONFIG_VERSION: Final = "x-config-version"
MAX_VERSION: Final = 1_000
MAX_FILES: Final = 2_000
MAX_PROGRAMS: Final = 100
"""The largest number of programs that convert settings to one version."""
MAX_PROGRAM: Final = 16 * 1024
"""The largest number of characters in one program of a conversion."""
CONVERT_S: Final = 60.0
"""The time limit, in seconds, for all programs that convert settings from one version to a later one. The runner also has a
limit for each program.
"""

_FILE: Final = re.compile(r"v([1-9][0-9]{0,3})\.ya?ml\Z", re.ASCII)
_SHOWN: Final = 5


class JqRunner(Protocol):
    """A runner of jq programs that limits the size and time of each. It raises ProgramErrors, which quote no value."""

    async def check(self, program: str) -> None:
        """Compile a program. Raises ProgramError."""
        ...

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Run a program on a value. Raises ProgramError.

        Returns None for no result, a single result as it is, and several results as a list.
        """
        ...


@dataclass(frozen=True, slots=True)
class Conversion:
    """The step from the preceding version to ``version``. ``description`` describes the changes, by language."""

    version: int
    programs: tuple[str, ...]
    description: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def file(self) -> str:
        """The path of the conversion's file, relative to the package."""
        return f"{CONVERSIONS_FOLDER}/v{self.version}.yaml"


@dataclass(frozen=True, slots=True)
class ConversionChain:
    """All conversions of a package, to the versions 2, 3, …, ``current``. ``declared`` is False if there are conversions, but the
    schema states no version.
    """

    current: int = 1
    conversions: tuple[Conversion, ...] = ()
    declared: bool = True


NO_CONVERSIONS: Final = ConversionChain()


def read_conversions(files: PackageFiles, schema: JsonObject, schema_file: str) -> ConversionChain:
    """Read the chain of a package with the settings schema ``schema`` ({} if it has none).

    A schema without a version has the version that the chain leads to. Raises ArtifactError naming the file.
    """
    try:
        said = number(schema, X_CONFIG_VERSION, "", most=MAX_VERSION) or 0
    except FormatError as error:
        raise ArtifactError(f"{schema_file}: {error}") from error
    found: dict[int, Conversion] = {}
    for name in files.names(CONVERSIONS_FOLDER, limit=MAX_FILES):
        conversion = _read_file(files, name)
        if conversion is None:
            continue
        if conversion.version in found:
            raise ArtifactError(
                f"{CONVERSIONS_FOLDER}/{name}: version {conversion.version} occurs twice; keep one file"
            )
        found[conversion.version] = conversion
    current = said or max(found, default=1)
    missing = [version for version in range(2, current + 1) if version not in found]
    if missing:
        names = listed((f"v{version}.yaml" for version in missing), _SHOWN)
        why = f"{schema_file} has {X_CONFIG_VERSION}: {said}" if said else f"v{current}.yaml exists"
        raise ArtifactError(
            f"{CONVERSIONS_FOLDER}: {names} missing: {why}, and settings of every older version must be converted; add what is "
            f"missing"
        )
    if max(found, default=1) > current:
        raise ArtifactError(
            f"{CONVERSIONS_FOLDER}/v{max(found)}.yaml: above {X_CONFIG_VERSION}: {current}, the version of {schema_file}; "
            "raise that version, or remove the file"
        )
    return ConversionChain(
        current, tuple(found[version] for version in sorted(found)), declared=bool(said) or not found
    )


async def check_conversions(chain: ConversionChain, jq: JqRunner) -> None:
    """Compile every program.

    Raises ArtifactError for programs that do not compile, ConversionError if that cannot be determined now.
    """
    problems = await program_problems(chain, jq)
    if problems:
        raise ArtifactError("; ".join(problems[:_SHOWN]))


async def program_problems(chain: ConversionChain, jq: JqRunner) -> tuple[str, ...]:
    """Return a problem for each program that does not compile, with its file.

    Raises ConversionError, transient, if that cannot be determined now.
    """
    problems: list[str] = []
    for conversion in chain.conversions:
        for index, program in enumerate(conversion.programs):
            where = f"{conversion.file}: {at('conversions', index)}"
            try:
                await jq.check(program)
            except ProgramError as error:
                if error.transient:
                    raise ConversionError(f"{where}: {_one_line(error)}", transient=True, late=error.late) from error
                problems.append(f"{where}: {_one_line(error)}")
    return tuple(problems)


async def convert(
    chain: ConversionChain, jq: JqRunner, settings: JsonObject, from_version: int
) -> tuple[JsonObject, int]:
    """Convert a user's settings to the newest version, and return them with that version.

    The ``from_version`` 0 means the newest version. Raises ConversionError, which names the unknown version, or the
    program that failed and its version.
    """
    if from_version not in range(chain.current + 1):
        raise ConversionError(
            f"spec.settingsVersion: {from_version} is not a version of the package's settings: the newest is {chain.current}; "
            "give the version that the settings are written for"
        )
    if from_version in (0, chain.current) or not settings:
        return settings, chain.current
    return await convert_between(chain, jq, settings, from_version, chain.current), chain.current


async def convert_between(
    chain: ConversionChain, jq: JqRunner, settings: JsonObject, from_version: int, to_version: int
) -> JsonObject:
    """Convert settings from one version of their schema to a later one. Raises ConversionError."""
    found: JsonObject | None = None
    with trio.move_on_after(CONVERT_S):
        found = await _run(chain, jq, settings, range(from_version + 1, to_version + 1))
    if found is None:
        raise ConversionError(
            f"settings of version {from_version}: converting them took longer than {CONVERT_S:g} s, all programs together",
            transient=True,
            late=True,
        )
    return found


async def _run(chain: ConversionChain, jq: JqRunner, settings: JsonObject, versions: range) -> JsonObject:
    for conversion in chain.conversions:
        if conversion.version not in versions:
            continue
        for index, program in enumerate(conversion.programs):
            where = (
                f"settings cannot be converted to version {conversion.version}, "
                f"program {index + 1} of {len(conversion.programs)} ({conversion.file})"
            )
            try:
                found = await jq.apply(program, settings)
            except ProgramError as error:
                raise ConversionError(
                    f"{where}: {_one_line(error)}", transient=error.transient, late=error.late
                ) from error
            if not isinstance(found, dict):
                raise ConversionError(f"{where}: expected an object as its result, found {type_name(found)}")
            settings = found
    return settings


def _one_line(error: ProgramError) -> str:
    """Return jq's message about a program as one printable line.

    For a program that does not compile, jq's message has several lines that point at the error, and it quotes foreign text.
    """
    said = " ".join(str(error).split())
    said = "".join(character if character.isprintable() else " " for character in said)
    return f"the program takes too long: {said}" if error.late else said


def _read_file(files: PackageFiles, name: str) -> Conversion | None:
    """Read one file of the folder. Returns None if the file is not a conversion. Raises ArtifactError."""
    path = f"{CONVERSIONS_FOLDER}/{name}"
    if name in CASES_FILES or not name.endswith((".yaml", ".yml")) or not files.has_file(path):
        return None
    match = _FILE.match(name)
    if match is None:
        raise ArtifactError(f"{path}: a conversion is named after the version that it leads to: v2.yaml, v3.yaml, …")
    document = files.read_object(path) or {}
    try:
        return _read_document(document, int(match[1]))
    except FormatError as error:
        raise ArtifactError(f"{path}: {error}") from error


def _read_document(document: JsonObject, named: int) -> Conversion:
    closed_object(document, "", ("version", "conversions", "description"))
    version = number(document, "version", "", most=MAX_VERSION)
    if version is None:
        raise ShapeError("version: required")
    if version != named:
        raise ShapeError(f"version: {version}, but the file is called v{named}; correct one of them")
    if version < 2:
        raise ShapeError("version: settings begin with version 1, so the first conversion leads to 2")
    entries = items(document, "conversions", "")
    if not entries:
        raise ShapeError("conversions: expected a list of jq programs, found none; use '.' to change nothing")
    if len(entries) > MAX_PROGRAMS:
        raise ShapeError(f"conversions: expected at most {MAX_PROGRAMS} programs, found {len(entries)}")
    programs = tuple(_program(entry, at("conversions", index)) for index, entry in enumerate(entries))
    languages = open_object(document.get("description"), "description")
    description = {language: text(languages, language, "description") for language in languages}
    return Conversion(version, programs, MappingProxyType(description))


def _program(value: JsonValue, where: str) -> str:
    if not isinstance(value, str):
        raise ShapeError(f"{where}: expected a jq program, found {type_name(value)}; put it in quotes")
    if not value.strip():
        raise ShapeError(f"{where}: expected a program, found an empty text; use '.' to change nothing")
    if len(value) > MAX_PROGRAM:
        raise ShapeError(f"{where}: expected at most {MAX_PROGRAM} characters, found {len(value)}")
    return value
