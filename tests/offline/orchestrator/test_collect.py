"""The collection of the result of a build: the namespaces of objects, their places in files, and orphans (declared nodes whose
file nothing builds).
"""

from pathlib import Path

from tests.offline.support import built, config_map, flux_id, kustomization, write_tree
from wharfinger.formats.json.value import find_str

CRD = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ws.example.com}\n"
    "spec: {group: example.com, names: {kind: Wide, plural: ws}, scope: Cluster}\n"
)
OBJECTS = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n"
    "apiVersion: example.com/v1\nkind: Wide\nmetadata: {name: x}\n---\n"
    "apiVersion: other.com/v1\nkind: Unknown\nmetadata: {name: x}\n"
)


async def test_only_objects_of_known_namespaced_kinds_get_a_namespace(tmp_path: Path) -> None:
    files = {"ks.yaml": kustomization("one", "./one"), "one/objects.yaml": OBJECTS, "crd.yaml": CRD}
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    found = {
        each.id.kind: find_str(each.object, "metadata", "namespace") for each in result.objects if each.id.name == "x"
    }
    assert found == {"ConfigMap": "default", "Wide.example.com": "", "Unknown.other.com": ""}


async def test_objects_of_bootstrap_files_are_listed_once(tmp_path: Path) -> None:
    files = {
        "clusters/a/sync.yaml": kustomization("flux-system", "./clusters/a"),
        "clusters/a/map.yaml": config_map("x"),
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert [who.kind.partition(".")[0] for who in result.manifests] == ["Kustomization"]
    assert result.warnings == ()


async def test_declared_nodes_without_a_builder_are_orphans(tmp_path: Path) -> None:
    files = {
        "ks.yaml": kustomization("one", "./one"),
        "one/kustomization.yaml": "resources: [map.yaml]\n",
        "one/map.yaml": config_map("x"),
        "one/lost.yaml": kustomization("lost", "./two"),
        "one/data.yaml": config_map("data-is-no-orphan"),
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert {who: str(place) for who, place in result.orphans.items()} == {
        flux_id("Kustomization", "lost"): "one/lost.yaml:1"
    }


async def test_a_node_that_is_built_in_another_namespace_is_not_an_orphan(tmp_path: Path) -> None:
    files = {
        "ks.yaml": kustomization("one", "./one"),
        "one/kustomization.yaml": "resources: [inner]\nnamespace: apps\n",
        "one/inner/kustomization.yaml": "resources: [ks.yaml]\n",
        "one/inner/ks.yaml": kustomization("two", "./two").replace(", namespace: flux-system}\nspec", "}\nspec"),
        "two/map.yaml": config_map("x"),
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert flux_id("Kustomization", "two", "apps") in result.depends_on
    assert result.orphans == {}


async def test_the_place_of_a_rendered_object_is_that_of_its_producer(tmp_path: Path) -> None:
    files = {
        "ks.yaml": kustomization("one", "./one", "  namePrefix: p-\n"),
        "one/inner.yaml": kustomization("two", "./absent"),
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    (failure,) = result.failed.values()
    assert failure.id.name == "p-two"
    assert str(failure.place) == "ks.yaml:1"
