"""The discovery of trees: which objects a build starts with, which it makes only later, and which files declare them."""

import subprocess
from pathlib import Path

import pytest

from tests.offline.support import FLEET, config_map, flux_id, kustomization, release, write_tree
from wharfinger.offline.discovery.repository_address import Repository, repository_of
from wharfinger.offline.discovery.tree import discover
from wharfinger.offline.discovery.walk import TreeError

BOOTSTRAP = flux_id("Kustomization", "flux-system")


def test_only_bootstrap_files_of_the_sample_tree_are_loaded() -> None:
    tree = discover(FLEET / "clusters" / "production", root=FLEET)
    assert [each.id for each in tree.loaded] == [flux_id("GitRepository", "flux-system"), BOOTSTRAP]
    assert tree.folders == ()
    assert flux_id("HelmRelease", "billing", "apps") in tree.declared
    assert tree.local_sources == {flux_id("GitRepository", "flux-system")}


def test_a_folder_without_a_builder_is_built_as_a_whole(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "kustomized/kustomization.yaml": "resources: [a.yaml]\n",
            "kustomized/a.yaml": config_map("a"),
            "kustomized/commented-out.yaml": config_map("b"),
            "kustomized/inner/kustomization.yaml": "resources: []\n",
            "plain.yaml": config_map("c"),
        },
    )
    tree = discover(tmp_path, root=tmp_path)
    assert tree.folders == ("kustomized",)
    assert [each.id.name for each in tree.loaded] == ["c"]


def test_paths_of_kustomizations_are_followed_out_of_the_given_folder(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "clusters/a/ks.yaml": kustomization("one", "./more"),
            "more/ks.yaml": kustomization("two", "./most"),
            "most/map.yaml": config_map("deep"),
            "other/map.yaml": config_map("other"),
        },
    )
    tree = discover(tmp_path / "clusters" / "a", root=tmp_path)
    assert {who.name for who in tree.declared} == {"one", "two", "deep"}
    assert [each.id.name for each in tree.loaded] == ["one"]


def test_a_path_without_a_bootstrap_is_the_root(tmp_path: Path) -> None:
    write_tree(tmp_path, {"clusters/a/ks.yaml": kustomization("one", "./clusters/a")})
    tree = discover(tmp_path / "clusters" / "a")
    assert tree.root == (tmp_path / "clusters" / "a").resolve()


@pytest.mark.parametrize("below", ["", "clusters", "clusters/a"])
def test_a_tree_in_a_larger_repository_is_found_by_its_bootstrap(tmp_path: Path, below: str) -> None:
    (tmp_path / ".git").mkdir()
    tree = {"clusters/a/ks.yaml": kustomization("one", "./clusters/a"), "apps/map.yaml": config_map("c")}
    write_tree(tmp_path / "examples" / "fleet", tree)
    fleet = (tmp_path / "examples" / "fleet").resolve()
    assert discover(fleet / below).root == fleet


