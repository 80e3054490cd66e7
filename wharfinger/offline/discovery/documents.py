"""The documents of one YAML file, each with the line on which it starts.

The items of a ``List`` are separate objects at the place of the list. Documents without ``apiVersion`` and ``kind``, such as
values for a chart, are not manifests, and are skipped. In an object that SOPS encrypted, placeholders replace the
encrypted values, because nothing here can decrypt them.
"""

import base64
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.formats.yaml.parsed_texts import ParsedTexts
from wharfinger.formats.yaml.reader import YamlError, YamlLimitError, read_yaml_documents
from wharfinger.offline.store.store import Place

SUFFIXES: Final = (".yaml", ".yml", ".json")
SOPS: Final = "sops"
_LIST: Final = "List"
_PLACEHOLDER: Final = "..PLACEHOLDER_"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with a file."""

    place: Place
    message: str
    is_limit: bool = False
    """True if the problem is that the file is too large. Then it cannot be built either."""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Document:
    """One object that a file of the tree declares, with its place. ``encrypted`` is True if SOPS has encrypted the object."""

    object: JsonObject
    place: Place
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class FileContent:
    """The objects that one file declares, and the problems that prevent others from being read."""

    documents: tuple[Document, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_documents(data: bytes, file: str, texts: ParsedTexts | None = None) -> FileContent:
    """Read the objects of a file; ``file`` is its name in each `Place`. No errors are raised: problems are part of the result."""
    try:
        read = read_yaml_documents(data, what=file) if texts is None else texts.documents(data, what=file)
    except FormatError as error:
        line = error.line if isinstance(error, YamlError) else None
        message = str(error).removeprefix(f"{file}:").lstrip()
        is_limit = isinstance(error, YamlLimitError)
        return FileContent(problems=(Problem(Place(file, line or 0), f"not readable YAML: {message}", is_limit),))
    documents: list[Document] = []
    problems: list[Problem] = []
    for value, line in read:
        for each in flattened(value):
            place = Place(file, line)
            if not isinstance(each, dict) or not is_manifest(each):
                continue
            try:
                named = find_str(each, "metadata", "name") or find_str(each, "metadata", "generateName")
                find_str(each, "metadata", "namespace")
            except FormatError as error:
                problems.append(Problem(place, f"{find_str(each, 'kind')}: {error}"))
                continue
            if named:
                documents.append(_document(each, place))
            else:
                problems.append(Problem(place, f"a {find_str(each, 'kind')} without metadata.name; give it a name"))
    return FileContent(tuple(documents), tuple(problems))


def is_manifest(value: JsonObject) -> bool:
    """Return whether a document is an object for a cluster, and not a configuration of kustomize."""
    api, kind = value.get("apiVersion"), value.get("kind")
    if not isinstance(api, str) or not isinstance(kind, str) or not api or not kind:
        return False
    return not api.startswith("kustomize.config.k8s.io/")


def flattened(value: JsonValue) -> list[JsonValue]:
    """Return the items of a list of objects, such as a ``List`` or a ``SecretList``; any other value as the only item.

    Items of a typed list need not name their type. kubectl and Helm treat lists in the same way.
    """
    if not isinstance(value, dict):
        return [value]
    kind, items = value.get("kind"), value.get("items")
    if not isinstance(kind, str) or not kind.endswith(_LIST) or not isinstance(items, list):
        return [value]
    typed: JsonObject = (
        {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix(_LIST)} if kind != _LIST else {}
    )
    return [found for item in items for found in flattened({**typed, **item} if isinstance(item, dict) else item)]


def _document(obj: JsonObject, place: Place) -> Document:
    if not isinstance(obj.get(SOPS), dict):
        return Document(obj, place)
    return Document(without_encryption(obj), place, encrypted=True)


def is_encrypted(obj: JsonObject) -> bool:
    """Return whether SOPS encrypted the object."""
    return isinstance(obj.get(SOPS), dict)


def without_encryption(obj: JsonObject) -> JsonObject:
    """Return an object that SOPS encrypted, with a placeholder for each encrypted value, and without the field ``sops``."""
    plain = {key: _with_placeholders(value, key) for key, value in obj.items() if key != SOPS}
    data = plain.get("data")
    if obj.get("kind") == "Secret" and isinstance(data, dict):
        plain["data"] = {
            key: base64.b64encode(value.encode()).decode()
            if isinstance(value, str) and value.startswith(_PLACEHOLDER)
            else value
            for key, value in data.items()
        }
    return plain


def placeholder(key: str) -> str:
    """Return the text that replaces the value of a Secret under a key."""
    return f"{_PLACEHOLDER}{key}.."


def _with_placeholders(value: JsonValue, key: str) -> JsonValue:
    if isinstance(value, str):
        return placeholder(key) if value.startswith("ENC[") else value
    if isinstance(value, dict):
        return {inner: _with_placeholders(each, inner) for inner, each in value.items()}
    if isinstance(value, list):
        return [_with_placeholders(each, key) for each in value]
    return value
