"""The folders that Flux Kustomizations and Argo CD Applications of a tree build, and that ArtifactGenerators copy.

This module reads these folders from the files that declare the Kustomizations, Applications and ArtifactGenerators.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.offline.discovery.argo import argo_folders
from wharfinger.offline.discovery.build_files import is_below, normal_path
from wharfinger.offline.discovery.documents import Document
from wharfinger.offline.discovery.repository_address import plain_address
from wharfinger.offline.store.kinds import ARGO_APPLICATION, ARTIFACT_GENERATOR, GIT_REPOSITORY, KUSTOMIZATION
from wharfinger.runtime.fixpoint.model import Id

_SPECIAL: Final = frozenset("*?[]{}")


@dataclass(frozen=True, slots=True)
class Declared:
    """A document of the tree. Either the run starts with the object in it, or a build must first yield this object."""

    id: Id
    document: Document
    is_bootstrap: bool = False
    """True if a run starts with the document although a Kustomization builds its file."""
    is_synced: bool = False
    """True if the document is made from a FluxInstance. It is not printed, because in a cluster the Flux Operator makes it."""


@dataclass(frozen=True, slots=True)
class KustomizationFolder:
    """A Flux Kustomization that a file declares. ``placed`` is True if it names a namespace for itself or for its source.

    ``synced`` is True if the Flux Operator makes it from a FluxInstance.
    """

    id: Id
    folder: str
    source: Id
    file: str
    placed: bool
    synced: bool = False

    def is_of(self, sources: AbstractSet[Id]) -> bool:
        """Return whether the source of this Kustomization is one of ``sources``.

        If the Kustomization has no namespace yet, only names are compared, because a build may set the namespace.
        """
        if self.source in sources or self.placed:
            return self.source in sources
        return any((each.kind, each.name) == (self.source.kind, self.source.name) for each in sources)

    @property
    def lies_inside(self) -> bool:
        """True if the file of the Kustomization lies in or below the folder that the Kustomization builds; always False if it
        builds the root of the tree.
        """
        return self.folder != "." and is_below(self.file, self.folder)

    @property
    def may_be_local(self) -> bool:
        """True if the source of this Kustomization may be the tree itself: a git repository, or the source of a FluxInstance."""
        return self.synced or self.source.kind == GIT_REPOSITORY


@dataclass(frozen=True, slots=True)
class ArgoFolder:
    """A folder that an Application of Argo CD builds, and the address of its repository."""

    id: Id
    folder: str
    address: str
    file: str

    @property
    def is_bootstrap(self) -> bool:
        """True if the Application's own file is in or below the folder that the Application builds; always False if it builds
        the root of the tree.
        """
        return self.folder != "." and is_below(self.file, self.folder)


@dataclass(frozen=True, slots=True)
class CopiedFolder:
    """A folder of a source that an ArtifactGenerator copies into an artifact."""

    id: Id
    folder: str
    source: Id
    file: str


def kustomization_folders(documents: Mapping[str, tuple[Declared, ...]]) -> Iterator[KustomizationFolder]:
    """Yield the Flux Kustomizations in the documents, except those whose path leads out of the root or contains a variable."""
    for file in sorted(documents):
        for each in documents[file]:
            if each.id.kind != KUSTOMIZATION:
                continue
            try:
                folder = normal_path(find_str(each.document.object, "spec", "path", default="."))
                source = source_of(each.document.object, each.id.namespace)
            except FormatError:
                continue  # the Kustomization's controller reports the error
            if folder is not None and "${" not in folder:
                placed = _names_namespace(each.document.object)
                yield KustomizationFolder(each.id, folder, source, file, placed, each.is_synced)


def argo_folders_of(documents: Mapping[str, tuple[Declared, ...]]) -> Iterator[ArgoFolder]:
    """Yield the folders that Applications of Argo CD build, in any repository."""
    for file in sorted(documents):
        for each in documents[file]:
            if each.id.kind != ARGO_APPLICATION:
                continue
            try:
                folders = [(plain_address(url), normal_path(path)) for url, path in argo_folders(each.document.object)]
            except FormatError:
                continue  # the Application's controller reports the error
            yield from (ArgoFolder(each.id, folder, address, file) for address, folder in folders if folder and address)


def copied_folders_of(documents: Mapping[str, tuple[Declared, ...]]) -> Iterator[CopiedFolder]:
    """Yield the folders that ArtifactGenerators copy, from any source."""
    for file in sorted(documents):
        for each in documents[file]:
            if each.id.kind == ARTIFACT_GENERATOR:
                found = copied_folders(each.document.object, each.id.namespace)
                yield from (CopiedFolder(each.id, folder, source, file) for source, folder in found)


def copied_folders(obj: JsonObject, namespace: str) -> tuple[tuple[Id, str], ...]:
    """Return pairs of a source of an ArtifactGenerator and a folder that the generator copies from this source. The result is
    empty if the manifest of the generator cannot be read.
    """
    try:
        sources = {
            find_str(each, "alias"): Id(
                f"{find_str(each, 'kind')}.source.toolkit.fluxcd.io",
                find_str(each, "namespace", default=namespace),
                find_str(each, "name"),
            )
            for each in find_list(obj, "spec", "sources")
        }
        texts = [
            find_str(copy, "from").removeprefix("@").partition("/")
            for artifact in find_list(obj, "spec", "artifacts")
            for copy in find_list(artifact, "copy")
        ]
    except FormatError:
        return ()  # the generator's controller reports the error
    found: list[tuple[Id, str]] = []
    for alias, _, pattern in texts:
        plain = takewhile(lambda part: not _SPECIAL & {*part}, PurePosixPath(pattern).parts)
        folder = normal_path("/".join(plain))
        if alias in sources and folder is not None:
            found.append((sources[alias], folder))
    return tuple(found)


def source_of(obj: JsonObject, namespace: str) -> Id:
    """Return the source that a Kustomization names in ``spec.sourceRef``."""
    kind = find_str(obj, "spec", "sourceRef", "kind", default="GitRepository")
    own = find_str(obj, "spec", "sourceRef", "namespace", default=namespace)
    return Id(f"{kind}.source.toolkit.fluxcd.io", own, find_str(obj, "spec", "sourceRef", "name"))


def _names_namespace(obj: JsonObject) -> bool:
    return bool(find_str(obj, "metadata", "namespace") or find_str(obj, "spec", "sourceRef", "namespace"))
