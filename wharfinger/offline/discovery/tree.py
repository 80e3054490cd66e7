"""The discovery of a tree: the objects that an offline run begins with, and those that it only knows.

Everything below the given path is read, and every folder that a Flux Kustomization of the tree builds (``spec.path``) or
that a ``kustomization.yaml`` lists. But the objects of a Kustomization come into being when it is built, as in a cluster; so
of the files below a ``spec.path`` only the *bootstrap* files are loaded: a Kustomization that lies in the folder it builds
itself, and its source. Everything else there is in the *existence index* (`Tree.declared`), which names the file of an
object that a run lacks.

A folder with a ``kustomization.yaml`` that no Flux Kustomization builds is built as a whole (`Tree.folders`), so files that
it does not list do not count, and its namespace and generators apply. All other files are loaded as they are.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.offline.discovery.argo import argo_folders
from wharfinger.offline.discovery.documents import SUFFIXES, Document, Problem, read_documents
from wharfinger.offline.discovery.repository_address import plain_address, remotes_of
from wharfinger.offline.discovery.walk import KUSTOMIZATION_FILES, TreeError, list_tree
from wharfinger.offline.store.identity import DEFAULT_NAMESPACE, object_id, shown
from wharfinger.offline.store.kinds import ARGO_APPLICATION, GIT_REPOSITORY, KUSTOMIZATION
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id

BOOTSTRAP_SOURCE: Final = Id(GIT_REPOSITORY, "flux-system", "flux-system")
"""The source of a cluster's own tree, by the name that ``flux bootstrap`` gives it."""
MAX_FILE: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Declared:
    """A document of the tree, loaded or not."""

    id: Id
    document: Document
    is_bootstrap: bool = False
    """True if it is loaded although a Kustomization builds its file."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree as it was discovered; all paths are relative to ``root``."""

    root: Path
    path: str
    loaded: tuple[Declared, ...]
    folders: tuple[str, ...]
    declared: Mapping[Id, Document]
    problems: tuple[Problem, ...]
    """The mistakes in files that are loaded."""
    hidden_problems: tuple[Problem, ...]
    """The mistakes in files that a Kustomization or a folder builds; they matter if it does."""
    local_sources: frozenset[Id]
    """The GitRepositories that stand for the tree itself."""
    local_addresses: frozenset[str] = frozenset()
    """The addresses of the tree's own repository, as `plain_address` writes them."""
    namespace: str = DEFAULT_NAMESPACE

    def is_below(self, file: str, folder: str) -> bool:
        """Return whether a file lies below a folder of the tree."""
        return _is_below(file, folder)


def discover(path: Path, *, root: Path | None = None, namespace: str = DEFAULT_NAMESPACE) -> Tree:
    """Discover the tree at ``path``, a folder or a file; ``root`` is what ``spec.path`` is relative to.

    Without ``root`` it is `root_of` the path. Blocking. Raises TreeError.
    """
    real = path.resolve()
    if not real.exists():
        raise TreeError(f"{path}: does not exist; name a folder or a file")
    top = (root.resolve() if root is not None else root_of(real)) if real.is_dir() else real.parent
    if not real.is_relative_to(top):
        raise TreeError(f"{path}: does not lie below the root {root}; name a root that contains it")
    relative = real.relative_to(top).as_posix()
    scan = _Scan(top, namespace)
    if real.is_dir():
        scan.folder(relative)
    else:
        scan.file(relative)
    scan.follow()
    return scan.tree(relative)


def normal_path(text: str) -> str | None:
    """Return a ``spec.path`` without ``./`` and ``..``; "." is the root, None a path that leaves it."""
    parts: list[str] = []
    for part in PurePosixPath(text.strip() or ".").parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {".", "/"}:
            parts.append(part)
    return "/".join(parts) or "."


@dataclass(frozen=True, slots=True)
class _Kustomization:
    """A Flux Kustomization that a file declares."""

    id: Id
    folder: str
    source: Id
    file: str

    @property
    def is_bootstrap(self) -> bool:
        """True if it builds the folder that it lies in. Every file lies below the root, so there its source's name decides."""
        if self.folder == ".":
            return self.source == BOOTSTRAP_SOURCE
        return _is_below(self.file, self.folder)


@dataclass(frozen=True, slots=True)
class _ArgoFolder:
    """A folder that an Application of Argo CD builds, in the repository at an address."""

    id: Id
    folder: str
    address: str
    file: str

    @property
    def is_bootstrap(self) -> bool:
        """True if it builds the folder that it lies in."""
        return self.folder != "." and _is_below(self.file, self.folder)


