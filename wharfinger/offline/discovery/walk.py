"""The files of a tree in a fixed order, independent of the file system.

Folders of charts and packages are listed but not entered: they are input for renders, not manifests. A folder in which a file
such as ``package.yaml`` is a manifest counts as an ordinary folder. Hidden folders, ignored paths, links to folders, links that
leave the tree, pipes and devices are skipped.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from wharfinger.formats.yaml.parsed_texts import ParsedTexts
from wharfinger.offline.discovery.documents import SUFFIXES, read_documents
from wharfinger.offline.discovery.ignore import Pattern, is_ignored, read_patterns
from wharfinger.packages.definition.manifest_folder import KUSTOMIZATION_FILES

PACKAGE_FILES: Final = ("Chart.yaml", "package.yaml", "module.yaml")
_MARKERS: Final = frozenset({*KUSTOMIZATION_FILES, *PACKAGE_FILES})
MAX_PACKAGE_FILE: Final = 4 * 1024 * 1024
MAX_FILES: Final = 100_000
MAX_DEPTH: Final = 64


class TreeError(Exception):
    """A tree cannot be read, for example because a path does not exist, or because the tree is over a limit."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The paths below a folder, relative to the tree's root, sorted."""

    files: tuple[str, ...]
    """Files that may be manifests. A ``kustomization.yaml`` is not among them."""
    kustomizations: tuple[str, ...]
    """Folders with a ``kustomization.yaml``."""
    packages: tuple[str, ...]
    """Folders of charts and packages."""


@dataclass(slots=True)
class _Walk:
    root: Path
    texts: ParsedTexts | None
    files: list[str] = field(default_factory=list)
    kustomizations: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)

    def enter(self, folder: Path, base: str, patterns: tuple[Pattern, ...], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise TreeError(f"{folder}: more than {MAX_DEPTH} nested folders; build a part of the tree")
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda each: each.name)
        regular = {each.name for each in entries if each.name in _MARKERS and each.is_file()}
        if base and any(_is_package(folder / name, self.texts) for name in PACKAGE_FILES if name in regular):
            self.packages.append(base.rstrip("/"))
            return
        patterns = (*patterns, *read_patterns(folder, base))
        if any(name in regular for name in KUSTOMIZATION_FILES):
            self.kustomizations.append(base.rstrip("/") or ".")
        for entry in entries:
            if not entry.name.startswith("."):
                self._entry(entry, base + entry.name, patterns, depth)

    def _entry(self, entry: os.DirEntry[str], relative: str, patterns: tuple[Pattern, ...], depth: int) -> None:
        is_folder = entry.is_dir()
        if entry.is_symlink() and (is_folder or not Path(entry.path).resolve().is_relative_to(self.root)):
            return
        if is_ignored(patterns, relative, is_folder=is_folder):
            return
        if is_folder:
            self.enter(Path(entry.path), relative + "/", patterns, depth + 1)
        elif entry.name.endswith(SUFFIXES) and entry.name not in KUSTOMIZATION_FILES:
            if not entry.is_file() and Path(entry.path).exists():
                return  # a pipe or a device, which has no content
            self.files.append(relative)
            if len(self.files) > MAX_FILES:
                raise TreeError(f"{self.root}: more than {MAX_FILES} files; build a part of the tree")


def _is_package(path: Path, texts: ParsedTexts | None) -> bool:
    """Return whether a file describes a chart or a package, and is not a manifest of the same name. Raises OSError."""
    with path.open("rb") as file:
        data = file.read(MAX_PACKAGE_FILE)
    return not read_documents(data, path.name, texts).documents


def _patterns_above(root: Path, base: str) -> tuple[Pattern, ...]:
    """Return the patterns of the ignore files in the folders above ``base``, beginning with the root. Raises OSError."""
    found: list[Pattern] = []
    parts = PurePosixPath(base).parts
    for depth in range(len(parts)):
        above = "/".join(parts[:depth])
        found += read_patterns(root / above, f"{above}/" if above else "")
    return tuple(found)


def list_tree(root: Path, below: str = "", texts: ParsedTexts | None = None) -> Listing:
    """List a folder ``below`` the tree's root ("" is the root), without ignored paths.

    The patterns of ignore files (``.sourceignore``, ``.krmignore``) in the folders above it apply, too. Blocking. Raises
    TreeError.
    """
    walk = _Walk(root.resolve(), texts)
    base = f"{below.rstrip('/')}/" if below not in {"", "."} else ""
    try:
        walk.enter(walk.root / base, base, _patterns_above(walk.root, base), 0)
    except OSError as error:
        raise TreeError(f"{error.filename or root}: cannot be read: {error.strerror}") from error
    return Listing(tuple(sorted(walk.files)), tuple(sorted(walk.kustomizations)), tuple(sorted(walk.packages)))
