"""A tree of the store: one unpacked package, complete or absent.

::

    trees/<hex of the manifest's digest>/
        chart/          the chart's folder
        tree.json       the record: which blobs it was unpacked from, and a digest over every file

The record is what makes a tree trustworthy later: `read_tree` compares the files with it, so a tree that was edited, or that a
crash of the machine left with empty files, is unpacked again instead of being used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from wharfinger.formats.archive import ArchiveLimits
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, decode_json, encode_json, find_list, find_str
from wharfinger.packages.chart import read_chart
from wharfinger.packages.chart_archive import unpack_chart
from wharfinger.packages.digest import Digest
from wharfinger.packages.disk_files import content_digest, sync_tree
from wharfinger.packages.errors import PackageError
from wharfinger.packages.manifest import blobs_of
from wharfinger.packages.registry import Manifest

CHART_FOLDER: Final = "chart"
RECORD_FILE: Final = "tree.json"
MAX_RECORD: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """What a tree was made of: the manifest, its blobs, and the digest of the files (hexadecimal)."""

    manifest: Digest
    blobs: tuple[Digest, ...]
    content: str


def build_tree(
    archive: BinaryIO, manifest: Manifest, folder: Path, limits: ArchiveLimits, *, should_stop: Callable[[], bool]
) -> None:
    """Unpack into ``folder``, a new one, and write the record; all of it synced, ready to be renamed.

    Raises ArtifactError where the archive is no chart, OSError where the disk refuses.
    """
    scratch = folder / "unpacked"
    scratch.mkdir(parents=True, mode=0o755)
    what = f"package {manifest.descriptor.digest}"
    chart = unpack_chart(archive, scratch, what=what, limits=limits, should_stop=should_stop)
    read_chart(chart)
    chart.rename(folder / CHART_FOLDER)
    scratch.rmdir()
    record: JsonObject = {
        "manifest": manifest.descriptor.digest.text,
        "blobs": [blob.digest.text for blob in blobs_of(manifest)],
        "content": content_digest(folder / CHART_FOLDER),
    }
    (folder / RECORD_FILE).write_bytes(encode_json(record))
    sync_tree(folder)


def read_record(tree: Path) -> TreeRecord | None:
    """The record of a tree, or None where there is no tree, or none with a record that can be read."""
    try:
        with (tree / RECORD_FILE).open("rb") as file:
            document = decode_json(file.read(MAX_RECORD + 1), max_bytes=MAX_RECORD, what=RECORD_FILE)
        blobs = tuple(Digest(str(blob)) for blob in find_list(document, "blobs"))
        return TreeRecord(Digest(find_str(document, "manifest")), blobs, find_str(document, "content"))
    except (FileNotFoundError, NotADirectoryError, FormatError, PackageError):
        return None


def is_sound(tree: Path) -> bool:
    """Whether a tree is there and its files are those that were unpacked."""
    record = read_record(tree)
    return record is not None and record.content == content_digest(tree / CHART_FOLDER)
