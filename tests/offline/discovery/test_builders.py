"""The folders that Kustomizations and Applications build, found in the files that declare them."""

from tests.offline.support import flux_id, kustomization
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.discovery.builders import (
    Declared,
    KustomizationFolder,
    argo_folders_of,
    kustomization_folders,
    source_of,
)
from wharfinger.offline.discovery.documents import read_documents
from wharfinger.offline.store.identity import object_id

TREE = flux_id("GitRepository", "flux-system")


def declared(text: str, file: str = "a/ks.yaml") -> dict[str, tuple[Declared, ...]]:
    content = read_documents(text.encode(), file)
    return {file: tuple(Declared(object_id(each.object, "default"), each) for each in content.documents)}


def one(text: str) -> KustomizationFolder:
    (found,) = kustomization_folders(declared(text))
    return found


def test_a_kustomization_inside_of_its_own_folder_is_recognized() -> None:
    inside, outside, root = (one(kustomization("x", path)) for path in ("./a", "./b", "./"))
    assert (inside.lies_inside, outside.lies_inside, root.lies_inside) == (True, False, False)
    assert (inside.folder, root.folder) == ("a", ".")


def test_a_kustomization_without_namespace_can_belong_to_the_tree() -> None:
    text = kustomization("x", "./b")
    assert one(text).is_of({TREE})
    bare = one(text.replace(", namespace: flux-system}", "}"))
    assert bare.source == flux_id("GitRepository", "flux-system", "default")
    assert bare.is_of({TREE})
    assert not bare.is_of({flux_id("GitRepository", "other")})
    elsewhere = one(text.replace("namespace: flux-system}", "namespace: apps}"))
    assert not elsewhere.is_of({TREE})


def test_invalid_and_variable_paths_are_ignored() -> None:
    for text in (kustomization("x", "../out"), kustomization("x", "./${cluster}"), kustomization("x", "{}")):
        assert list(kustomization_folders(declared(text))) == []


def test_folders_of_applications_are_read_from_their_sources() -> None:
    text = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec:\n  sources:\n"
        "  - {repoURL: 'https://git.example.com/a/b.git', path: ./a}\n  - {repoURL: 'https://c.example.com', chart: x}\n"
    )
    (found,) = argo_folders_of(declared(text))
    assert (found.folder, found.address, found.is_bootstrap) == ("a", "git.example.com/a/b", True)


def test_source_references_get_the_default_kind_and_namespace() -> None:
    assert source_of({"spec": {"sourceRef": {"name": "x"}}}, "apps") == flux_id("GitRepository", "x", "apps")
    ref: JsonObject = {"kind": "OCIRepository", "name": "x", "namespace": "y"}
    assert source_of({"spec": {"sourceRef": ref}}, "apps") == flux_id("OCIRepository", "x", "y")
