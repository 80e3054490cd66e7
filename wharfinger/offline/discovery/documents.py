"""The documents of one YAML file, each with the line on which it starts.

The items of a ``List`` are separate objects at the place of the list. Documents without ``apiVersion`` and ``kind`` are no
manifests, such as values for a chart, and are skipped. A Secret that SOPS encrypted is recognised: its values are replaced
by placeholders, because nothing here can decrypt them.
"""

import base64
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_object, find_str
from wharfinger.formats.yaml.reader import YamlError, read_yaml_documents
from wharfinger.offline.store.store import Place

SUFFIXES: Final = (".yaml", ".yml", ".json")
SOPS: Final = "sops"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a file."""

    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file."""

    object: JsonObject
    place: Place
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class FileContent:
    """The objects of one file, and what is wrong with it."""

    documents: tuple[Document, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_documents(data: bytes, file: str) -> FileContent:
    """Read the objects of a file; ``file`` names it in places. Raises nothing: problems are part of the result."""
    try:
        read = read_yaml_documents(data, what=file)
    except FormatError as error:
        line = error.line if isinstance(error, YamlError) else None
        message = str(error).removeprefix(f"{file}:").lstrip()
        return FileContent(problems=(Problem(Place(file, line or 0), f"not readable YAML: {message}"),))
    documents: list[Document] = []
    problems: list[Problem] = []
    for value, line in read:
        for each in _items(value):
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
    """Return whether a document is an object for a cluster, and no configuration of kustomize."""
    api, kind = value.get("apiVersion"), value.get("kind")
    if not isinstance(api, str) or not isinstance(kind, str) or not api or not kind:
        return False
    return not api.startswith("kustomize.config.k8s.io/")


def _items(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict) and value.get("kind") == "List" and value.get("apiVersion") == "v1":
        return list(find_list(value, "items"))
    return [value]


def _document(obj: JsonObject, place: Place) -> Document:
    if not isinstance(obj.get(SOPS), dict):
        return Document(obj, place)
    return Document(without_encryption(obj), place, encrypted=True)


def is_encrypted(obj: JsonObject) -> bool:
    """Return whether SOPS encrypted the object."""
    return isinstance(obj.get(SOPS), dict)


def without_encryption(obj: JsonObject) -> JsonObject:
    """Return an object that SOPS encrypted with a placeholder for each encrypted value, and without SOPS's own field."""
    plain = {key: _placeheld(value, key) for key, value in obj.items() if key != SOPS}
    data = find_object(plain, "data")
    if find_str(obj, "kind") == "Secret" and data:
        plain["data"] = {
            key: base64.b64encode(value.encode()).decode()
            if isinstance(value, str) and value.startswith("..PLACEHOLDER_")
            else value
            for key, value in data.items()
        }
    return plain


def _placeheld(value: JsonValue, key: str) -> JsonValue:
    if isinstance(value, str):
        return f"..PLACEHOLDER_{key}.." if value.startswith("ENC[") else value
    if isinstance(value, dict):
        return {inner: _placeheld(each, inner) for inner, each in value.items()}
    if isinstance(value, list):
        return [_placeheld(each, key) for each in value]
    return value
