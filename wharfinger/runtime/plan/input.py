"""Applications and Modules from files, for a plan: the files that a user would give to ``kubectl apply -f``.

Files are read as kubectl reads them: YAML or JSON, possibly with several documents, or with objects such as ``kind: List`` that
contain other objects. If a path is a folder, the files directly in it whose names end in ``.yaml``, ``.yml`` or ``.json`` are
read. No API server checks the documents, so the ``spec`` of each Application and Module is validated here with the schema of
its CRD (``crds/``), without the CRD's CEL rules; unknown fields in it are reported, too. Then the document is read as in the
daemon. Documents of other kinds, and objects that are being deleted, are ignored; a plan states their number.

All problems are found in one run. Each problem names its file and the number of its document. Documents are numbered from 1;
empty documents have no number.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.listing import listed
from wharfinger.formats.schemas.openapi_schema import Schema, compile_schema
from wharfinger.formats.schemas.transforms import closed
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml_all
from wharfinger.packages.definition.requirements import is_instance_name, is_package_name
from wharfinger.runtime.resources.custom_resources import own_crds
from wharfinger.runtime.resources.resources import (
    GROUP,
    MODULE,
    VERSION,
    PackageSpec,
    SpecError,
    is_deleting,
    read_application,
    read_module,
)

SUFFIXES: Final = (".yaml", ".yml", ".json")
STANDARD_INPUT: Final = "-"
MAX_FILES: Final = 10_000
MAX_FILE: Final = 16 * 1024 * 1024
MAX_BYTES: Final = 256 * 1024 * 1024
"""The limit on the size of all files together, in bytes."""
MAX_RESOURCES: Final = 10_000
"""The limit on the number of Applications and Modules in all files together."""
MAX_TOLD: Final = 20
"""The limit on the number of problems that are reported."""

_READ_HERE: Final = ("Application", "Module")
_API_VERSION: Final = f"{GROUP}/{VERSION}"
_MOST_PROBLEMS: Final = 3
"""The limit on the number of problems in the line about one document."""


class PlanInputError(Exception):
    """The files cannot be read; ``lines`` has one line for each problem, for at most MAX_TOLD problems."""

    def __init__(self, lines: Sequence[str]) -> None:
        more = len(lines) - MAX_TOLD
        self.lines = (*lines[:MAX_TOLD], *([f"and {more} more"] if more > 0 else []))
        super().__init__("; ".join(self.lines))


@dataclass(frozen=True, slots=True)
class Wanted:
    """One Application or Module, and the place where it was found: ``shop.yaml, document 2``."""

    spec: PackageSpec
    place: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """The resources to plan, sorted by name; ``left_alone`` counts the ignored documents."""

    wanted: tuple[Wanted, ...]
    left_alone: int = 0


@dataclass(slots=True)
class _Reader:
    """The resources read so far. ``namespace`` is the namespace of Applications that name no namespace. ``bundled`` is True
    if a bundle decides which Modules are on.
    """

    namespace: str
    bundled: bool
    wanted: dict[str, Wanted] = field(default_factory=dict)
    left_alone: int = 0
    wrong: list[str] = field(default_factory=list)
    read: int = 0
    """The number of bytes read so far, from all files."""

    def take(self, file: str, data: bytes) -> None:
        try:
            documents = read_yaml_all(data, what=file, limits=YamlLimits(MAX_FILE, max_characters=4 * MAX_FILE))
        except FormatError as error:
            self.wrong.append(str(error))
            return
        for number, document in enumerate(documents, 1):
            for place, each in _listed(document, f"{file}, document {number}"):
                try:
                    self._take_one(each, place)
                except (FormatError, SpecError) as error:
                    self.wrong.append(f"{place}{_called(each)}: {error}")

    def _take_one(self, document: JsonValue, place: str) -> None:
        obj = as_object(document, "the document")
        kind, group, version = find_str(obj, "kind"), *_api_version(obj)
        if not kind or not version:
            raise SpecError("expected a resource with apiVersion and kind")
        if group != GROUP or kind not in _READ_HERE or is_deleting(obj):
            self.left_alone += 1
            return
        if version != VERSION:
            raise SpecError(f"apiVersion: expected {_API_VERSION}, found {group}/{version}; correct it")
        spec = self._read(obj, kind)
        if (other := self.wanted.get(spec.id.name)) is not None:
            raise SpecError(f"{kind} {spec.id} is also in {other.place}; remove one of the two")
        if len(self.wanted) >= MAX_RESOURCES:
            raise SpecError(f"found more than {MAX_RESOURCES} Applications and Modules; plan a part of them")
        self.wanted[spec.id.name] = Wanted(spec, place)

    def _read(self, obj: JsonObject, kind: str) -> PackageSpec:
        name = find_str(obj, "metadata", "name")
        if kind == MODULE.kind:
            if not is_package_name(name):
                raise SpecError(f"metadata.name: {name[:80]!r} is not a valid name of a Module")
        else:
            obj = {**obj, "metadata": {"namespace": self.namespace, **find_object(obj, "metadata")}}
            namespace = find_str(obj, "metadata", "namespace")
            if not is_instance_name(name):
                raise SpecError(f"metadata.name: {name[:80]!r} is not a valid name of an Application")
            if not is_package_name(namespace):
                raise SpecError(f"metadata.namespace: {namespace[:80]!r} is not a valid name of a namespace")
        problems = _schemas()[kind].problems({"spec": find_object(obj, "spec")})
        if problems:
            told = (f"{problem.path}: {problem.message}" for problem in problems)
            raise SpecError(listed(told, _MOST_PROBLEMS, "; "))
        if kind == MODULE.kind:
            return read_module(obj, enabled_by_default=None if self.bundled else True)
        return read_application(obj)


def read_inputs(paths: Sequence[Path], *, namespace: str, bundled: bool) -> Inputs:
    """Read files, folders and (``-``) standard input. Blocking. Raises PlanInputError.

    ``namespace`` is the namespace of Applications that name no namespace. If ``bundled`` is True, the bundle of the platform
    decides whether a Module without ``spec.enabled`` is on. Otherwise, such a Module is on.
    """
    reader = _Reader(namespace, bundled)
    for path in dict.fromkeys(paths):
        for file in _files(path, reader.wrong):
            data = _read_file(file, reader)
            if data is not None:
                reader.take(str(file), data)
    if reader.wrong:
        raise PlanInputError(reader.wrong)
    return Inputs(tuple(reader.wanted[name] for name in sorted(reader.wanted)), reader.left_alone)


def _files(path: Path, wrong: list[str]) -> Sequence[Path]:
    """Return the file at a path, or the files of the folder at the path, sorted by name; add problems to ``wrong``."""
    try:
        if str(path) == STANDARD_INPUT or not path.is_dir():
            return (path,)
        found = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES and not each.is_dir())
    except OSError as error:
        wrong.append(f"{path}: cannot be read: {error.strerror}")
        return ()
    if not found:
        wrong.append(
            f"{path}: no file in this folder has a name that ends in {', '.join(SUFFIXES)}; folders in it are not read"
        )
    if len(found) > MAX_FILES:
        wrong.append(f"{path}: found {len(found)} files, but at most {MAX_FILES} can be read; plan a part of them")
        return ()
    return found


def _read_file(path: Path, reader: _Reader) -> bytes | None:
    try:
        if str(path) == STANDARD_INPUT:
            data = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_FILE + 1)
    except OSError as error:
        reader.wrong.append(f"{path}: cannot be read: {error.strerror}")
        return None
    reader.read += len(data)
    if reader.read > MAX_BYTES:
        raise PlanInputError(
            [f"{path}: the files up to this one exceed the limit of {MAX_BYTES} bytes together; plan a part of them"]
        )
    return data


def _listed(document: JsonValue, place: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the document, or the items of the document if it is a list; lists within lists are not expanded."""
    items = find(document, "items") if isinstance(document, dict) else None
    kind = document.get("kind") if isinstance(document, dict) else None
    if isinstance(items, list) and isinstance(kind, str) and kind.endswith("List"):
        for number, each in enumerate(find_list(document, "items"), 1):
            yield f"{place}, item {number}", each
    else:
        yield place, document


def _api_version(obj: JsonObject) -> tuple[str, str]:
    group, _, version = find_str(obj, "apiVersion").rpartition("/")
    return group, version


def _called(document: JsonValue) -> str:
    """Return a text like `` (Application web/shop)`` for a document whose fields may have any type; empty if the document has
    no name.
    """
    if not isinstance(document, dict):
        return ""
    metadata = document.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    names = [each for each in (said.get("namespace"), said.get("name")) if isinstance(each, str) and each]
    kind = document.get("kind")
    if not (isinstance(kind, str) and kind and names):
        return ""
    return f" ({kind[:80]} {'/'.join(each[:80] for each in names)})"


@cache
def _schemas() -> dict[str, Schema]:
    """Return the schemas of Wharfinger's own kinds, by kind, from the CRDs that the daemon installs."""
    found: dict[str, Schema] = {}
    for crd in own_crds():
        kind = find_str(crd, "spec", "names", "kind")
        whole = find_object(crd, "spec", "versions", 0, "schema", "openAPIV3Schema")
        written: JsonObject = {
            "type": "object",
            "required": ["spec"],
            "properties": {"spec": find_object(whole, "properties", "spec")},
        }
        found[kind] = compile_schema(closed(written), what=kind)
    return found
