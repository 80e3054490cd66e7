"""The option ``--filter`` of each command that has it, as a user gives it."""

import json
from pathlib import Path

import pytest

from tests.offline.support import cli, config_map, kustomization, release, with_chart, write_tree
from wharfinger.formats.json.value import find_str
from wharfinger.formats.yaml.reader import read_yaml_all

FILES = with_chart(
    {
        "ks.yaml": kustomization("apps", "./apps") + "---\n" + kustomization("broken", "./nowhere"),
        "apps/web.yaml": release("web", "  valuesFrom: [{kind: ConfigMap, name: shared, valuesKey: all}]\n"),
        "apps/shared.yaml": config_map("shared", all="text: shared\n"),
        "apps/api.yaml": release("api"),
    }
)


def built(text: str) -> list[str]:
    objects = read_yaml_all(text, what="output")
    return [f"{find_str(each, 'kind')}/{find_str(each, 'metadata', 'name')}" for each in objects]


@pytest.mark.slow
def test_only_chosen_objects_and_their_failures_are_printed(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    done = cli("build", str(tree), "--filter", "HelmRelease/web", cache=tmp_path / "cache")
    assert (done.returncode, done.stderr, built(done.stdout)) == (0, "", ["ConfigMap/web-web", "HelmRelease/web"])
    assert "text: shared" in done.stdout
    done = cli(
        "build",
        str(tree),
        "--filter",
        "ConfigMap/shared",
        "--filter",
        "kind=HelmRelease,name=a*",
        cache=tmp_path / "cache",
    )
    assert built(done.stdout) == ["ConfigMap/api-web", "ConfigMap/shared", "HelmRelease/api"]
    done = cli("build", str(tree), "--filter", "Kustomization/broken", cache=tmp_path / "cache")
    assert (done.returncode, built(done.stdout)) == (1, ["Kustomization/broken"])
    assert "error: ks.yaml:7: Kustomization flux-system/broken: spec.path:" in done.stderr


def test_a_failure_of_a_needed_node_fails_the_command(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {**FILES, "apps/web.yaml": release("web", depends=("old",))})
    write_tree(tree, {"apps/old.yaml": release("old", chart="./charts/none")})
    done = cli("build", str(tree), "--filter", "HelmRelease/web", cache=tmp_path / "cache")
    assert done.returncode == 1
    assert "HelmRelease apps/old: spec.chart.spec.chart: " in done.stderr
    assert "broken" not in done.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("command", "code"), [("build", 2), ("check", 2), ("tree", 2), ("diff", 1)])
def test_a_filter_without_matches_is_refused_with_similar_values(command: str, code: int, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {key: text for key, text in FILES.items() if key != "ks.yaml"})
    write_tree(tree, {"ks.yaml": kustomization("apps", "./apps")})
    more = ("--against", str(tree)) if command == "diff" else ()
    done = cli(command, str(tree), "--root", str(tree), "--filter", "HelmRelease/wbe", *more, cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == (
        "error: filter 'HelmRelease/wbe' selects nothing: no object has the name 'wbe' among those with kind=HelmRelease; "
        "nearest: web\n"
    )
    done = cli(command, str(tree), "--root", str(tree), "--filter", "kinds=x", *more, cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (code, "")
    assert "error: --filter 'kinds=x': expected KEY=VALUE" in done.stderr


def test_the_tree_command_lists_chosen_and_needed_nodes(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    done = cli("tree", str(tree), "--filter", "HelmRelease/web", "-o", "json", cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")
    nodes = {f"{each['kind']}/{each['name']}": each for each in json.loads(done.stdout)["nodes"]}
    assert set(nodes) == {"ConfigMap/shared", "GitRepository/flux-system", "HelmRelease/web", "Kustomization/apps"}
    assert (nodes["Kustomization/apps"]["objects"], nodes["HelmRelease/web"]["madeBy"]) == (
        3,
        "Kustomization flux-system/apps",
    )


def test_only_findings_about_chosen_objects_are_reported(tmp_path: Path) -> None:
    """A reference is not dangling if its object exists, even if the filter does not choose that object."""
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: apps}}\n"
        "spec: {{containers: [{{name: x, image: x, envFrom: [{{configMapRef: {{name: {map}}}}}]}}]}}\n"
    )
    files = {
        "one.yaml": pod.format(name="one", map="shared"),
        "two.yaml": pod.format(name="two", map="absent"),
        "map.yaml": config_map("shared"),
        "bad.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, namespace: apps}\nspec: {containers: []}\n",
    }
    tree = write_tree(tmp_path / "tree", files)
    done = cli("check", str(tree), "--filter", "Pod/one", "-o", "json", cache=tmp_path / "cache")
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])
    done = cli("check", str(tree), "--filter", "Pod/two", "-o", "json", cache=tmp_path / "cache")
    assert [each["rule"] for each in json.loads(done.stdout)["findings"]] == ["dangling-reference"]
    done = cli("check", str(tree), "-o", "json", cache=tmp_path / "cache")
    assert {each["object"] for each in json.loads(done.stdout)["findings"]} >= {"Pod apps/two", "Pod apps/bad"}


@pytest.mark.slow
def test_only_differences_of_chosen_objects_are_printed(tmp_path: Path) -> None:
    before = write_tree(tmp_path / "one", FILES)
    after = write_tree(tmp_path / "two", {**FILES, "apps/web.yaml": release("web", "  values: {text: x}\n")})
    write_tree(after, {"apps/new.yaml": release("new"), "apps/shared.yaml": config_map("shared", all="text: other\n")})
    common = (str(after), "--root", str(after), "--against", str(before), "-o", "json")

    def changes(*filters: str) -> tuple[int, list[str]]:
        asked = [text for each in filters for text in ("--filter", each)]
        done = cli("diff", *common, *asked, cache=tmp_path / "cache")
        listed = json.loads(done.stdout)["changes"] if done.stdout else []
        return done.returncode, [f"{each['change']} {each['kind']}/{each['name']}" for each in listed]

    assert changes("HelmRelease/web") == (2, ["changed ConfigMap/web-web", "changed HelmRelease/web"])
    assert changes("HelmRelease/new") == (2, ["added ConfigMap/new-web", "added HelmRelease/new"])
    assert changes("HelmRelease/api") == (0, [])
    assert changes("ConfigMap/api-web") == (0, [])  # The release of this object is not rendered in the first step.
    assert changes("ConfigMap/shared", "HelmRelease/new")[1] == [
        "added ConfigMap/new-web",
        "changed ConfigMap/shared",
        "added HelmRelease/new",
    ]
