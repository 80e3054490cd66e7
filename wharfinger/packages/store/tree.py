"""A tree of the store: one unpacked package, complete or absent.

::

    trees/<hex of the manifest's digest>/
        package/        the package's files: the content of the only folder in a chart's archive, or of all layers of an image
        tree.json       the record: the manifest of the package, and one digest of all its files

The package's files are read-only. Hooks run in this folder, and an interpreter could otherwise write its caches beside a
hook's library and so change the package. `sound_record` compares the files with the record. So a tree that was edited, or that
has empty files after a crash of the machine, is unpacked again instead of being used. A record in another format (for example
from an older version of this program) counts as missing, and its tree is unpacked again, too.

This module does not interpret the files; they are read when the package is loaded.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from wharfinger.formats.archives.archive import ArchiveLimits, extract_layers
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, encode_json, find, find_str
from wharfinger.formats.listing import listed
from wharfinger.packages.charts.chart_archive import unpack_chart
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.files.disk_files import (
    MAX_DEEP,
    MAX_NAMES,
    changed_since,
    content_digest,
    make_read_only,
    sync_tree,
)
from wharfinger.packages.registry.manifest import MAX_MANIFEST, is_chart, manifest_fields, manifest_from_fields
from wharfinger.packages.registry.registry import Manifest

PACKAGE_FOLDER: Final = "package"
RECORD_FILE: Final = "tree.json"
MAX_RECORD: Final = 2 * MAX_MANIFEST
MAX_LOGGED: Final = 10

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """The record of a tree in the store: the package's manifest, and the digest of all its files (hexadecimal)."""

    manifest: Manifest
    content: str


def build_tree(
    layers: Iterable[tuple[str, BinaryIO]],
    manifest: Manifest,
    folder: Path,
    limits: ArchiveLimits,
    *,
    should_stop: Callable[[], bool],
) -> None:
    """Unpack the manifest's `package_layers` into the new folder ``folder``, and write the record.

    All files are synced to disk, so the caller can rename the folder. Each item of ``layers`` is a pair: the name of a layer for
    error messages, and the layer's stream. Raises ArtifactError if the archives are not a package, OSError for disk errors.
    """
    what = f"package {manifest.descriptor.digest}"
    package = folder / PACKAGE_FOLDER
    folder.mkdir(parents=True, mode=0o755)
    if is_chart(manifest):
        scratch = folder / "unpacked"
        scratch.mkdir(mode=0o755)
        for _, archive in layers:
            unpack_chart(archive, scratch, what=what, limits=limits, should_stop=should_stop).rename(package)
        scratch.rmdir()
    else:
        try:
            extract_layers(layers, package, limits, what=what, should_stop=should_stop)
        except FormatError as error:
            raise ArtifactError(str(error)) from error
        if not any(package.iterdir()):
            raise ArtifactError(f"{what}: its layers contain no files; push the package again")
    content = content_digest(package, should_stop)
    if content is None:
        raise ArtifactError(
            f"{what}: more than {MAX_NAMES} files and folders, or folders nested deeper than {MAX_DEEP}"
        )
    make_read_only(package)
    record: JsonObject = {"manifest": manifest_fields(manifest), "content": content}
    (folder / RECORD_FILE).write_bytes(encode_json(record))
    sync_tree(folder)


def read_record(tree: Path) -> TreeRecord | None:
    """Return the record of a tree; None if the tree does not exist, or has no valid record."""
    try:
        with (tree / RECORD_FILE).open("rb") as file:
            document = decode_json(file.read(MAX_RECORD + 1), max_bytes=MAX_RECORD, what=RECORD_FILE)
        manifest = manifest_from_fields(as_object(find(document, "manifest"), "manifest"))
        return TreeRecord(manifest, find_str(document, "content"))
    except (FileNotFoundError, NotADirectoryError, FormatError, PackageError):
        return None


def sound_record(tree: Path, should_stop: Callable[[], bool] = lambda: False) -> TreeRecord | None:
    """Return the record of a tree whose files are unchanged since they were unpacked; None if the tree is missing or damaged.

    Damage is logged with its details.
    """
    record = read_record(tree)
    if record is None:
        if tree.exists():
            log.warning("package sha256:%s: its metadata file cannot be read; the package is unpacked again", tree.name)
        return None
    if record.content == content_digest(tree / PACKAGE_FOLDER, should_stop):
        return record
    changed = changed_since(tree / PACKAGE_FOLDER, tree / RECORD_FILE)
    log.warning(
        "package sha256:%s: its files have changed since they were unpacked; it will be unpacked again. Changed since: %s",
        tree.name,
        listed(map(repr, changed), MAX_LOGGED) or "unknown",
    )
    return None


def is_sound(tree: Path, should_stop: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a tree exists, and its files are unchanged since they were unpacked."""
    return sound_record(tree, should_stop) is not None
