"""The files with tests: ``*.test.yaml`` in the subfolder ``tests`` of a package, a chart or a tree.

The tests of a packed chart are in a folder ``tests`` beside the archive.

A file has one document with a list ``tests``. It is not a manifest, so it has neither ``apiVersion`` nor ``kind``::

    tests:
    - name: three replicas
      values: {replicas: 3}
      expect:
      - object: Deployment/web
        matches: {spec: {replicas: 3}}
      - object: apps/Secret/web
        absent: true
      - kind: ConfigMap
        count: 2
    - name: a color is required
      values: {color: null}
      expect:
      - fails: name a color

Unknown fields are refused, so that a misspelled field is not silently ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_object
from wharfinger.formats.yaml.reader import read_yaml

FOLDER: Final = "tests"
SUFFIXES: Final = (".test.yaml", ".test.yml")
MAX_FILE: Final = 1024 * 1024


class CaseFileError(Exception):
    """A file with tests cannot be read, is not valid, or does not fit the paths of the command."""


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object as a test names it: ``KIND/NAME`` or ``NAMESPACE/KIND/NAME``; ``namespace`` is "" for any namespace."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)


@dataclass(frozen=True, slots=True)
class Matches:
    """The expectation that an object exists and has these fields."""

    object: ObjectName
    fields: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class Absent:
    """The object does not exist."""

    object: ObjectName


@dataclass(frozen=True, slots=True)
class Count:
    """An expectation: there are exactly ``count`` objects of a kind; if ``kind`` is "", objects of all kinds are counted."""

    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class Fails:
    """The build fails, and one of its messages contains this text."""

    text: str


Expectation: TypeAlias = Matches | Absent | Count | Fails


@dataclass(frozen=True, slots=True)
class Case:
    """One test: values that override those of the command line, and the expected results of the build."""

    file: str
    name: str
    values: JsonObject | None
    expectations: tuple[Expectation, ...]


def files_with_tests(path: Path) -> tuple[Path, ...]:
    """Return the files with tests, sorted: those in ``tests`` in the folder ``path``, or in ``tests`` beside the file ``path``.

    Blocking. Raises CaseFileError.
    """
    folder = (path if path.is_dir() else path.parent) / FOLDER
    try:
        return tuple(sorted(each for each in folder.iterdir() if each.name.endswith(SUFFIXES) and each.is_file()))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise CaseFileError(f"{folder}: cannot be read: {error.strerror}") from error


def read_tests(path: Path) -> tuple[Case, ...]:
    """Read the tests of one file. Blocking. Raises CaseFileError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise CaseFileError(f"{path}: more than {MAX_FILE} bytes; split it")
        document = as_object(read_yaml(data, what=path.name), path.name)
        _check_keys(document, {"tests"}, "the file")
        listed = document.get("tests")
        if not isinstance(listed, list) or not listed:
            raise FormatError("tests: expected a list with at least one test")
        cases = [_case(each, f"tests[{number}]", str(path)) for number, each in enumerate(listed)]
    except OSError as error:
        raise CaseFileError(f"{path}: cannot be read: {error.strerror}") from error
    except FormatError as error:
        raise CaseFileError(f"{path}: {error}") from error
    names = [each.name for each in cases]
    if doubled := sorted({each for each in names if names.count(each) > 1}):
        raise CaseFileError(f"{path}: two tests have the name {doubled[0]!r}; rename one")
    return tuple(cases)


def _case(value: JsonValue, where: str, file: str) -> Case:
    case = as_object(value, where)
    _check_keys(case, {"name", "values", "expect"}, where)
    name, listed = case.get("name"), case.get("expect")
    if not isinstance(name, str) or not name:
        raise FormatError(f"{where}.name: expected a text; give the test a name")
    if not isinstance(listed, list) or not listed:
        raise FormatError(f"{where}.expect: expected a list with at least one expectation")
    expected = tuple(_expectation(each, f"{where}.expect[{number}]") for number, each in enumerate(listed))
    return Case(file, name, find_object(case, "values") if "values" in case else None, expected)


def _expectation(value: JsonValue, where: str) -> Expectation:
    given = as_object(value, where)
    keys = frozenset(given)
    if keys == {"object", "matches"}:
        return Matches(_object(given["object"], where), as_object(given["matches"], f"{where}.matches"))
    if keys == {"object", "absent"} and given["absent"] is True:
        return Absent(_object(given["object"], where))
    if keys in ({"kind", "count"}, {"count"}):
        kind, count = given.get("kind", ""), given["count"]
        if isinstance(kind, str) and isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return Count(kind, count)
        raise FormatError(f"{where}: expected a text as kind, and a whole number from 0 as count")
    if keys == {"fails"} and isinstance(given["fails"], str) and given["fails"]:
        return Fails(given["fails"])
    raise FormatError(
        f"{where}: expected one of: `object` and `matches`; `object` and `absent: true`; `count`, with or without `kind`; "
        f"`fails` with a text; found {', '.join(sorted(keys)) or 'nothing'}"
    )


def _object(value: JsonValue, where: str) -> ObjectName:
    parts = value.split("/") if isinstance(value, str) else []
    if len(parts) not in {2, 3} or not all(parts):
        raise FormatError(f"{where}.object: expected KIND/NAME or NAMESPACE/KIND/NAME, found {value!r}")
    namespace, kind, name = parts if len(parts) > 2 else ("", *parts)
    return ObjectName(namespace, kind, name)


def _check_keys(given: JsonObject, known: set[str], where: str) -> None:
    for key in _unknown(given, known):
        raise FormatError(f"{where}: unknown field {key!r}; known are {', '.join(sorted(known))}")


def _unknown(given: JsonObject, known: set[str]) -> Iterator[str]:
    return (key for key in sorted(given) if key not in known)
