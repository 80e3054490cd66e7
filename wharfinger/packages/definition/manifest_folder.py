"""Packages without a chart: a folder of plain manifests, or a folder with a ``kustomization.yaml`` at its top.

Files that end in ``.yaml`` or ``.yml`` are manifests, in the folder and all folders below it. As in Flux, JSON files are not
read. Names that begin with a dot are left out. Each document that is not empty must be an object; otherwise the package is
refused, because an object could be missing unnoticed if the document were skipped. Kustomize builds a folder with a
``kustomization.yaml``, and decides which files belong to the package.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.packages.charts.chart import CHART_FILE
from wharfinger.packages.definition.package_file import MODULE_FILE, PACKAGE_FILE
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import PackageFiles

KUSTOMIZATION_FILES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MANIFEST_SUFFIXES: Final = (".yaml", ".yml")
MAX_FILES: Final = 2_000
MAX_TOTAL: Final = 64 * 1024 * 1024
"""The largest size of all manifests together, in bytes."""
_NO_MANIFESTS: Final = frozenset({"changelog.yaml", "changelog.yml"})
"""Files at the top of the folder that describe the package, and so are not manifests."""
_MARKERS: Final = frozenset({CHART_FILE, PACKAGE_FILE, MODULE_FILE, *KUSTOMIZATION_FILES})
"""Files that show that a subfolder does not contain manifests, but something else, such as a chart or a package."""


def is_kustomization(files: PackageFiles) -> bool:
    """Return whether a folder has a ``kustomization.yaml`` at its top."""
    return any(files.has_file(name) for name in KUSTOMIZATION_FILES)


def is_manifest_folder(files: PackageFiles) -> bool:
    """Return whether a folder is a package of plain manifests: it has a manifest at its top. The caller must have checked that
    the folder has no other layout. Raises ArtifactError.
    """
    return any(files.has_file(name) for name in files.names("", limit=MAX_FILES) if _is_manifest(name))


def read_manifests(files: PackageFiles) -> tuple[tuple[str, JsonObject], ...]:
    """Return the objects of plain manifests, each with its file, in the order of the files' paths.

    Each item of a ``List`` is returned as an object. Blocking. Raises ArtifactError naming the file.
    """
    found: list[tuple[str, JsonObject]] = []
    first: dict[tuple[str, str, str, str], str] = {}
    room = MAX_TOTAL
    for name in _manifest_names(files.root):
        data = files.read(name) or b""
        room -= len(data)
        if room < 0:
            raise ArtifactError(f"{name}: the manifests have more than {MAX_TOTAL} bytes; split the package")
        for obj in _objects(data, name):
            what = _identity(obj, name)
            if what in first:
                raise ArtifactError(f"{name}: {what[1]} {what[3]} is also in {first[what]}; remove one of them")
            first[what] = name
            found.append((name, obj))
    return tuple(found)


def _is_manifest(name: str) -> bool:
    return name.endswith(MANIFEST_SUFFIXES) and not name.startswith(".") and name not in _NO_MANIFESTS


def _manifest_names(root: Path) -> list[str]:
    """Return the paths of the manifests, sorted. Raises ArtifactError."""
    names: list[str] = []
    for here, folders, listed in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        above = Path(here).relative_to(root)
        if here != os.fspath(root) and (markers := _MARKERS.intersection(listed)):
            raise ArtifactError(
                f"{above}: expected only manifests, found {min(markers)}; make this folder a package of its own, or name it in "
                f"{KUSTOMIZATION_FILES[0]} in the top folder of the package"
            )
        names += [(above / name).as_posix() for name in listed if _is_manifest(name)]
        if len(names) > MAX_FILES:
            raise ArtifactError(f"the package has more than {MAX_FILES} manifests; split it")
    return sorted(names)


def _objects(data: bytes, name: str) -> Iterator[JsonObject]:
    try:
        for document in read_yaml_all(data, what=name):
            if document is None:
                continue
            top = as_object(document, name)
            if find_str(top, "kind") == "List" and find_str(top, "apiVersion") == "v1":
                yield from (as_object(item, f"{name}: items") for item in find_list(top, "items"))
            else:
                yield top
    except FormatError as error:
        message = str(error)
        raise ArtifactError(message if message.startswith(name) else f"{name}: {message}") from error


def _identity(obj: JsonObject, name: str) -> tuple[str, str, str, str]:
    """Return group, kind, namespace and name of an object. Raises ArtifactError."""
    try:
        version, kind = find_str(obj, "apiVersion"), find_str(obj, "kind")
        own, namespace = find_str(obj, "metadata", "name"), find_str(obj, "metadata", "namespace")
    except FormatError as error:
        raise ArtifactError(f"{name}: {error}") from error
    if not (version and kind and own):
        raise ArtifactError(
            f"{name}: expected an object with apiVersion, kind and metadata.name; correct it, or begin the file's name with a dot"
        )
    return version.rpartition("/")[0], kind, namespace, own
