"""The discovery of a tree: the objects with which an offline run starts, and the files that declare all others.

Everything below the given paths is read. So are the folders of the tree that a Flux Kustomization (``spec.path``) or an Argo CD
Application builds, that an ArtifactGenerator copies, or that a ``kustomization.yaml`` lists. An object is *loaded*
(`Tree.loaded`) if a run starts with it. The objects of a Kustomization are created only when it is built, as in a cluster. So
only the *bootstrap* objects below a ``spec.path`` are loaded: a Kustomization or an Application that lies in the folder that it
builds, and the source of such a Kustomization. All objects are in `Tree.declared`, so that a message can name the file of an
object that a run lacks.

A folder with a ``kustomization.yaml`` that nothing else builds is built as a whole (`Tree.folders`): files that the
``kustomization.yaml`` does not list are left out, and its namespace and generators apply. All other files are loaded as they are.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.parsed_texts import ParsedTexts
from wharfinger.offline.discovery.build_files import BuildFiles, is_below, is_below_any, listed_by
from wharfinger.offline.discovery.builders import (
    ArgoFolder,
    CopiedFolder,
    Declared,
    KustomizationFolder,
    argo_folders_of,
    copied_folders_of,
    kustomization_folders,
)
from wharfinger.offline.discovery.documents import SUFFIXES, Document, Problem, read_documents
from wharfinger.offline.discovery.flux_instance import synced_objects
from wharfinger.offline.discovery.repository_address import Repository, plain_address, repository_of
from wharfinger.offline.discovery.walk import TreeError, list_tree
from wharfinger.offline.store.identity import DEFAULT_NAMESPACE, naming_problem, object_id, shown
from wharfinger.offline.store.kinds import GIT_REPOSITORY
from wharfinger.offline.store.store import Place
from wharfinger.packages.files.disk_files import read_start
from wharfinger.runtime.fixpoint.model import Id

BOOTSTRAP_SOURCE: Final = Id(GIT_REPOSITORY, "flux-system", "flux-system")
"""The source from which a cluster gets its own tree. ``flux bootstrap`` gives this name to the source."""
_DEFAULT_BRANCHES: Final = ("main", "master")
ANYWHERE: Final = Path("/")
_Builder: TypeAlias = KustomizationFolder | ArgoFolder | CopiedFolder
MAX_FILE: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree as it was discovered; all paths are relative to ``root``."""

    root: Path
    paths: tuple[str, ...]
    loaded: tuple[Declared, ...]
    folders: tuple[str, ...]
    declared: Mapping[Id, Document]
    problems: tuple[Problem, ...]
    """The mistakes in files that are loaded."""
    hidden_problems: tuple[Problem, ...]
    """The mistakes in files that a Kustomization or a folder builds; they matter only if the file is built."""
    local_sources: frozenset[Id]
    """The sources whose files are those of the tree itself."""
    local_addresses: frozenset[str] = frozenset()
    """The addresses of the tree's own repository, in the form of `plain_address`."""
    namespace: str = DEFAULT_NAMESPACE
    build_files: BuildFiles = field(default_factory=lambda: BuildFiles({}, ()))
    """The files that the builds of folders read."""
    named: Mapping[tuple[str, str], tuple[Document, ...]] = field(default_factory=dict)
    """The documents by kind and name. Namespaces are left out: an object often gets its namespace only when it is built."""
    limit: Path = ANYWHERE
    """Builds of the tree may read only files in this folder."""

    def is_below(self, file: str, folder: str) -> bool:
        """Return whether a file lies below a folder of the tree."""
        return is_below(file, folder)


