"""What an archive would put on disk, known before it is put there.

A model of the tree, without the disk: which paths are folders, files or symbolic links, made by the archive or needed
as parents. Every question of safety is asked here, about the archive's own entries alone, so that no answer depends on
what a link on the disk happens to point to at the moment:

* names are relative, without ``..`` as a component (``a..b`` is a fine name), NUL or control characters, bounded;
* a parent is a folder, never a link, so that nothing is ever written through one;
* an entry may come twice, but not change its type;
* a hard link names a file that is already there;
* a symbolic link is relative and ends inside the tree, through whatever other links it leads, wherever they come in
  the archive: checked when it comes, and all of them again at the end. The target need not exist.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.errors import ArchiveError
from wharfinger.formats.tar_reader import Entry, Kind

TreePath: TypeAlias = tuple[str, ...]

_LONGEST_COMPONENT: Final = 255
_MOST_HOPS: Final = 40
"""Links followed for one path, as in Linux; a path with more is a loop, or as good as one."""
_STEPS_PER_ENTRY: Final = 64


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Entries (parents that the archive left out included), components of a path, bytes of a name or target."""

    max_entries: int
    max_depth: int
    max_name_bytes: int


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an entry goes: folders to make first, whether something of its type is there, a hard link's source."""

    path: TreePath
    new_parents: list[TreePath]
    is_there: bool
    source: TreePath = ()


@dataclass(frozen=True, slots=True)
class _Node:
    kind: Kind
    target: str = ""


class ArchiveTree:
    """The tree so far; ``place`` each entry, then ``check_links``. Raises ArchiveError, naming the entry."""

    def __init__(self, limits: TreeLimits, *, what: str) -> None:
        self._limits = limits
        self._what = what
        self._nodes: dict[TreePath, _Node] = {(): _Node(Kind.DIRECTORY)}
        self._steps_left = _STEPS_PER_ENTRY * limits.max_entries

    def place(self, entry: Entry) -> Placed:
        """Admit one entry."""
        path = self._split(entry.name, entry)
        # A hard link is one more name of a file, and on the disk nothing else.
        kind = Kind.FILE if entry.kind is Kind.HARD_LINK else entry.kind
        if not path and kind is not Kind.DIRECTORY:
            raise self._refusal(entry, "has no name")
        source = self._hard_link_source(entry) if entry.kind is Kind.HARD_LINK else ()
        new_parents = self._new_parents(path, entry)
        for parent in new_parents:
            self._add(parent, _Node(Kind.DIRECTORY))
        there = self._nodes.get(path)
        if there is not None and there.kind is not kind:
            raise self._refusal(entry, f"comes twice: as {there.kind.value} and as {kind.value}")
        if source and source == path:
            raise self._refusal(entry, "is a hard link to itself")
        if kind is Kind.SYMLINK:
            self._check_target(entry)
        self._add(path, _Node(kind, entry.target if kind is Kind.SYMLINK else ""))
        if kind is Kind.SYMLINK:
            self._follow(path, entry.target)
        return Placed(path, new_parents, there is not None, source)

    def check_links(self) -> None:
        """Follow every symbolic link through the finished tree."""
        for path, node in self._nodes.items():
            if node.kind is Kind.SYMLINK:
                self._follow(path, node.target)

    def _add(self, path: TreePath, node: _Node) -> None:
        self._nodes[path] = node
        if len(self._nodes) - 1 > self._limits.max_entries:
            raise ArchiveError(f"{self._what}: more than {self._limits.max_entries} files, folders and links")

    def _split(self, name: str, entry: Entry) -> TreePath:
        if name.startswith("/"):
            raise self._refusal(entry, "is absolute")
        if len(name.encode()) > self._limits.max_name_bytes:
            raise self._refusal(entry, f"is longer than {self._limits.max_name_bytes} bytes")
        self._refuse_odd(name, entry)
        path = tuple(part for part in name.split("/") if part not in {"", "."})
        if ".." in path:
            raise self._refusal(entry, "leads out of the tree with '..'")
        if len(path) > self._limits.max_depth:
            raise self._refusal(entry, f"is deeper than {self._limits.max_depth} levels")
        if any(len(part.encode()) > _LONGEST_COMPONENT for part in path):
            raise self._refusal(entry, f"has a part of more than {_LONGEST_COMPONENT} bytes")
        return path

    def _refuse_odd(self, name: str, entry: Entry) -> None:
        if any(character < " " or character == "\x7f" for character in name):
            raise self._refusal(entry, "has a control character")

    def _new_parents(self, path: TreePath, entry: Entry) -> list[TreePath]:
        missing: list[TreePath] = []
        for length in range(1, len(path)):
            parent = path[:length]
            node = self._nodes.get(parent)
            if node is None:
                missing.append(parent)
            elif node.kind is not Kind.DIRECTORY:
                raise self._refusal(entry, f"would be written through {'/'.join(parent)!r}, a {node.kind.value}")
        return missing

    def _hard_link_source(self, entry: Entry) -> TreePath:
        source = self._split(entry.target, entry)
        node = self._nodes.get(source)
        if node is None or node.kind is not Kind.FILE:
            raise self._refusal(entry, f"is a hard link to {entry.target!r}, which is no file before it in the archive")
        return source

    def _check_target(self, entry: Entry) -> None:
        if not entry.target:
            raise self._refusal(entry, "is a symbolic link to nothing")
        if entry.target.startswith("/"):
            raise self._refusal(entry, f"is a symbolic link to the absolute {entry.target!r}")
        if len(entry.target.encode()) > self._limits.max_name_bytes:
            raise self._refusal(entry, f"has a target longer than {self._limits.max_name_bytes} bytes")
        self._refuse_odd(entry.target, entry)

    def _follow(self, path: TreePath, target: str) -> None:
        """Walk as the kernel would; what does not exist is walked as if it were a folder."""
        at = list(path[:-1])
        todo = deque(target.split("/"))
        hops = 0
        while todo:
            self._steps_left -= 1
            if self._steps_left < 0:
                raise ArchiveError(f"{self._what}: its symbolic links are too tangled to follow")
            part = todo.popleft()
            if part in {"", "."}:
                continue
            if part == "..":
                if not at:
                    raise ArchiveError(
                        f"{self._what}: entry {'/'.join(path)!r} is a symbolic link out of the tree, to {target!r}"
                    )
                at.pop()
                continue
            node = self._nodes.get((*at, part))
            if node is None or node.kind is not Kind.SYMLINK:
                at.append(part)
                continue
            hops += 1
            if hops > _MOST_HOPS:
                raise ArchiveError(f"{self._what}: entry {'/'.join(path)!r} is a symbolic link in a loop")
            todo.extendleft(reversed(node.target.split("/")))

    def _refusal(self, entry: Entry, reason: str) -> ArchiveError:
        shown = entry.name if len(entry.name) <= 120 else entry.name[:117] + "..."
        return ArchiveError(f"{self._what}: entry {shown!r} {reason}")
