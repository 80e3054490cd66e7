"""Manifests as a folder: one file for each producer, and an index of the files.

The index shows that an earlier build wrote the folder. A build into such a folder replaces the files in the index, and deletes
those that it does not write again. A folder that has files but no index is refused, so that nothing is overwritten if a user
mistypes the path.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.output.documents import yaml_documents
from wharfinger.runtime.fixpoint.model import Id

INDEX: Final = ".wharfinger-build"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class FolderError(Exception):
    """The output folder cannot be written, or has files but no index of an earlier build."""


def file_of(producer: Id) -> str:
    """Return the file of a producer's manifests, relative to the output folder."""
    kind = producer.kind.partition(".")[0].lower()
    name, namespace = (_UNSAFE.sub("-", text).strip("-.") for text in (producer.name, producer.namespace))
    return f"{namespace}/{kind}-{name or 'root'}.yaml" if namespace else f"{kind}-{name or 'root'}.yaml"


def write_folder(folder: Path, manifests: Mapping[Id, tuple[Manifest, ...]]) -> tuple[str, ...]:
    """Write the manifests; return the files, sorted. Blocking. Raises FolderError."""
    texts: dict[str, str] = {}
    for producer in sorted(manifests):
        made = sorted(manifests[producer], key=lambda each: each.id)
        file = file_of(producer)
        texts[file] = texts.get(file, "") + yaml_documents(made)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in _old_files(folder) - texts.keys():
            (folder / old).unlink(missing_ok=True)
        for file, text in sorted(texts.items()):
            if not (folder / file).resolve().is_relative_to(folder.resolve()):
                raise FolderError(f"{folder / file}: leads out of the folder through a link; remove the link")
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        (folder / INDEX).write_text("".join(f"{file}\n" for file in sorted(texts)))
    except OSError as error:
        raise FolderError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return tuple(sorted(texts))


def _old_files(folder: Path) -> set[str]:
    """Return the files of the earlier build. Raises OSError, and FolderError for a folder with other files."""
    index = folder / INDEX
    if not index.is_file():
        if any(folder.iterdir()):
            raise FolderError(
                f"{folder}: has files, and none of them is the index of an earlier build; choose an empty folder"
            )
        return set()
    files = index.read_text().splitlines()
    return {file for file in files if (folder / file).resolve().is_relative_to(folder.resolve())}
