"""A model of the tree that an archive would make, checked before anything is written to disk.

The model records which paths are folders, files or symbolic links. Parent folders without an entry are recorded, too. All
checks for safety are made here, on the archive's own entries alone, so that no result depends on the current target of a link
on the disk:

* names are relative and of limited length, and have no component ``..`` (``a..b`` is allowed), no NUL and no control
  characters;
* the parent of an entry is a folder, never a link, so that nothing is ever written through a link;
* a path may occur twice, but only with the same type;
* a hard link names a file that an earlier entry has made;
* a symbolic link is relative and ends inside the tree, even if other links of the archive lie on its way. Each link is checked
  when it is read, and again when the archive is complete. Its target need not exist;
* a walk that follows links to folders (as Helm's does) ends soon. Thirty links can make a billion paths to one file. So the
  finished tree is walked in this way, and is refused if the walk finds more paths than the allowed number of entries.

A tree may be made of layers (OCI image-spec 1.1, "Image Layer Filesystem Changeset"): archives that are unpacked on top of each
other. Entries of a later layer replace earlier entries of any type. A whiteout removes entries of the layers *below*, and never
entries of its own layer, whether they are before or after it. Names in layers are relative to the root of the image; a leading
slash is allowed.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from wharfinger.formats.archives.tar_reader import Entry, Kind
from wharfinger.formats.errors import ArchiveError

TreePath: TypeAlias = tuple[str, ...]

_LONGEST_COMPONENT: Final = 255
_MOST_HOPS: Final = 40
"""The maximum number of links followed for one path, as in Linux; a path with more counts as a loop."""
_STEPS_PER_ENTRY: Final = 64
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The limits on the number of entries (including parent folders without an entry of their own), on the number of components
    of a path, and on the bytes of a name or of a link's target.
    """

    max_entries: int
    max_depth: int
    max_name_bytes: int


@dataclass(frozen=True, slots=True)
class Placed:
    """The place of an entry: the folders to create first, whether an entry of its type already exists there, and the source of a
    hard link.

    ``replaces`` is True if a lower layer has an entry of another type there, which must be removed first with its content.
    """

    path: TreePath
    new_parents: list[TreePath]
    is_there: bool
    source: TreePath = ()
    replaces: bool = False


@dataclass(slots=True)
class _Node:
    """A path of the tree. ``layer`` is the last layer that added the path itself, or a path below it."""

    kind: Kind
    target: str
    layer: int
    children: set[str] = field(default_factory=set)


