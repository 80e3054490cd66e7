"""Discovery: what is loaded, what is built, what is only known."""

import subprocess
from pathlib import Path

import pytest

from tests.offline.support import FLEET, config_map, flux_id, kustomization, release, write_tree
from wharfinger.offline.discovery.repository_address import remotes_of
from wharfinger.offline.discovery.tree import discover, normal_path
from wharfinger.offline.discovery.walk import TreeError

BOOTSTRAP = flux_id("Kustomization", "flux-system")


def test_of_the_sample_tree_only_the_bootstrap_files_are_loaded() -> None:
    tree = discover(FLEET / "clusters" / "production", root=FLEET)
    assert [each.id for each in tree.loaded] == [flux_id("GitRepository", "flux-system"), BOOTSTRAP]
    assert tree.folders == ()
    assert flux_id("HelmRelease", "billing", "apps") in tree.declared
    assert tree.local_sources == {flux_id("GitRepository", "flux-system")}


def test_a_folder_that_nothing_builds_is_built_as_a_whole(tmp_path: Path) -> None:
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


def test_without_an_anchor_the_path_is_the_root(tmp_path: Path) -> None:
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
def test_otherwise_the_root_is_the_repository(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    write_tree(tmp_path / "examples" / "fleet", {"clusters/a/ks.yaml": kustomization("one", path)})
    assert discover(tmp_path / "examples" / "fleet").root == tmp_path.resolve()


def test_two_trees_have_no_root_in_common(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name in ("one", "two"):
        write_tree(tmp_path / "examples" / name, {"clusters/a/ks.yaml": kustomization(name, "./clusters/a")})
    assert discover(tmp_path / "examples").root == tmp_path.resolve()


def test_the_root_is_where_git_is(tmp_path: Path) -> None:
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
    assert remotes_of(tmp_path) == {"git.example.com/a/fleet"}
    assert flux_id("GitRepository", "fleet", "x") in discover(tmp_path).local_sources


def test_one_file_is_a_tree(tmp_path: Path) -> None:
    write_tree(tmp_path, {"one.yaml": config_map("one"), "two.yaml": config_map("two")})
    assert [each.id.name for each in discover(tmp_path / "one.yaml").loaded] == ["one"]


def test_wrong_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="does not exist"):
        discover(tmp_path / "absent")
    write_tree(tmp_path, {"a/x.yaml": "", "b/x.yaml": ""})
    with pytest.raises(TreeError, match="does not lie below the root"):
        discover(tmp_path / "a", root=tmp_path / "b")


@pytest.mark.parametrize(
    ("text", "path"), [("./a/b/", "a/b"), ("", "."), ("./", "."), ("a/../b", "b"), ("../a", None), ("/a", "a")]
)
def test_normal_paths(text: str, path: str | None) -> None:
    assert normal_path(text) == path


def test_problems_of_built_files_are_kept_apart(tmp_path: Path) -> None:
    write_tree(tmp_path, {"ks.yaml": kustomization("a", "./a"), "a/bad.yaml": "a: b: c\n", "bad.yaml": "a: b: c\n"})
    tree = discover(tmp_path, root=tmp_path)
    assert [each.place.file for each in tree.problems] == ["bad.yaml"]
    assert [each.place.file for each in tree.hidden_problems] == ["a/bad.yaml"]
    assert tree.is_below("a/b", "a")
    assert not tree.is_below("ab", "a")


def test_releases_are_loaded_where_nothing_builds_them(tmp_path: Path) -> None:
    write_tree(tmp_path, {"hr.yaml": release("web")})
    assert [each.id for each in discover(tmp_path, root=tmp_path).loaded] == [flux_id("HelmRelease", "web", "apps")]
