"""Applications of Argo CD, compared with the real helm and kustomize."""

import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.offline.sources.test_git import git
from tests.offline.sources.test_oci import registry
from tests.offline.support import OPTIONS, built, config_map, failures, names, open_test_tools, with_chart, write_tree
from tests.packages.support.charts import chart, tool
from tests.packages.support.web_server import Quiet, serving
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.store.kinds import ARGO_APPLICATION
from wharfinger.packages.charts.chart import pack_chart
from wharfinger.runtime.fixpoint.model import Id

FLEET = "https://git.example.com/platform/fleet"
REMOTE = {".git/config": f'[remote "origin"]\n\turl = {FLEET}.git\n'}
BASE = {
    "base/kustomization.yaml": "resources: [map.yaml, pod.yaml]\n",
    "base/map.yaml": config_map("words", "", text="a"),
    "base/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: 'web:1'}]}\n",
}


def application(name: str, source: str, *, plural: bool = False) -> str:
    """Return an Application whose source is the tree itself; ``source`` is YAML in flow style."""
    key = "sources" if plural else "source"
    return (
        f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\n"
        f"spec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: apps}}\n"
        f"  {key}: {source}\n"
    )


def argo_id(name: str) -> Id:
    return Id(ARGO_APPLICATION, "argocd", name)


def objects(result: Result, name: str) -> list[JsonObject]:
    return [each.object for each in result.manifests[argo_id(name)]]


def run_tool(program: str, *arguments: str | Path) -> list[JsonObject]:
    done = subprocess.run([tool(program), *arguments], check=True, capture_output=True)
    return [each for each in read_yaml_all(done.stdout, what=program) if isinstance(each, dict)]


def without_namespace(objects: list[JsonObject]) -> list[JsonObject]:
    """Return objects without their namespace, which the build adds."""
    return [
        {**each, "metadata": {key: value for key, value in each["metadata"].items() if key != "namespace"}}
        for each in objects
        if isinstance(each["metadata"], dict)
    ]


async def test_a_chart_of_the_tree_is_rendered_as_by_helm(tmp_path: Path) -> None:
    helm = (
        "{releaseName: shop, valueFiles: [values-a.yaml, /shared.yaml, absent.yaml], ignoreMissingValueFiles: true, "
        "values: 'text: lost', valuesObject: {text: won}, parameters: [{name: replicas, value: '7', forceString: true}]}"
    )
    files = {
        **REMOTE,
        "app.yaml": application("web", f"{{repoURL: '{FLEET}', path: charts/web, helm: {helm}}}"),
        "charts/web/values-a.yaml": "replicas: 2\n",
        "shared.yaml": "text: shared\n",
    }
    tree = write_tree(tmp_path / "tree", with_chart(files))
    result = await built(tree, tmp_path)
    assert not result.failed
    expected = run_tool(
        "helm", "template", "shop", tree / "charts/web", "--namespace=apps", "--set=text=won", "--set-string=replicas=7"
    )
    assert without_namespace(objects(result, "web")) == expected
    assert find_str(objects(result, "web")[0], "metadata", "namespace") == "apps"


async def test_a_folder_with_kustomize_options_is_built_as_by_kustomize(tmp_path: Path) -> None:
    kustomize = (
        "{namePrefix: p-, nameSuffix: -s, images: ['web=registry.example.com/web:2'], commonLabels: {team: a}, "
        "commonAnnotations: {note: b}}"
    )
    files = {
        **BASE,
        **REMOTE,
        "app.yaml": application("base", f"{{repoURL: '{FLEET}', path: base, kustomize: {kustomize}}}"),
        "plain.yaml": application("plain", f"{{repoURL: '{FLEET}', path: ./base}}"),
        "expected/kustomization.yaml": "resources: [../base]\nnamePrefix: p-\nnameSuffix: -s\n"
        "images: [{name: web, newName: registry.example.com/web, newTag: '2'}]\n"
        "labels: [{pairs: {team: a}, includeSelectors: true, includeTemplates: true}]\ncommonAnnotations: {note: b}\n",
    }
    tree = write_tree(tmp_path / "tree", files)
    result = await built(tree, tmp_path)
    assert not result.failed
    assert without_namespace(objects(result, "base")) == without_namespace(
        run_tool("kubectl", "kustomize", tree / "expected")
    )
    assert without_namespace(objects(result, "plain")) == without_namespace(
        run_tool("kubectl", "kustomize", tree / "base")
    )


