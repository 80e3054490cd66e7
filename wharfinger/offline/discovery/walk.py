"""The files of a tree in a fixed order, independent of the file system.

Folders of charts and packages are named and not entered: they are material for renders, not manifests. Hidden folders,
ignored paths, links to folders, and links that leave the tree are skipped.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wharfinger.offline.discovery.documents import SUFFIXES
from wharfinger.offline.discovery.ignore import Pattern, is_ignored, read_patterns

KUSTOMIZATION_FILES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
PACKAGE_FILES: Final = ("Chart.yaml", "package.yaml", "module.yaml")
MAX_FILES: Final = 100_000
MAX_DEPTH: Final = 64


class TreeError(Exception):
    """A tree cannot be read: the path does not exist, or the tree is over a limit."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The paths below a folder, relative to the tree's root, sorted."""

    files: tuple[str, ...]
    """Files that may be manifests, without the configuration of kustomize."""
    kustomizations: tuple[str, ...]
    """Folders with a ``kustomization.yaml``."""
    packages: tuple[str, ...]
    """Folders of charts and packages."""


@dataclass(slots=True)
class _Walk:
    root: Path
    files: list[str] = field(default_factory=list)
    kustomizations: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)

    def enter(self, folder: Path, base: str, patterns: tuple[Pattern, ...], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise TreeError(f"{folder}: more than {MAX_DEPTH} folders inside each other; build a part of the tree")
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names only
        if base and any(name in PACKAGE_FILES for name in names):
            self.packages.append(base.rstrip("/"))
            return
        patterns = (*patterns, *read_patterns(folder, base))
        if any(name in KUSTOMIZATION_FILES for name in names):
            self.kustomizations.append(base.rstrip("/") or ".")
        for name in names:
            self._entry(folder / name, base + name, patterns, depth)

    def _entry(self, path: Path, relative: str, patterns: tuple[Pattern, ...], depth: int) -> None:
        is_folder = path.is_dir()
        if path.is_symlink() and (is_folder or not path.resolve().is_relative_to(self.root)):
            return
        if path.name.startswith(".") or is_ignored(patterns, relative, is_folder=is_folder):
            return
        if is_folder:
            self.enter(path, relative + "/", patterns, depth + 1)
        elif path.suffix in SUFFIXES and path.name not in KUSTOMIZATION_FILES:
            self.files.append(relative)
            if len(self.files) > MAX_FILES:
                raise TreeError(f"{self.root}: more than {MAX_FILES} files; build a part of the tree")


def list_tree(root: Path, below: str = "") -> Listing:
    """List a folder ``below`` the tree's root ("" is the root). Blocking. Raises TreeError."""
    walk = _Walk(root.resolve())
    base = f"{below.rstrip('/')}/" if below not in {"", "."} else ""
    try:
        walk.enter(walk.root / base, base, (), 0)
    except OSError as error:
        raise TreeError(f"{error.filename or root}: cannot be read: {error.strerror}") from error
    return Listing(tuple(sorted(walk.files)), tuple(sorted(walk.kustomizations)), tuple(sorted(walk.packages)))