@pytest.mark.parametrize("path", ["./apps", "./examples/fleet/clusters/a", ".", "./b/clusters/a"])
def test_the_root_is_the_repository_if_no_bootstrap_matches(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    write_tree(tmp_path / "examples" / "fleet", {"clusters/a/ks.yaml": kustomization("one", path)})
    assert discover(tmp_path / "examples" / "fleet").root == tmp_path.resolve()


def test_a_folder_around_a_tree_belongs_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_tree(tmp_path, {"examples/fleet/clusters/a/ks.yaml": kustomization("one", "./clusters/a")})
    assert discover(tmp_path / "examples").root == tmp_path.resolve()


def test_the_root_of_two_trees_is_their_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name in ("one", "two"):
        write_tree(tmp_path / "examples" / name, {"clusters/a/ks.yaml": kustomization(name, "./clusters/a")})
    assert discover(tmp_path / "examples").root == tmp_path.resolve()


def test_the_root_is_the_folder_with_git_metadata(tmp_path: Path) -> None:
    write_tree(tmp_path, {"clusters/a/ks.yaml": kustomization("one", "./clusters/a"), ".git/config": ""})
    assert discover(tmp_path / "clusters" / "a").root == tmp_path.resolve()


def test_a_source_with_the_address_of_a_remote_is_the_tree(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", "git@git.example.com:a/fleet.git"], check=True)
    write_tree(
        tmp_path,
        {
            "source.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
            "metadata: {name: fleet, namespace: x}\nspec: {url: 'https://git.example.com/a/fleet'}\n"
        },
    )
    assert repository_of(tmp_path).addresses == {"git.example.com/a/fleet"}
    assert flux_id("GitRepository", "fleet", "x") in discover(tmp_path).local_sources


def repository(name: str, ref: str = "{}") -> str:
    return (
        f"apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: {name}, namespace: x}}\n"
        f"spec: {{url: 'https://git.example.com/a/fleet', ref: {ref}}}\n"
    )


@pytest.mark.parametrize(
    ("ref", "is_tree"),
    [
        ("{}", True),
        ("{branch: topic}", True),  # This branch is checked out.
        ("{branch: main}", True),
        ("{branch: staging}", False),
        ("{tag: v1}", False),
        ("{branch: main, commit: abc}", False),
        ("[main]", True),  # The controller of the source reports this error.
    ],
)
def test_a_source_of_another_revision_is_not_the_tree(tmp_path: Path, ref: str, is_tree: bool) -> None:
    own = Repository(frozenset({"git.example.com/a/fleet"}), "topic")
    tree = discover(write_tree(tmp_path, {"source.yaml": repository("fleet", ref)}), root=tmp_path, repository=own)
    assert (flux_id("GitRepository", "fleet", "x") in tree.local_sources) == is_tree


def test_the_revision_of_the_bootstrap_is_that_of_the_tree(tmp_path: Path) -> None:
    bootstrap = kustomization("fleet", "./clusters").replace("name: flux-system}", "name: own, namespace: x}")
    files = {
        "clusters/sync.yaml": repository("own", "{branch: live}") + "---\n" + bootstrap,
        "clusters/more.yaml": f"{repository('same', '{branch: live}')}---\n{repository('main', '{branch: main}')}",
    }
    own = Repository(frozenset({"git.example.com/a/fleet"}), "main")
    tree = discover(write_tree(tmp_path, files), root=tmp_path, repository=own)
    assert tree.local_sources >= {flux_id("GitRepository", name, "x") for name in ("own", "same")}
    assert flux_id("GitRepository", "main", "x") not in tree.local_sources


def test_a_base_that_builds_the_root_hides_no_files(tmp_path: Path) -> None:
    """The base of all tenants has a Kustomization whose path is the root of the tree. Each tenant sets another path with a
    patch, as in fluxcd/flux2-multi-tenancy. So the path in the base must not hide the files below the root.
    """
    files = {
        "clusters/a/tenants.yaml": kustomization("tenants", "./tenants/a"),
        "tenants/a/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]\n",
        "tenants/base/kustomization.yaml": "resources: [sync.yaml]\n",
        "tenants/base/sync.yaml": kustomization("dev-team", "."),
    }
    write_tree(tmp_path, files)
    for path, loaded in (("clusters/a", ["tenants"]), (".", ["tenants"])):
        tree = discover(tmp_path / path, root=tmp_path)
        assert [each.id.name for each in tree.loaded] == loaded


def test_a_kustomization_with_the_root_as_path_builds_the_tree(tmp_path: Path) -> None:
    sync = kustomization("fleet", "./").replace("name: flux-system}", "name: fleet, namespace: x}")
    files = {"flux/sync.yaml": repository("fleet") + "---\n" + sync, "apps/map.yaml": config_map("c")}
    own = Repository(frozenset({"git.example.com/a/fleet"}))
    tree = discover(write_tree(tmp_path, files), root=tmp_path, repository=own)
    assert [each.id.name for each in tree.loaded] == ["fleet", "fleet"]
    assert "apps/map.yaml" in tree.build_files.files_of(".")
    assert tree.named["ConfigMap", "c"][0].place.file == "apps/map.yaml"


def test_a_path_in_a_generated_artifact_does_not_determine_the_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    text = kustomization("apps", "./production").replace("kind: GitRepository", "kind: ExternalArtifact")
    write_tree(tmp_path, {"clusters/production/apps.yaml": text})
    assert discover(tmp_path / "clusters" / "production").root == tmp_path.resolve()


def test_a_single_file_can_be_a_tree(tmp_path: Path) -> None:
    write_tree(tmp_path, {"one.yaml": config_map("one"), "two.yaml": config_map("two")})
    assert [each.id.name for each in discover(tmp_path / "one.yaml").loaded] == ["one"]


def test_missing_paths_and_paths_outside_of_the_root_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="does not exist"):
        discover(tmp_path / "absent")
    write_tree(tmp_path, {"a/x.yaml": "", "b/x.yaml": ""})
    with pytest.raises(TreeError, match=f"does not lie below the root {tmp_path.resolve() / 'b'};"):
        discover(tmp_path / "a", root=tmp_path / "b")


def test_problems_of_built_files_are_listed_separately(tmp_path: Path) -> None:
    write_tree(tmp_path, {"ks.yaml": kustomization("a", "./a"), "a/bad.yaml": "a: b: c\n", "bad.yaml": "a: b: c\n"})
    tree = discover(tmp_path, root=tmp_path)
    assert [each.place.file for each in tree.problems] == ["bad.yaml"]
    assert [each.place.file for each in tree.hidden_problems] == ["a/bad.yaml"]
    assert tree.is_below("a/b", "a")
    assert not tree.is_below("ab", "a")


def test_releases_without_a_builder_are_loaded(tmp_path: Path) -> None:
    write_tree(tmp_path, {"hr.yaml": release("web")})
    assert [each.id for each in discover(tmp_path, root=tmp_path).loaded] == [flux_id("HelmRelease", "web", "apps")]


def test_a_path_of_another_repository_is_not_looked_up_in_the_tree(tmp_path: Path) -> None:
    vendor = (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: vendor, namespace: flux-system}\n"
        "spec: {url: 'https://git.example.com/vendor'}\n"
    )
    foreign = kustomization("vendor", "./deploy").replace("name: flux-system}", "name: vendor}")
    application = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\n"
        "spec: {source: {repoURL: 'https://git.example.com/other', path: config}}\n"
    )
    files = {"c/vendor.yaml": f"{vendor}---\n{foreign}---\n{application}"}
    files |= {"deploy/map.yaml": config_map("unrelated"), "config/map.yaml": config_map("unrelated")}
    tree = discover(write_tree(tmp_path, files) / "c", root=tmp_path)
    assert {each.document.place.file for each in tree.loaded} == {"c/vendor.yaml"}


@pytest.mark.parametrize("given", [False, True])
def test_files_outside_of_the_root_are_not_loaded_without_a_repository(tmp_path: Path, *, given: bool) -> None:
    tree = write_tree(tmp_path / "tree", {"apps/map.yaml": config_map("x")})
    found = discover(tree / "apps", root=tree if given else None)
    assert found.limit == (tree if given else tree / "apps")
    (tmp_path / ".git").mkdir()
    assert discover(tree / "apps", root=tree if given else None).limit == tmp_path