async def test_plain_folders_and_an_app_of_apps_are_built(tmp_path: Path) -> None:
    files = {
        "root/root.yaml": application("root", f"{{repoURL: '{FLEET}', path: root}}"),
        "root/maps.yaml": application(
            "maps",
            f"{{repoURL: '{FLEET}', path: maps, directory: {{recurse: true, include: '{{*.yaml,x/*}}', exclude: '*/no-*'}}}}",
        ),
        "maps/one.yaml": config_map("one", ""),
        "maps/x/two.yml": config_map("two", ""),
        "maps/x/no-three.yaml": config_map("three", ""),
        "maps/four.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "four"}}',
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert not result.failed
    assert not result.orphans
    assert names(result) == ["one", "two"]
    assert [each.id for each in result.manifests[argo_id("root")]] == [argo_id("maps"), argo_id("root")]


async def test_charts_from_helm_repository_and_registry_use_values_from_git(tmp_path: Path) -> None:
    served, repository = tmp_path / "served", tmp_path / "repository"
    served.mkdir()
    (served / "web-1.0.0.tgz").write_bytes(pack_chart(chart(tmp_path / "chart", "web", "1.0.0")))
    (served / "index.yaml").write_text("entries: {web: [{name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}]}\n")
    write_tree(repository, {"env/prod.yaml": "word: deep\n", "maps/one.yaml": config_map("one", "")})
    git(repository, "init", "-q", "-b", "trunk")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "one")
    async with AsyncExitStack() as stack:
        address, _ = await stack.enter_async_context(registry(tmp_path))
        url = stack.enter_context(serving(served, Quiet))
        values = f"{{repoURL: '{repository}', targetRevision: trunk, ref: values}}"
        tree = write_tree(
            tmp_path / "tree",
            {
                "http.yaml": application(
                    "http",
                    f"[{{repoURL: '{url}', chart: web, targetRevision: 1.*, "
                    f"helm: {{valueFiles: [$values/env/prod.yaml]}}}}, {values}]",
                    plural=True,
                ),
                "oci.yaml": application("oci", f"{{repoURL: '{address}/charts', chart: web, targetRevision: 1.0.0}}"),
                "git.yaml": application("git", f"{{repoURL: '{repository}', path: maps}}"),
            },
        )
        tools = await stack.enter_async_context(open_test_tools(tmp_path))
        orchestrator = await stack.enter_async_context(open_orchestrator(Config(tree, OPTIONS, root=tree), tools))
        result = await orchestrator.render()
    assert not result.failed
    assert objects(result, "http")
    assert objects(result, "oci")
    assert [each.id.name for each in result.manifests[argo_id("git")]] == ["one"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{path: base}", "spec.source: needs repoURL"),
        ("{repoURL: FLEET, path: ../x}", "leads out of the repository"),
        ("{repoURL: FLEET, path: absent}", "the repository has no folder 'absent'"),
        ("{repoURL: FLEET, path: base, plugin: {name: x}}", "plugins are not run"),
        ("{repoURL: FLEET, path: base, helm: {}, directory: {}}", "names several tools: helm, directory"),
        ("{repoURL: FLEET, path: base, directory: {jsonnet: {libs: [a]}}}", "Jsonnet is not run"),
        ("{repoURL: FLEET, path: jsonnet}", "path: main.jsonnet is Jsonnet, which is not run"),
        ("{repoURL: FLEET, path: maps, kustomize: {namePrefix: a}}", "has no kustomization.yaml"),
        ("{repoURL: FLEET, path: prefixed, kustomize: {namePrefix: a}}", "the folder's kustomization sets it, too"),
        ("{repoURL: FLEET, path: charts/web, helm: {valueFiles: [gone.yaml]}}", "there is no file 'gone.yaml'"),
        ("{repoURL: FLEET, path: charts/web, helm: {valueFiles: [../../../x]}}", "leads out of its source"),
        ("{repoURL: FLEET, path: charts/web, helm: {valueFiles: [$a/b]}}", "no source has the ref 'a'"),
        ("{repoURL: FLEET, path: charts/web, helm: {parameters: [{name: a, value: '{b,c}'}]}}", "use valuesObject"),
        ("{repoURL: FLEET, path: broken}", "broken/bad.yaml"),
        ("{repoURL: 'https://elsewhere.example.com/a/b', path: x}", "forbidden by --offline"),
    ],
)
async def test_invalid_applications_fail_and_the_rest_is_built(source: str, says: str, tmp_path: Path) -> None:
    files = {
        **BASE,
        **REMOTE,
        "app.yaml": application("wrong", source.replace("FLEET", f"'{FLEET}'")),
        "fine.yaml": application("fine", f"{{repoURL: '{FLEET}', path: maps}}"),
        "maps/one.yaml": config_map("one", ""),
        "prefixed/kustomization.yaml": "namePrefix: b\nresources: [../maps/one.yaml]\n",
        "broken/bad.yaml": "a: [\n",
        "jsonnet/main.jsonnet": "{}",
    }
    result = await built(write_tree(tmp_path / "tree", with_chart(files)), tmp_path)
    assert says in failures(result)["Application wrong"]
    assert [each.id.name for each in result.manifests[argo_id("fine")]] == ["one"]


async def test_the_later_source_of_an_object_wins(tmp_path: Path) -> None:
    sources = ", ".join(f"{{repoURL: '{FLEET}', path: {path}}}" for path in ("a", "b"))
    files = {
        **REMOTE,
        "app.yaml": application("both", f"[{sources}]", plural=True),
        "a/map.yaml": config_map("one", "", text="a"),
        "b/map.yaml": config_map("one", "", text="b"),
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert [find_str(each, "data", "text") for each in objects(result, "both")] == ["b"]