class ArchiveTree:
    """The tree of an archive, as far as its entries are read. Call ``place`` for each entry, and ``check_links`` at the end.
    Raises ArchiveError, naming the entry.
    """

    def __init__(self, limits: TreeLimits, *, what: str) -> None:
        self._limits = limits
        self._what = what
        self._layer = 0
        self._nodes: dict[TreePath, _Node] = {(): _Node(Kind.DIRECTORY, "", 0)}
        self._steps_left = _STEPS_PER_ENTRY * limits.max_entries

    def begin_layer(self, what: str) -> None:
        """Start the next layer; ``what`` names the layer in errors."""
        self._layer += 1
        self._what = what

    def place(self, entry: Entry) -> Placed:
        """Check the next entry of the archive, add it to the tree, and return its place there."""
        path = self._split(entry.name, entry)
        # A hard link is another name of a file; on the disk it is a file.
        kind = Kind.FILE if entry.kind is Kind.HARD_LINK else entry.kind
        if not path and kind is not Kind.DIRECTORY:
            raise self._refusal(entry, "has no name")
        source = self._hard_link_source(entry) if entry.kind is Kind.HARD_LINK else ()
        new_parents = self._new_parents(path, entry)
        there = self._nodes.get(path)
        replaces = there is not None and there.kind is not kind
        if there is not None and replaces:
            if there.layer == self._layer:
                raise self._refusal(entry, f"occurs twice: as {there.kind.value} and as {kind.value}")
            self._drop(path)
        if source and (source == path or source not in self._nodes):
            raise self._refusal(entry, "is a hard link to itself")
        for parent in new_parents:
            self._add(parent, Kind.DIRECTORY)
        if kind is Kind.SYMLINK:
            self._check_target(entry)
        self._add(path, kind, entry.target if kind is Kind.SYMLINK else "")
        if kind is Kind.SYMLINK:
            self._follow(path, entry.target)
        return Placed(path, new_parents, there is not None and not replaces, source, replaces)

    def hidden_by(self, entry: Entry) -> list[TreePath] | None:
        """Return the paths that a whiteout removes, each with everything in it; None if the entry is not a whiteout."""
        path = self._split(entry.name, entry)
        if not any(part.startswith(_WHITEOUT) for part in path):
            return None
        *parent, mark = path
        if not mark.startswith(_WHITEOUT) or any(part.startswith(_WHITEOUT) for part in parent):
            raise self._refusal(
                entry, f"lies in a folder whose name starts with {_WHITEOUT!r}; only whiteouts have such names"
            )
        if entry.kind is not Kind.FILE or entry.size:
            raise self._refusal(entry, "is named like a whiteout, but is not an empty file")
        if not self._is_folder(tuple(parent), entry):
            return []
        if mark == _OPAQUE:
            return self._hide([(*parent, child) for child in self._nodes[tuple(parent)].children])
        name = mark.removeprefix(_WHITEOUT)
        if name in {"", ".", ".."} or name.startswith(_WHITEOUT):
            raise self._refusal(entry, "is a whiteout of a name that no entry can have")
        return self._hide([(*parent, name)])

    def check_links(self, *, within_top: bool = False) -> None:
        """Follow every symbolic link through the finished tree; with ``within_top``, none may lead out of its own top folder.

        Raises ArchiveError for a forbidden link, and for a tree with too many paths.
        """
        floor = 1 if within_top else 0
        links = [(path, node.target) for path, node in self._nodes.items() if node.kind is Kind.SYMLINK]
        self._count_paths({path: self._follow(path, target, floor) for path, target in links})

    def _count_paths(self, ends: dict[TreePath, TreePath]) -> None:
        """Refuse a tree with too many paths; ``ends`` is the target of each link."""
        count = 0
        pending: list[tuple[TreePath, int]] = [((), 0)]
        while pending:
            folder, hops = pending.pop()
            for name in self._nodes[folder].children:
                count += 1
                if count > self._limits.max_entries:
                    raise ArchiveError(
                        f"{self._what}: more than {self._limits.max_entries} paths if links to folders are followed; "
                        "include each folder only once"
                    )
                path = (*folder, name)
                end = ends.get(path, path)
                node = self._nodes.get(end)
                # The kernel limits the links of one path in the same way. The limit also ends the walk through a link to its own
                # parent folder.
                deeper = hops + (path in ends)
                if node is not None and node.kind is Kind.DIRECTORY and deeper <= _MOST_HOPS:
                    pending.append((end, deeper))

    def _hide(self, paths: list[TreePath]) -> list[TreePath]:
        """Remove the entries of lower layers at these paths, and return the removed paths.

        A folder that contains an entry of the current layer is kept with that entry.
        """
        gone: list[TreePath] = []
        while paths:
            path = paths.pop()
            self._step("has too many whiteouts")
            node = self._nodes.get(path)
            if node is None:
                continue
            if node.layer < self._layer:
                gone.append(path)
                self._drop(path)
            else:
                paths.extend((*path, child) for child in node.children)
        return gone

    def _drop(self, path: TreePath) -> None:
        self._nodes[path[:-1]].children.discard(path[-1])
        pending = [path]
        while pending:
            at = pending.pop()
            pending.extend((*at, child) for child in self._nodes.pop(at).children)

    def _is_folder(self, path: TreePath, entry: Entry) -> bool:
        """Return whether ``path`` is an existing folder; refuse the entry if a link or file is on the way."""
        for length in range(1, len(path) + 1):
            node = self._nodes.get(path[:length])
            if node is None:
                return False
            if node.kind is not Kind.DIRECTORY:
                raise self._refusal(entry, f"would reach through {'/'.join(path[:length])!r}, a {node.kind.value}")
        return True

    def _add(self, path: TreePath, kind: Kind, target: str = "") -> None:
        for length in range(len(path)):
            self._nodes[path[:length]].layer = self._layer
        there = self._nodes.get(path)
        if there is None:
            self._nodes[path] = _Node(kind, target, self._layer)
            self._nodes[path[:-1]].children.add(path[-1])
        else:
            there.target, there.layer = target, self._layer
        if len(self._nodes) - 1 > self._limits.max_entries:
            raise ArchiveError(f"{self._what}: more than {self._limits.max_entries} files, folders and links")

    def _split(self, name: str, entry: Entry) -> TreePath:
        if name.startswith("/") and not self._layer:
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
            raise self._refusal(entry, f"has a path component of more than {_LONGEST_COMPONENT} bytes")
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
            raise self._refusal(
                entry, f"is a hard link to {entry.target!r}, which is not a file earlier in the archive"
            )
        return source

    def _check_target(self, entry: Entry) -> None:
        if not entry.target:
            raise self._refusal(entry, "is a symbolic link to nothing")
        if entry.target.startswith("/"):
            raise self._refusal(entry, f"is a symbolic link to the absolute path {entry.target!r}")
        if len(entry.target.encode()) > self._limits.max_name_bytes:
            raise self._refusal(entry, f"has a target longer than {self._limits.max_name_bytes} bytes")
        self._refuse_odd(entry.target, entry)

    def _follow(self, path: TreePath, target: str, floor: int = 0) -> TreePath:
        """Follow the link at ``path`` to its target as the kernel would, and return the path at the end of the walk.

        Missing components count as folders. Raises ArchiveError if a ``..`` would lead to a folder less than ``floor`` levels
        deep.
        """
        at = list(path[:-1])
        todo = deque(target.split("/"))
        hops = 0
        while todo:
            self._step("resolving its symbolic links takes too many steps")
            part = todo.popleft()
            if part in {"", "."}:
                continue
            if part == "..":
                if len(at) <= floor:
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
                raise ArchiveError(
                    f"{self._what}: entry {'/'.join(path)!r} leads over more than {_MOST_HOPS} symbolic links"
                )
            todo.extendleft(reversed(node.target.split("/")))
        return tuple(at)

    def _step(self, refusal: str) -> None:
        """Count one step of a walk along paths of the tree. Raises ArchiveError if all walks of this archive together have
        taken too many steps.
        """
        self._steps_left -= 1
        if self._steps_left < 0:
            raise ArchiveError(f"{self._what}: {refusal}")

    def _refusal(self, entry: Entry, reason: str) -> ArchiveError:
        shown = entry.name if len(entry.name) <= 120 else entry.name[:117] + "..."
        return ArchiveError(f"{self._what}: entry {shown!r} {reason}")