@dataclass(slots=True)
class _Scan:
    root: Path
    namespace: str
    documents: dict[str, tuple[Declared, ...]] = field(default_factory=dict)
    problems: dict[str, tuple[Problem, ...]] = field(default_factory=dict)
    kustomizations: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    """Folders and files that some ``kustomization.yaml`` lists."""

    def folder(self, relative: str) -> None:
        """Read a folder, unless it lies in one that was read."""
        if _is_below_any(relative, self.seen):
            return
        self.seen.add(relative)
        listing = list_tree(self.root, relative)
        self.kustomizations.update(listing.kustomizations)
        for each in listing.kustomizations:
            self.listed.update(listed_by(self.root / each, each))
        for file in listing.files:
            if file not in self.documents:
                self.file(file)

    def file(self, relative: str) -> None:
        """Read one file."""
        try:
            with (self.root / relative).open("rb") as opened:
                data = opened.read(MAX_FILE + 1)
        except OSError as error:
            self.problems[relative] = (Problem(Place(relative), f"cannot be read: {error.strerror}"),)
            return
        if len(data) > MAX_FILE:
            self.problems[relative] = (Problem(Place(relative), f"more than {MAX_FILE} bytes"),)
            return
        content = read_documents(data, relative)
        if content.problems:
            self.problems[relative] = content.problems
        self.documents[relative] = tuple(
            Declared(object_id(each.object, self.namespace), each) for each in content.documents
        )

    def follow(self) -> None:
        """Read the folders that the Kustomizations of the tree build, until there are no others."""
        while True:
            built = {each.folder for each in self.flux()} | {each.folder for each in self.argo()} | self.listed
            wanted = sorted(each for each in built if not _is_below_any(each, self.seen))
            if not wanted:
                return
            for each in wanted:
                if (self.root / each).is_dir():
                    self.folder(each)
                else:
                    self.seen.add(each)
                    if (self.root / each).is_file() and each.endswith(SUFFIXES):
                        self.file(each)

    def tree(self, path: str) -> Tree:
        """Sort the documents into loaded ones, built ones, and ones that are only known."""
        flux = tuple(self.flux())
        local = self._local_sources(flux)
        argo = tuple(self.argo())
        addresses = self._local_addresses(local, argo)
        built = {each.folder for each in flux if each.source in local}
        built |= {each.folder for each in argo if each.address in addresses}
        bootstrap = {each.id for each in flux if each.is_bootstrap and each.source in local}
        bootstrap |= {each.source for each in flux if each.id in bootstrap}
        bootstrap |= {each.id for each in argo if each.is_bootstrap and each.address in addresses}
        folders = self._folders(path, built)
        loaded: list[Declared] = []
        seen: dict[Id, Place] = {}
        hidden: list[Problem] = []
        plain: list[Problem] = []
        places = {*built, *self.kustomizations, *self.listed}
        for file in sorted({*self.documents, *self.problems}):
            is_built = _is_below_any(file, places)
            for each in self.documents.get(file, ()):
                if is_built and each.id not in bootstrap:
                    continue
                if (other := seen.get(each.id)) is not None:
                    told = f"{shown(each.id)} is declared in {other} already; leave one of them out"
                    plain.append(Problem(each.document.place, told))
                    continue
                seen[each.id] = each.document.place
                loaded.append(replace(each, is_bootstrap=is_built))
            (hidden if is_built else plain).extend(self.problems.get(file, ()))
        declared: dict[Id, Document] = {}
        for file in sorted(self.documents):
            for each in self.documents[file]:
                declared.setdefault(each.id, each.document)
        return Tree(
            self.root,
            path,
            tuple(loaded),
            folders,
            declared,
            tuple(plain),
            tuple(hidden),
            local,
            addresses,
            self.namespace,
        )

    def _folders(self, path: str, built: set[str]) -> tuple[str, ...]:
        """Return the topmost folders with a kustomization.yaml below ``path`` that nothing else builds.

        In a tree with Flux Kustomizations other folders are not in use, unless they have some of these.
        """
        flux = [each.file for each in self.flux()]
        found: list[str] = []
        elsewhere = {*built, *self.listed}
        for folder in sorted(self.kustomizations):
            in_use = not flux or folder == path or any(_is_below(file, folder) for file in flux)
            if in_use and _is_below(folder, path) and not _is_below_any(folder, elsewhere):
                found.append(folder)
                elsewhere.add(folder)
        return tuple(found)

    def flux(self) -> Iterator[_Kustomization]:
        """Yield the Kustomizations of Flux that were read."""
        for file in sorted(self.documents):
            for each in self.documents[file]:
                if each.id.kind != KUSTOMIZATION:
                    continue
                try:
                    folder = normal_path(find_str(each.document.object, "spec", "path", default="."))
                    source = source_of(each.document.object, each.id.namespace)
                except FormatError:
                    continue  # its controller reports that
                if folder is not None and "${" not in folder:
                    yield _Kustomization(each.id, folder, source, file)

    def argo(self) -> Iterator[_ArgoFolder]:
        """Yield the folders that Applications of Argo CD build, in whatever repository."""
        for file in sorted(self.documents):
            for each in self.documents[file]:
                if each.id.kind != ARGO_APPLICATION:
                    continue
                try:
                    folders = [
                        (plain_address(url), normal_path(path)) for url, path in argo_folders(each.document.object)
                    ]
                except FormatError:
                    continue  # its controller reports that
                yield from (
                    _ArgoFolder(each.id, folder, address, file) for address, folder in folders if folder and address
                )

    def _local_addresses(self, local: frozenset[Id], argo: tuple[_ArgoFolder, ...]) -> frozenset[str]:
        """Return the addresses of the tree itself: remotes and sources, else Applications that build themselves."""
        urls = {
            find_str(each.document.object, "spec", "url")
            for documents in self.documents.values()
            for each in documents
            if each.id in local
        }
        found = ({*remotes_of(self.root)} | {plain_address(url) for url in urls}) - {""}
        return frozenset(found or {each.address for each in argo if each.is_bootstrap})

    def _local_sources(self, flux: tuple[_Kustomization, ...]) -> frozenset[Id]:
        declared = {each.id: each for documents in self.documents.values() for each in documents}
        local = {each.source for each in flux if each.is_bootstrap and each.source.kind == GIT_REPOSITORY}
        if BOOTSTRAP_SOURCE not in declared:
            local.add(BOOTSTRAP_SOURCE)
        remotes = remotes_of(self.root)
        for who, each in declared.items():
            spec = each.document.object.get("spec")
            url = spec.get("url") if isinstance(spec, dict) else None
            if who.kind == GIT_REPOSITORY and isinstance(url, str) and plain_address(url) in remotes:
                local.add(who)
        return frozenset(local)