def discover(
    *paths: Path,
    root: Path | None = None,
    namespace: str = DEFAULT_NAMESPACE,
    repository: Repository | None = None,
    limit: Path | None = None,
    texts: ParsedTexts | None = None,
) -> Tree:
    """Discover the tree at ``paths``, folders or files in any order; each ``spec.path`` is relative to ``root``.

    By default, ``root`` is `root_of` the paths, and ``repository`` is the git repository at the root. Builds
    may read only files in the folder ``limit``. By default, this is the git repository around the root or, if there is none, the
    root. ``texts`` is a cache of parsed files. Blocking. Raises TreeError.
    """
    absent = next((path for path in paths if not path.exists()), None)
    if absent is not None:
        raise TreeError(f"{absent}: does not exist; name a folder or a file")
    top = root.resolve() if root is not None else root_of(*paths)
    outside = next((path for path in paths if not path.resolve().is_relative_to(top)), None)
    if outside is not None:
        raise TreeError(f"{outside}: does not lie below the root {top}; name a root that contains it")
    limit = limit or repository_above(top) or top
    scan = _Scan(top, namespace, repository_of(top) if repository is None else repository, limit, texts)
    given = sorted({path.resolve().relative_to(top).as_posix() for path in paths})
    for path in given:
        scan.given(path)
    scan.follow()
    return scan.tree(tuple(path for path in given if not is_below_any(path, {*given} - {path})))


