"""The CRDs of a package: ``crds/`` is read directly, without Helm (spec hook-protocol §5.7).

Helm could read the CRDs of a chart, but not those of many module folders: the ``.helmignore`` of such a folder often excludes
``crds/``, because addon-operator applies the CRDs itself. ``crds/`` may also contain files that are not CRDs; their names begin
with ``doc-``, ``_`` or ``.``.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.packages.definition.module_folder import CRDS_FOLDER
from wharfinger.packages.errors import ArtifactError, RenderError
from wharfinger.packages.files.package_files import open_files

MAX_FILES: Final = 2_000
MAX_TOTAL: Final = 64 * 1024 * 1024
"""The largest size of all CRD files of a package together, in bytes."""

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_NO_CRDS: Final = ("doc-", "_", ".")


def read_crds(package: Path) -> tuple[JsonObject, ...]:
    """Return the objects in ``crds/`` and the folders below it, in the order of their paths; () without that folder.

    Blocking. Raises RenderError naming the file.
    """
    try:
        files = open_files(package, package.name)
        found: list[JsonObject] = []
        room = MAX_TOTAL
        for name in crd_file_names(files.root):
            data = files.read(name) or b""
            room -= len(data)
            if room < 0:
                raise RenderError(f"{CRDS_FOLDER}/: more than {MAX_TOTAL} bytes")
            found += _objects(data, name)
        return tuple(found)
    except ArtifactError as error:
        raise RenderError(str(error)) from error


def served_kinds(crd: JsonObject) -> list[str]:
    """Return ``group/version/Kind`` of every version that a CRD serves."""
    group, kind = find_str(crd, "spec", "group"), find_str(crd, "spec", "names", "kind")
    versions = find_list(crd, "spec", "versions")
    return [
        f"{group}/{find_str(one, 'name')}/{kind}" for one in versions if isinstance(one, dict) and one.get("served")
    ]


def _objects(data: bytes, name: str) -> Iterator[JsonObject]:
    try:
        for document in read_yaml_all(data, what=name):
            if not isinstance(document, dict) or not (find_str(document, "apiVersion") and find_str(document, "kind")):
                raise RenderError(
                    f"{name}: an object without apiVersion or kind; correct it, or begin the file's name with _"
                )
            yield document
    except FormatError as error:
        message = str(error)
        raise RenderError(message if message.startswith(f"{name}:") else f"{name}: {message}") from error


def crd_file_names(root: Path) -> list[str]:
    """Return the names of the files that `read_crds` reads, relative to the package's folder, sorted.

    Blocking. Raises RenderError.
    """
    names: list[str] = []
    count = 0
    for here, folders, files in os.walk(root / CRDS_FOLDER):
        count += len(files) + len(folders)
        if count > MAX_FILES:
            raise RenderError(f"{CRDS_FOLDER}/: more than {MAX_FILES} files")
        below = Path(here).relative_to(root)
        names += [
            (below / name).as_posix() for name in files if name.endswith(_SUFFIXES) and not name.startswith(_NO_CRDS)
        ]
    return sorted(names)