def listed_by(folder: Path, relative: str) -> set[str]:
    """Return the folders and files of the tree that the kustomization of a folder lists. Blocking."""
    path = next((folder / name for name in KUSTOMIZATION_FILES if (folder / name).is_file()), None)
    try:
        read = read_yaml(path.read_bytes(), what=path.name) if path is not None else None
    except (OSError, FormatError):
        return set()  # its build reports that
    found = (
        normal_path(f"{relative}/{each}")
        for key in ("resources", "components", "bases")
        for each in _texts(read, key)
        if "://" not in each
    )
    return {each for each in found if each is not None}


def _texts(value: JsonValue, key: str) -> list[str]:
    listed = value.get(key) if isinstance(value, dict) else None
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def source_of(obj: JsonObject, namespace: str) -> Id:
    """Return the source that a Kustomization names in ``spec.sourceRef``."""
    kind = find_str(obj, "spec", "sourceRef", "kind", default="GitRepository")
    own = find_str(obj, "spec", "sourceRef", "namespace", default=namespace)
    return Id(f"{kind}.source.toolkit.fluxcd.io", own, find_str(obj, "spec", "sourceRef", "name"))


def root_of(path: Path) -> Path:
    """Return the nearest folder above with a ``.git``, or the path itself. Blocking. Raises TreeError.

    A tree may be kept in a folder of a larger repository, as an example or a test. It is found by a Kustomization that builds
    the folder in which it lies, as after ``flux bootstrap``: the root is the folder to which its ``spec.path`` is relative.
    """
    top = next((each for each in (path, *path.parents) if (each / ".git").exists()), path)
    if path == top or not path.is_dir():
        return top
    scan = _Scan(path, DEFAULT_NAMESPACE)
    scan.folder(".")
    roots = {found for each in scan.flux() if (found := _root_for(path / each.file, each.folder, top)) is not None}
    return roots.pop() if len(roots) == 1 else top


def _root_for(file: Path, folder: str, top: Path) -> Path | None:
    """Return the folder below ``top`` to which ``folder``, the ``spec.path`` of a Kustomization in ``file``, is relative.

    None: the Kustomization does not build the folder in which it lies.
    """
    if folder == ".":
        return None
    if file.is_relative_to(top / folder):
        return top
    parts = PurePosixPath(folder).parts
    for place in file.parents:
        if place == top:
            return None
        if place.parts[-len(parts) :] == parts:
            return place.parents[len(parts) - 1]
    return None


def _is_below(path: str, folder: str) -> bool:
    return folder == "." or path == folder or path.startswith(f"{folder}/")


def _is_below_any(path: str, folders: AbstractSet[str]) -> bool:
    """Return whether a path is one of the folders, or below one; the time does not depend on their number."""
    if "." in folders or path in folders:
        return True
    end = path.rfind("/")
    while end > 0:
        if path[:end] in folders:
            return True
        end = path.rfind("/", 0, end)
    return False
