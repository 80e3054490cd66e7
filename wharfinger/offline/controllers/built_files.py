"""The files of a tree that each node builds, and the search for the nodes that would make a missing object."""

from collections.abc import Iterator
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import find_list, find_str
from wharfinger.offline.discovery.argo import argo_folders
from wharfinger.offline.discovery.build_files import normal_path
from wharfinger.offline.discovery.builders import copied_folders, source_of
from wharfinger.offline.discovery.repository_address import plain_address
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.store.kinds import (
    ARGO_APPLICATION,
    ARTIFACT_GENERATOR,
    EXTERNAL_ARTIFACT,
    FOLDER,
    KUSTOMIZATION,
)
from wharfinger.offline.store.store import ObjectStore, Stored
from wharfinger.runtime.fixpoint.model import Id

BUILDERS: Final = (ARGO_APPLICATION, ARTIFACT_GENERATOR, FOLDER, KUSTOMIZATION)
"""The kinds of nodes that build files of the tree, such as a Flux Kustomization."""


def files_of(stored: Stored, tree: Tree) -> frozenset[str]:
    """Return the files of the tree that a node builds, even if its build fails; empty for nodes that build none."""
    try:
        return frozenset(file for folder in _folders(stored, tree) for file in tree.build_files.files_of(folder))
    except FormatError:
        return frozenset()  # the node's controller reports the error


def builders_of(who: Id, store: ObjectStore, tree: Tree) -> tuple[Id, ...]:
    """Return the nodes that would make an object, sorted: those that build a file with an object of this kind and name.

    Namespaces are not compared, because a build may set them. An ExternalArtifact is made by the generator that names it.
    """
    if who.kind == EXTERNAL_ARTIFACT:
        generators = store.list(ARTIFACT_GENERATOR)
        return tuple(each.id for each in generators if each.id.namespace == who.namespace and _makes(each, who.name))
    files = {each.place.file for each in tree.named.get((who.kind, who.name), ())}
    if not files:
        return ()
    nodes = (stored for kind in BUILDERS for stored in store.list(kind))
    return tuple(sorted(each.id for each in nodes if not files.isdisjoint(files_of(each, tree))))


def _makes(generator: Stored, name: str) -> bool:
    """Return whether a generator may make an artifact of this name."""
    try:
        if find_str(generator.object, "spec", "pathPattern"):
            return True
        return any(find_str(each, "name") == name for each in find_list(generator.object, "spec", "artifacts"))
    except FormatError:
        return True  # the generator's controller reports the error


def _folders(stored: Stored, tree: Tree) -> Iterator[str]:
    if stored.id.kind == FOLDER:
        yield stored.id.name
    elif stored.id.kind == ARGO_APPLICATION:
        for url, path in argo_folders(stored.object):
            folder = normal_path(path)
            if folder is not None and plain_address(url) in tree.local_addresses:
                yield folder
    elif stored.id.kind == ARTIFACT_GENERATOR:
        yield from (
            folder
            for source, folder in copied_folders(stored.object, stored.id.namespace)
            if source in tree.local_sources
        )
    elif stored.id.kind == KUSTOMIZATION and source_of(stored.object, stored.id.namespace) in tree.local_sources:
        folder = normal_path(find_str(stored.object, "spec", "path", default="."))
        if folder is None:
            return
        yield folder
        for each in find_list(stored.object, "spec", "components"):
            component = normal_path(f"{folder}/{each}")
            if component is not None:
                yield component
