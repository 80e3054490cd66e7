"""The inputs of a kustomize builder: a folder with a ``kustomization.yaml``, or a kustomization generated for a build.

A generated kustomization lies in a folder of its own, the *place*, which the builder chooses. This folder need not exist on the
disk.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list
from wharfinger.formats.yaml.writer import write_yaml

FILE_NAME: Final = "kustomization.yaml"
_HEAD: Final[JsonObject] = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
_MANIFESTS: Final = "manifests.yaml"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a ``kustomization.yaml``. ``name`` is its name in messages."""

    folder: Path
    name: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """A generated kustomization on top of a folder, which stays unchanged.

    ``resources`` are paths in the folder. ``fields`` are all other fields; the components in them are paths in the folder, too.
    """

    folder: Path
    name: str
    resources: tuple[str, ...]
    fields: JsonObject

    def files(self, place: Path) -> Mapping[str, str]:
        """Return the texts of the files of the overlay by name, for an overlay in the folder ``place``."""
        base = self.base(place)
        document: JsonObject = {**_HEAD, "resources": [_joined(base, each) for each in self.resources], **self.fields}
        components: list[JsonValue] = [
            _joined(base, each) for each in find_list(self.fields, "components") if isinstance(each, str)
        ]
        if components:
            document["components"] = components
        return {FILE_NAME: write_yaml(document)}

    def base(self, place: Path) -> str:
        """Return the path of the base folder, relative to ``place``."""
        return os.path.relpath(self.folder.resolve(), place)


@dataclass(frozen=True, slots=True)
class Manifests:
    """A generated kustomization of one file with manifests, and ``fields`` that change them."""

    name: str
    text: str
    fields: JsonObject

    def files(self, _place: Path) -> Mapping[str, str]:
        """Return the texts of the files by name."""
        return {_MANIFESTS: self.text, FILE_NAME: write_yaml({**_HEAD, "resources": [_MANIFESTS], **self.fields})}


Kustomization: TypeAlias = Folder | Overlay | Manifests


def patches_name_files(what: Kustomization) -> bool:
    """Return whether a generated kustomization has patches that kustomize would read from files.

    An entry of ``patches`` that is a string may name a file, because kustomize reads a list with such an entry as
    ``patchesStrategicMerge``.
    """
    if isinstance(what, Folder):
        return False
    patches = find(what.fields, "patches")
    return any(
        not isinstance(each, dict) or any(key.casefold() == "path" and value for key, value in each.items())
        for each in (patches if isinstance(patches, list) else ())
    )


def names_in_messages(what: Kustomization, place: Path) -> tuple[tuple[str, str], ...]:
    """Return pairs: the name of a path in kustomize's messages, and the caller's name for it."""
    match what:
        case Folder():
            return ((str(what.folder), what.name), (str(what.folder.resolve()), what.name))
        case Overlay():
            base, name = what.base(place), what.name or "."
            return (
                (f"'{base}/", f"'{name}/"),
                (f"'{base}'", f"'{name}'"),
                (f" {base}/", f" {name}/"),
                (str(place), what.name),
                (str(what.folder.resolve()), what.name),
                (str(what.folder), what.name),
            )
        case Manifests():
            return ((str(place), what.name),)


def _joined(base: str, path: str) -> str:
    return os.path.normpath(os.path.join(base, path))  # noqa: PTH118 - a relative path with ".." in it
