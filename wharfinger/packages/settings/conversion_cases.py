"""A package's examples of its conversions, and their check (``openapi/conversions/testcases.yaml``)::

    testcases:
      - name: auth.enable is renamed
        currentVersion: 1
        expectedVersion: 2
        settings: |                  # YAML text, or the object itself
          auth: {enable: true}
        expected: |
          auth: {enabled: true}

The daemon ignores these examples; ``wharfinger package check`` runs them. The older form is read, too: a file
``conversions_test.yaml`` with ``cases``. ``currentVersion`` defaults to the first version, ``expectedVersion`` to the newest.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, canonical_json
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.conversions import (
    CASES_FILES,
    CONVERSIONS_FOLDER,
    MAX_VERSION,
    ConversionChain,
    JqRunner,
    convert_between,
)
from wharfinger.packages.errors import ArtifactError, ConversionError
from wharfinger.packages.files.package_files import PackageFiles
from wharfinger.packages.files.strict_fields import at, closed_object, items, number, text

MAX_CASES: Final = 1_000
MAX_SHOWN: Final = 400
"""A message about a difference shows at most this number of characters of each side."""

_KEYS: Final = ("name", "currentVersion", "expectedVersion", "settings", "expected")
_LISTS: Final = ("testcases", "cases")


@dataclass(frozen=True, slots=True)
class ConversionCase:
    """One example of a conversion; ``where`` is its place in the package, for messages."""

    where: str
    name: str
    from_version: int
    to_version: int
    settings: JsonObject
    expected: JsonObject


def read_cases(files: PackageFiles, chain: ConversionChain) -> tuple[ConversionCase, ...]:
    """Return the examples of a package; () if it has no examples. Raises ArtifactError, which names the file and the case."""
    found: list[ConversionCase] = []
    for name in CASES_FILES:
        path = f"{CONVERSIONS_FOLDER}/{name}"
        document = files.read_object(path)
        if document is None:
            continue
        try:
            closed_object(document, "", _LISTS)
            for key in _LISTS:
                entries = items(document, key, "")
                if len(found) + len(entries) > MAX_CASES:
                    raise ShapeError(f"{key}: more than {MAX_CASES} cases")
                found += [_read_case(entry, at(key, index), path, chain) for index, entry in enumerate(entries)]
        except FormatError as error:
            raise ArtifactError(f"{path}: {error}") from error
    return tuple(found)


async def run_case(case: ConversionCase, chain: ConversionChain, jq: JqRunner) -> str:
    """Return the reason why an example fails; "" if it passes.

    An example also fails if a jq program takes too long. Raises a transient ConversionError if the result cannot be determined
    now.
    """
    try:
        found = await convert_between(chain, jq, case.settings, case.from_version, case.to_version)
    except ConversionError as error:
        if error.transient and not error.late:
            raise
        return str(error)
    if canonical_json(found) == canonical_json(case.expected):
        return ""
    return f"expected {_shown(case.expected)}, got {_shown(found)}"


def _read_case(value: JsonValue, where: str, path: str, chain: ConversionChain) -> ConversionCase:
    entry = closed_object(as_object(value, where), where, _KEYS)
    first = number(entry, "currentVersion", where, most=MAX_VERSION) or 1
    last = number(entry, "expectedVersion", where, most=MAX_VERSION) or chain.current
    if last > chain.current:
        raise ShapeError(f"{at(where, 'expectedVersion')}: {last}, but the newest version is {chain.current}")
    if first >= last:
        raise ShapeError(
            f"{at(where, 'currentVersion')}: expected a version before expectedVersion ({last}), found {first}; "
            "nothing would be converted"
        )
    return ConversionCase(
        where=f"{path}: {where}",
        name=text(entry, "name", where) or where,
        from_version=first,
        to_version=last,
        settings=_settings(entry, "settings", where),
        expected=_settings(entry, "expected", where),
    )


def _settings(entry: JsonObject, key: str, where: str) -> JsonObject:
    """Return an object that is given directly or as YAML text; {} if it is null or missing."""
    found = entry.get(key)
    path = at(where, key)
    if isinstance(found, str):
        found = read_yaml(found, what=path)
    return {} if found is None else as_object(found, path)


def _shown(value: JsonObject) -> str:
    written = canonical_json(value).decode()
    return written if len(written) <= MAX_SHOWN else written[:MAX_SHOWN] + "…"
