"""The files of a tree that nodes (objects with a controller) build, and the nodes that would have made a missing object."""

from pathlib import Path

import pytest

from tests.offline.support import built, config_map, failures, flux_id, kustomization, release, with_chart, write_tree
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.built_files import builders_of, files_of
from wharfinger.offline.discovery.tree import Tree, discover
from wharfinger.offline.store.kinds import ARGO_APPLICATION, FOLDER
from wharfinger.offline.store.store import ObjectStore, Stored
from wharfinger.runtime.fixpoint.model import Id

APPLICATION: JsonObject = {
    "spec": {"source": {"repoURL": "https://git.example.com/a/fleet", "path": "two"}},
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    files = {
        "git.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
        "metadata: {name: flux-system, namespace: flux-system}\nspec: {url: 'https://git.example.com/a/fleet'}\n",
        "ks.yaml": kustomization("root", "."),
        "one/map.yaml": config_map("x"),
        "two/kustomization.yaml": "resources: [map.yaml]\n",
        "two/map.yaml": config_map("x", "elsewhere"),
        "two/lost.yaml": config_map("lost"),
        "component/kustomization.yaml": "resources: [more.yaml]\n",
        "component/more.yaml": config_map("more"),
    }
    return discover(write_tree(tmp_path, files), root=tmp_path)


def kustomization_object(path: str, source: str = "flux-system", **more: list[str]) -> JsonObject:
    spec: JsonObject = {"path": path, "sourceRef": {"kind": "GitRepository", "name": source}}
    return {"spec": spec | {key: [*value] for key, value in more.items()}}


@pytest.mark.parametrize(
    ("who", "obj", "files"),
    [
        (Id(FOLDER, "", "two"), {}, {"two/map.yaml"}),
        (flux_id("Kustomization", "x"), kustomization_object("./one"), {"one/map.yaml"}),
        (
            flux_id("Kustomization", "x"),
            kustomization_object("./one", components=["../component", "../../out"]),
            {"one/map.yaml", "component/more.yaml"},
        ),
        (flux_id("Kustomization", "x"), kustomization_object("./one", "other"), set()),
        (flux_id("Kustomization", "x"), kustomization_object("../out"), set()),
        (flux_id("Kustomization", "x"), {"spec": []}, set()),
        (Id(ARGO_APPLICATION, "argocd", "x"), APPLICATION, {"two/map.yaml"}),
        (flux_id("HelmRelease", "x"), kustomization_object("./one"), set()),
    ],
)
def test_files_of_a_node_are_those_that_it_builds(tree: Tree, who: Id, obj: JsonObject, files: set[str]) -> None:
    assert files_of(Stored(who, obj, ""), tree) == files


def test_builders_of_an_object_are_found_by_kind_and_name(tree: Tree) -> None:
    store = ObjectStore()
    one, two = flux_id("Kustomization", "one"), Id(FOLDER, "", "two")
    store.add(one, kustomization_object("./one"))
    store.add(two, {})
    assert builders_of(Id("ConfigMap", "any", "x"), store, tree) == (two, one)
    assert builders_of(Id("ConfigMap", "any", "lost"), store, tree) == ()
    assert builders_of(Id("Secret", "any", "x"), store, tree) == ()


BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${1bad}'}\n"


@pytest.mark.parametrize("waits", [False, True])
async def test_a_release_of_a_failed_build_blocks_and_is_not_an_orphan(tmp_path: Path, waits: bool) -> None:
    """The names of the two Kustomizations decide which of them is built first, but the result must be the same."""
    variables = "  postBuild: {substitute: {a: b}}\n"
    for first, second in (("a", "b"), ("b", "a")):
        files = {
            "first/kustomization.yaml": "resources: [hr.yaml, bad.yaml]\nnamespace: apps\n",
            "first/hr.yaml": release("made").replace(", namespace: apps", ""),
            "first/bad.yaml": BROKEN,
            "second/hr.yaml": release("needs", depends=("made",)),
            "ks.yaml": kustomization(first, "./first", variables, depends=("missing",) if waits else ())
            + "---\n"
            + kustomization(second, "./second"),
        }
        result = await built(write_tree(tmp_path / first, with_chart(files)), tmp_path)
        assert failures(result).keys() == {f"Kustomization {first}"}
        assert result.blocked == {flux_id("HelmRelease", "needs", "apps"): (flux_id("Kustomization", first),)}
        assert result.orphans == {}


async def test_the_message_for_a_missing_object_names_the_builder_of_its_file(tmp_path: Path) -> None:
    files = {
        "moved/kustomization.yaml": "resources: [hr.yaml]\nnamespace: other\n",
        "moved/hr.yaml": release("moved"),
        "asleep/hr.yaml": release("asleep"),
        "lost/kustomization.yaml": "resources: []\n",
        "lost/hr.yaml": release("lost"),
        "ks.yaml": "---\n".join(
            (
                kustomization("moved", "./moved"),
                kustomization("asleep", "./asleep", "  suspend: true\n"),
                kustomization("lost", "./lost"),
            )
        ),
        "hr.yaml": "---\n".join(release(f"needs-{name}", depends=(name,)) for name in ("moved", "asleep", "lost")),
    }
    told = failures(await built(write_tree(tmp_path / "tree", with_chart(files)), tmp_path))
    assert (
        "Kustomization flux-system/moved builds it under another name, or leaves it out"
        in told["HelmRelease needs-moved"]
    )
    assert "Kustomization flux-system/asleep, which builds that file, is skipped" in told["HelmRelease needs-asleep"]
    assert "lost/hr.yaml:1 declares it, but nothing builds that file" in told["HelmRelease needs-lost"]