@dataclass(slots=True)
class _Scan:
    root: Path
    namespace: str
    repository: Repository
    limit: Path = ANYWHERE
    texts: ParsedTexts | None = None
    documents: dict[str, tuple[Declared, ...]] = field(default_factory=dict)
    problems: dict[str, tuple[Problem, ...]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    lists: dict[str, frozenset[str]] = field(default_factory=dict)
    """The folders and files that each ``kustomization.yaml`` lists. The key is the folder with the ``kustomization.yaml``."""

    @property
    def listed(self) -> set[str]:
        """The folders and files that some ``kustomization.yaml`` lists."""
        return set().union(*self.lists.values())

    def given(self, relative: str) -> None:
        """Read a folder or a file that the caller names, even if the scan of a folder around it ignored it."""
        if self._is_folder(relative):
            self._read(relative)
        elif relative not in self.documents:
            self.file(relative)

    def folder(self, relative: str) -> None:
        """Read a folder, unless it was read already, as part of another folder or by itself."""
        if not is_below_any(relative, self.seen):
            self._read(relative)

    def _read(self, relative: str) -> None:
        self.seen.add(relative)
        listing = list_tree(self.root, relative, self.texts)
        for each in listing.kustomizations:
            self.lists[each] = listed_by(self.root / each, each, self.texts)
        for file in listing.files:
            if file not in self.documents:
                self.file(file)

    def file(self, relative: str) -> None:
        """Read one file, and record the objects that it declares, or why it cannot be read."""
        try:
            data = read_start(self._path(relative), MAX_FILE + 1)
        except OSError as error:
            self.problems[relative] = (Problem(Place(relative), f"cannot be read: {error.strerror}"),)
            return
        if len(data) > MAX_FILE:
            self.problems[relative] = (Problem(Place(relative), f"more than {MAX_FILE} bytes", is_limit=True),)
            return
        content = read_documents(data, relative, self.texts)
        if content.problems:
            self.problems[relative] = content.problems
        found = [Declared(object_id(each.object, self.namespace), each) for each in content.documents]
        for each in content.documents:
            found += [
                Declared(object_id(made, self.namespace), Document(made, each.place), is_synced=True)
                for made in synced_objects(each.object)
            ]
        self.documents[relative] = tuple(found)

    def follow(self) -> None:
        """Read the folders and files that builds of the tree need, until no further ones are found."""
        while True:
            wanted = sorted(each for each in self._built() | self.listed if not is_below_any(each, self.seen))
            if not wanted:
                return
            for each in wanted:
                mode = self._mode(each)
                if stat.S_ISDIR(mode):
                    self.folder(each)
                else:
                    self.seen.add(each)
                    if stat.S_ISREG(mode) and each.endswith(SUFFIXES):
                        self.file(each)

    def _path(self, relative: str) -> str:
        return f"{self.root}/{relative}"

    def _mode(self, relative: str) -> int:
        """Return the mode of a file or folder; 0 if it does not exist."""
        try:
            return os.stat(self._path(relative)).st_mode  # noqa: PTH116 - texts are faster
        except (OSError, ValueError):
            return 0

    def _is_folder(self, relative: str) -> bool:
        return stat.S_ISDIR(self._mode(relative))

    def _built(self) -> set[str]:
        """Return the folders of the tree itself that Kustomizations and Applications build, or that generators copy."""
        flux, argo = tuple(kustomization_folders(self.documents)), tuple(argo_folders_of(self.documents))
        local = self._local_sources(flux)
        addresses = self._local_addresses(local, argo)
        built = {each.folder for each in flux if each.is_of(local)}
        built |= {each.folder for each in copied_folders_of(self.documents) if each.source in local}
        return built | {each.folder for each in argo if each.address in addresses}

    def _bootstraps(
        self, flux: tuple[KustomizationFolder, ...], local: AbstractSet[Id], paths: tuple[str, ...]
    ) -> set[Id]:
        """Return the Kustomizations of the tree itself that build the folder in which they lie.

        The Kustomization of a FluxInstance is included if one of the paths lies in the folder that it builds, or if that folder
        lies in one of the paths. A Kustomization that builds the root is included only if no other Kustomization builds its
        file. Otherwise it may be a base of the other one, and a patch may set its ``spec.path``.
        """
        own = [each for each in flux if each.is_of(local)]
        found = {each.id for each in own if each.lies_inside}
        synced = [each for each in own if each.synced]
        found |= {each.id for each in synced for path in paths if _overlap(path, each.folder)}
        if whole := [each for each in own if each.folder == "."]:
            build_files = BuildFiles(self.lists, tuple(self.documents))
            others: set[str] = set().union(*(build_files.files_of(each.folder) for each in own if each.folder != "."))
            found |= {each.id for each in whole if each.file not in others}
        return found

    def tree(self, paths: tuple[str, ...]) -> Tree:
        """Return the tree, with two kinds of documents: those that a run starts with, and those that only a build creates."""
        flux = tuple(kustomization_folders(self.documents))
        local = self._local_sources(flux)
        argo = tuple(argo_folders_of(self.documents))
        addresses = self._local_addresses(local, argo)
        kustomizations = self._bootstraps(flux, local, paths)
        applications = {each.id for each in argo if each.is_bootstrap and each.address in addresses}
        sources = {each.source for each in flux if each.id in kustomizations}
        bootstrap = kustomizations | applications | sources
        builders: list[_Builder] = [each for each in flux if each.is_of(local)]
        builders += [each for each in argo if each.address in addresses]
        builders += [each for each in copied_folders_of(self.documents) if each.source in local]
        # A Kustomization that is no bootstrap object does not defer the objects of a given path, because it may be one of them.
        shown_paths = _not_built_by_others(paths, builders)
        built = {each.folder for each in builders if _defers_objects(each, shown_paths, bootstrap)}
        folders = self._folders(paths, built)
        self._leave_out_synced(bootstrap)
        loaded: list[Declared] = []
        seen: dict[Id, Place] = {}
        hidden: list[Problem] = []
        plain: list[Problem] = []
        places = {*built, *self.lists, *self.listed}
        for file in sorted({*self.documents, *self.problems}):
            is_built = is_below_any(file, places)
            for each in self.documents.get(file, ()):
                if is_built and each.id not in bootstrap:
                    continue
                if wrong := naming_problem(each.id):
                    plain.append(Problem(each.document.place, wrong))
                    continue
                if (other := seen.get(each.id)) is not None:
                    message = f"{shown(each.id)} is declared in {other} already; remove one of the two"
                    plain.append(Problem(each.document.place, message))
                    continue
                seen[each.id] = each.document.place
                loaded.append(replace(each, is_bootstrap=is_built))
            (hidden if is_built else plain).extend(self.problems.get(file, ()))
        every = [each for file in sorted(self.documents) for each in self.documents[file]]
        return Tree(
            self.root,
            paths,
            tuple(loaded),
            folders,
            {each.id: each.document for each in reversed(every)},
            tuple(plain),
            tuple(hidden),
            local,
            addresses,
            self.namespace,
            BuildFiles(self.lists, tuple({*self.documents, *self.problems})),
            _by_name(every),
            self.limit,
        )

    def _leave_out_synced(self, bootstrap: AbstractSet[Id]) -> None:
        """Leave out the objects that were made from a FluxInstance. Keep those in ``bootstrap`` that no file declares."""
        written = {each.id for documents in self.documents.values() for each in documents if not each.is_synced}
        for file, documents in self.documents.items():
            self.documents[file] = tuple(
                each for each in documents if not each.is_synced or (each.id in bootstrap and each.id not in written)
            )

    def _folders(self, paths: tuple[str, ...], built: set[str]) -> tuple[str, ...]:
        """Return the folders below ``paths`` that have a kustomization.yaml and that nothing else builds.

        A folder inside such a folder is left out. In a tree with Flux Kustomizations, a folder counts only if it is one of the
        paths, or if it contains Flux Kustomizations.
        """
        flux = [each.file for each in kustomization_folders(self.documents)]
        found: list[str] = []
        elsewhere = {*built, *self.listed}
        for folder in sorted(self.lists):
            in_use = not flux or folder in paths or any(is_below(file, folder) for file in flux)
            if in_use and is_below_any(folder, {*paths}) and not is_below_any(folder, elsewhere):
                found.append(folder)
                elsewhere.add(folder)
        return tuple(found)

    def _local_addresses(self, local: frozenset[Id], argo: tuple[ArgoFolder, ...]) -> frozenset[str]:
        """Return the addresses of the tree's own git repository: those of its git remotes and of the sources ``local``.

        If there are none, return the addresses in Applications of Argo CD that build the folder of their own file.
        """
        urls = {_url_of(each) for documents in self.documents.values() for each in documents if each.id in local}
        found = (self.repository.addresses | {plain_address(url) for url in urls}) - {""}
        return frozenset(found or {each.address for each in argo if each.is_bootstrap})

    def _local_sources(self, flux: tuple[KustomizationFolder, ...]) -> frozenset[Id]:
        """Return the sources whose files are those of the tree: the sources of bootstrap Kustomizations, and GitRepositories
        with the address and the revision of the tree.
        """
        declared = {each.id: each for documents in self.documents.values() for each in documents}
        local = {
            each.source for each in flux if each.may_be_local and (each.lies_inside or self._has_synced_folder(each))
        }
        is_synced = any(each.synced for each in flux)
        if (BOOTSTRAP_SOURCE not in declared and not is_synced) or any(
            each.folder == "." and each.source == BOOTSTRAP_SOURCE for each in flux
        ):
            local.add(BOOTSTRAP_SOURCE)
        own = [ref for who in local if who in declared and (ref := _ref_of(declared[who]))]
        for who, each in declared.items():
            if who.kind != GIT_REPOSITORY or plain_address(_url_of(each)) not in self.repository.addresses:
                continue
            ref = _ref_of(each)
            if not ref or ref in own or (not own and ref in self._own_branches()):
                local.add(who)
        return frozenset(local)

    def _has_synced_folder(self, each: KustomizationFolder) -> bool:
        """Return whether this is the Kustomization of a FluxInstance, and the tree has the folder that it builds."""
        return each.synced and self._is_folder(each.folder)

    def _own_branches(self) -> list[JsonObject]:
        """Return the branches that count as revisions of the tree itself: the branch of its repository, and the usual default
        branches. They are used only if no source that is known to be the tree names a revision.
        """
        return [{"branch": branch} for branch in (self.repository.branch, *_DEFAULT_BRANCHES)]


def _url_of(declared: Declared) -> str:
    """Return the address of a source; "" if it has no valid address. The controller of the source reports that error."""
    spec = declared.document.object.get("spec")
    url = spec.get("url") if isinstance(spec, dict) else None
    return url if isinstance(url, str) else ""


def _ref_of(declared: Declared) -> JsonObject:
    """Return the revision that a source names; empty if it names no valid revision."""
    spec = declared.document.object.get("spec")
    ref = spec.get("ref") if isinstance(spec, dict) else None
    return {key: value for key, value in ref.items() if value} if isinstance(ref, dict) else {}


def _by_name(declared: Sequence[Declared]) -> dict[tuple[str, str], tuple[Document, ...]]:
    """Return the documents by kind and name."""
    named: dict[tuple[str, str], list[Document]] = {}
    for each in declared:
        named.setdefault((each.id.kind, each.id.name), []).append(each.document)
    return {key: tuple(documents) for key, documents in named.items()}


def _overlap(path: str, folder: str) -> bool:
    """Return whether one of two paths lies below the other one."""
    return is_below(path, folder) or is_below(folder, path)


def _defers_objects(each: _Builder, paths: tuple[str, ...], bootstraps: AbstractSet[Id]) -> bool:
    """Return whether the objects in a builder's folder are created only when the builder runs."""
    return each.id in bootstraps or not any(is_below(path, each.folder) for path in paths)


def _not_built_by_others(paths: tuple[str, ...], builders: Sequence[_Builder]) -> tuple[str, ...]:
    """Return the paths that nothing in another of the paths builds. If two paths build each other, only the later one is
    returned.
    """
    left = list(paths)
    for path in paths:
        others = {*left} - {path}
        if any(is_below(path, each.folder) and is_below_any(each.file, others) for each in builders):
            left.remove(path)
    return tuple(left)


def root_of(*paths: Path) -> Path:
    """Return the root of the tree to which some paths belong: their common root. If they are outside of repositories, return
    the nearest folder around all of them.

    Blocking. Raises TreeError if they have different roots.
    """
    folders = [path if path.is_dir() else path.parent for path in map(Path.resolve, paths)]
    roots = sorted({_own_root(folder) for folder in folders})
    if len(roots) == 1:
        return roots[0]
    if not any(map(repository_above, folders)):
        common = Path(os.path.commonpath(folders))
        if common != Path(common.anchor):  # otherwise a tree could load every file of the machine
            return common
    named = ", ".join(f"{path} ({_own_root(folder)})" for path, folder in zip(paths, folders, strict=True))
    raise TreeError(f"{named}: have different roots; name one root with --root, or build the paths one after the other")


def _own_root(path: Path) -> Path:
    """Return the root for one path: the nearest folder above with a ``.git``, or the path itself. Blocking. Raises TreeError.

    A tree may also lie in a folder of a larger repository, for example as the data of a test. If a Kustomization below the path
    builds the folder of its own file, as after ``flux bootstrap``, the root is the folder to which the ``spec.path`` of this
    Kustomization is relative.
    """
    top = repository_above(path) or path
    if path == top or not path.is_dir():
        return top
    scan = _Scan(path, DEFAULT_NAMESPACE, Repository())
    scan.folder(".")
    roots = {
        found
        for each in kustomization_folders(scan.documents)
        if each.may_be_local
        and (found := _root_for(path / each.file, each.folder, top)) is not None
        and path.is_relative_to(found)  # otherwise the path contains a whole tree, such as a sample
    }
    return roots.pop() if len(roots) == 1 else top


def repository_above(path: Path) -> Path | None:
    """Return the git repository in which a path lies; None if there is none. Blocking."""
    return next((each for each in (path, *path.parents) if (each / ".git").exists()), None)


def _root_for(file: Path, folder: str, top: Path) -> Path | None:
    """Return the folder below ``top`` to which ``folder``, the ``spec.path`` of a Kustomization in ``file``, is relative.

    Return None if the Kustomization builds the root, or does not build the folder in which it lies.
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
