"""The files that a build of a folder reads, according to its ``kustomization.yaml`` files: resources, components and bases.

A build of a folder with a ``kustomization.yaml`` reads the files that the ``kustomization.yaml`` lists. A build of a folder
without one reads all manifests below the folder; in subfolders with a ``kustomization.yaml``, it reads only the listed files.
Nothing is built to find these files, so they are also known for builds that fail.
"""

from bisect import bisect_left
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePosixPath
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, strings_of
from wharfinger.formats.yaml.parsed_texts import ParsedTexts
from wharfinger.packages.kustomizing.loads import kustomization_file, read_kustomization

_LISTS: Final = ("resources", "components", "bases")


class BuildFiles:
    """The files that builds read.

    ``lists`` has the entries of each ``kustomization.yaml``, by its folder. All paths are relative to the root.
    """

    def __init__(self, lists: Mapping[str, frozenset[str]], files: tuple[str, ...]) -> None:
        self._lists = lists
        self._files = tuple(sorted(files))
        self._known: dict[str, frozenset[str]] = {}

    def files_of(self, folder: str) -> frozenset[str]:
        """Return the files that a build of a folder reads."""
        if folder not in self._known:
            self._known[folder] = frozenset(self._collected(folder))
        return self._known[folder]

    def _collected(self, folder: str) -> set[str]:
        found: set[str] = set()
        seen: set[str] = set()
        pending = [folder]
        while pending:
            path = pending.pop()
            if path in seen:
                continue
            seen.add(path)
            listed = self._lists.get(path)
            if listed is not None:
                pending += listed
            elif self._is_file(path):
                found.add(path)
            else:
                for file in self._below(path):
                    inner = self._topmost(file, path)
                    if inner is None:
                        found.add(file)
                    else:
                        pending.append(inner)
        return found

    def _is_file(self, path: str) -> bool:
        place = bisect_left(self._files, path)
        return place < len(self._files) and self._files[place] == path

    def _below(self, folder: str) -> tuple[str, ...]:
        if folder == ".":
            return self._files
        return self._files[bisect_left(self._files, f"{folder}/") : bisect_left(self._files, f"{folder}0")]

    def _topmost(self, file: str, folder: str) -> str | None:
        """Return the topmost folder with a kustomization between a folder and a file below it; None if there is no such
        folder.
        """
        between = [each.as_posix() for each in PurePosixPath(file).parents]
        inside = between[: between.index(folder)]
        return next((each for each in reversed(inside) if each in self._lists), None)


def normal_path(text: str) -> str | None:
    """Return a ``spec.path`` without ``./`` and ``..``; "." for the root, None for a path outside of it."""
    parts: list[str] = []
    for part in text.strip().split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts) or "."


def listed_by(folder: Path, relative: str, texts: ParsedTexts | None = None) -> frozenset[str]:
    """Return the folders and files of the tree that the kustomization of a folder lists. Blocking."""
    path = kustomization_file(folder)
    try:
        read = read_kustomization(path, texts) if path is not None else None
    except (OSError, FormatError):
        return frozenset()  # the build of the folder reports the error
    found = (normal_path(f"{relative}/{each}") for key in _LISTS for each in _texts(read, key) if "://" not in each)
    return frozenset(each for each in found if each is not None)


def _texts(value: JsonValue, key: str) -> list[str]:
    return strings_of(value.get(key)) if isinstance(value, dict) else []


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or lies below it."""
    return folder == "." or path == folder or path.startswith(f"{folder}/")


def is_below_any(path: str, folders: AbstractSet[str]) -> bool:
    """Return whether a path is one of the folders, or below one. The time for this does not depend on the number of folders."""
    if "." in folders or path in folders:
        return True
    end = path.rfind("/")
    while end > 0:
        if path[:end] in folders:
            return True
        end = path.rfind("/", 0, end)
    return False
