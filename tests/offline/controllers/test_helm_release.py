"""HelmReleases: charts, values and names as in Flux, compared with the real helm."""

import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.offline.sources.test_oci import registry
from tests.offline.support import (
    OPTIONS,
    built,
    config_map,
    failures,
    flux_id,
    kustomization,
    names,
    open_test_tools,
    release,
    with_chart,
    write_tree,
)
from tests.packages.support.charts import chart, tool
from tests.packages.support.web_server import Quiet, serving
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.offline.controllers.helm_release import names_of
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.offline.store.store import Stored
from wharfinger.packages.charts.chart import pack_chart

WEB = flux_id("HelmRelease", "web", "apps")


def helm_template(chart: Path, name: str, *arguments: str) -> list[JsonObject]:
    done = subprocess.run(
        [tool("helm"), "template", name, chart, "--namespace=apps", "--include-crds", *arguments],
        check=True,
        capture_output=True,
    )
    return [each for each in read_yaml_all(done.stdout, what="helm") if isinstance(each, dict)]


async def test_values_are_layered_and_objects_equal_those_of_helm(tmp_path: Path) -> None:
    more = (
        "  valuesFrom:\n    - {kind: ConfigMap, name: defaults}\n"
        "    - {kind: Secret, name: words, valuesKey: text, targetPath: text}\n  values: {replicas: 7}\n"
    )
    files = {
        "hr.yaml": release("web", more),
        "defaults.yaml": config_map("defaults", **{"values.yaml": "replicas: 5\ntext: map\n"}),
        "words.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: words, namespace: apps}\nstringData: {text: secret}\n",
    }
    tree = write_tree(tmp_path / "tree", with_chart(files))
    result = await built(tree, tmp_path)
    expected = helm_template(tree / "charts" / "web", "web", "--set", "replicas=7,text=secret")
    assert [each.object["data"] for each in result.manifests[WEB]] == [each["data"] for each in expected]
    assert [find_str(each.object, "metadata", "namespace") for each in result.manifests[WEB]] == ["apps"]


async def test_a_release_waits_for_other_releases_and_their_objects(tmp_path: Path) -> None:
    files = {
        "one.yaml": release("one", depends=("two",)),
        "two.yaml": release(
            "two", "  valuesFrom: [{kind: ConfigMap, name: three-web, valuesKey: text, targetPath: text}]\n"
        ),
        "three.yaml": release("three", "  values: {text: deep}\n"),
    }
    result = await built(write_tree(tmp_path / "tree", with_chart(files)), tmp_path)
    assert not result.failed
    (two,) = result.manifests[flux_id("HelmRelease", "two", "apps")]
    assert find_str(two.object, "data", "text") == "deep"
    assert set(result.depends_on[flux_id("HelmRelease", "one", "apps")]) >= {flux_id("HelmRelease", "two", "apps")}


@pytest.mark.parametrize("workers", [2, 4])
async def test_a_release_reads_values_from_a_generated_config_map(tmp_path: Path, workers: int) -> None:
    files = {
        "ks.yaml": kustomization("apps", "./apps", depends=("first",)) + "---\n" + kustomization("first", "./first"),
        "first/map.yaml": config_map("first"),
        "apps/kustomization.yaml": "resources: [hr.yaml]\nnamespace: apps\nconfigurations: [names.yaml]\n"
        "configMapGenerator: [{name: values, files: [values.yaml]}]\n",
        "apps/values.yaml": "text: generated\n",
        "apps/names.yaml": "nameReference:\n- kind: ConfigMap\n  version: v1\n"
        "  fieldSpecs: [{path: spec/valuesFrom/name, kind: HelmRelease}]\n",
        "apps/hr.yaml": release("web", "  valuesFrom: [{kind: ConfigMap, name: values}]\n"),
    }
    tree = write_tree(tmp_path / "tree", with_chart(files))
    result = await built(tree, tmp_path, concurrency=workers)
    assert not result.failed
    done = subprocess.run([tool("kubectl"), "kustomize", tree / "apps"], check=True, capture_output=True)
    theirs = {find_str(each, "metadata", "name") for each in read_yaml_all(done.stdout, what="kustomize")}
    assert theirs - {"web"} == {each for each in names(result) if each.startswith("values-")}
    assert find_str(result.manifests[WEB][0].object, "data", "text") == "generated"


async def test_charts_of_a_registry_are_rendered(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        address, _ = await stack.enter_async_context(registry(tmp_path))
        source = (
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: apps}}\n"
            "spec: {spec}\n"
        )
        files = {
            "repository.yaml": source.format(
                kind="HelmRepository",
                name="charts",
                spec=f"{{type: oci, insecure: true, url: 'oci://{address}/charts'}}",
            ),
            "oci.yaml": source.format(
                kind="OCIRepository",
                name="web",
                spec=f"{{insecure: true, url: 'oci://{address}/charts/web', ref: {{semver: '~1.0'}}}}",
            ),
            "hr.yaml": release("newest", chart="web").replace(
                "{kind: GitRepository, name: flux-system, namespace: flux-system}",
                "{kind: HelmRepository, name: charts}",
            ),
            "by-reference.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"
            "metadata: {name: pinned, namespace: apps}\nspec: {chartRef: {kind: OCIRepository, name: web}}\n",
        }
        tree = write_tree(tmp_path / "tree", files)
        tools = await stack.enter_async_context(open_test_tools(tmp_path))
        orchestrator = await stack.enter_async_context(open_orchestrator(Config(tree, OPTIONS, root=tree), tools))
        result = await orchestrator.render()
    assert not result.failed
    assert {who.name for who, made in result.manifests.items() if who.kind == WEB.kind and made} == {"newest", "pinned"}


async def test_a_transient_error_of_a_repository_is_retried(tmp_path: Path) -> None:
    root = tmp_path / "served"
    root.mkdir()
    (root / "web-1.0.0.tgz").write_bytes(pack_chart(chart(tmp_path / "chart", "web", "1.0.0")))
    (root / "index.yaml").write_text("entries: {web: [{name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}]}\n")
    refused: list[str] = []

    class Flaky(Quiet):
        """A handler of HTTP requests that answers the first request with an error."""

        def do_GET(self) -> None:  # noqa: N802 - the name is http.server's
            if refused:
                super().do_GET()
            else:
                refused.append(self.path)
                self.send_error(503)

    with serving(root, Flaky) as url:
        repository = (
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: apps}\n"
            f"spec: {{url: '{url}'}}\n"
        )
        named = "{kind: GitRepository, name: flux-system, namespace: flux-system}"
        hr = release("web", chart="web").replace(named, "{kind: HelmRepository, name: charts}")
        tree = write_tree(tmp_path / "tree", {"repository.yaml": repository, "hr.yaml": hr})
        config = Config(tree, OPTIONS, root=tree, retries=RetryPolicy(attempts=2, first_s=0))
        async with open_test_tools(tmp_path) as tools, open_orchestrator(config, tools) as orchestrator:
            result = await orchestrator.render()
    assert not result.failed
    assert refused == ["/index.yaml"]


async def test_missing_secrets_fail_the_release_unless_allowed(tmp_path: Path) -> None:
    files = {"hr.yaml": release("web", "  valuesFrom: [{kind: Secret, name: gone}]\n")}
    tree = write_tree(tmp_path / "tree", with_chart(files))
    assert "Secret apps/gone does not exist" in failures(await built(tree, tmp_path))["HelmRelease web"]
    lenient = type(OPTIONS)(OPTIONS.kube_version, allow_missing_secrets=True)
    assert names(await built(tree, tmp_path, options=lenient)) == ["web-web"]


async def test_post_renderers_and_common_metadata_change_the_objects(tmp_path: Path) -> None:
    more = (
        "  commonMetadata: {labels: {team: a}}\n"
        "  postRenderers:\n    - kustomize:\n        patches:\n          - target: {kind: ConfigMap}\n"
        '            patch: \'[{"op": "add", "path": "/data/more", "value": "patched"}]\'\n'
    )
    result = await built(write_tree(tmp_path / "tree", with_chart({"hr.yaml": release("web", more)})), tmp_path)
    (manifest,) = result.manifests[WEB]
    assert find_str(manifest.object, "data", "more") == "patched"
    assert find_str(manifest.object, "metadata", "labels", "team") == "a"


async def test_crds_are_included_according_to_the_install_policy(tmp_path: Path) -> None:
    crd = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\n"
        "spec: {group: example.com, names: {kind: A, plural: as}, scope: Namespaced}\n"
    )
    files = with_chart(
        {
            "hr.yaml": release("web") + "---\n" + release("bare", "  install: {crds: Skip}\n"),
            "charts/web/crds/a.yaml": crd,
        }
    )
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    kinds = {who.name: [each.id.kind for each in made] for who, made in result.manifests.items()}
    assert "CustomResourceDefinition.apiextensions.k8s.io" in kinds["web"]
    assert kinds["bare"] == ["ConfigMap"]


@pytest.mark.parametrize(("policy", "known"), [("Create", "true"), ("Skip", "false")])
async def test_a_release_sees_its_own_definitions_if_it_installs_them(tmp_path: Path, policy: str, known: str) -> None:
    files = {
        "hr.yaml": release("web", f"  install: {{crds: {policy}}}\n"),
        "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "charts/web/crds/wide.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: wides.example.com}\nspec: {group: example.com, names: {kind: Wide, plural: wides}, "
        "scope: Cluster, versions: [{name: v1, served: true, storage: true}]}\n",
        "charts/web/templates/map.yaml": config_map("web")
        + '  known: {{ .Capabilities.APIVersions.Has "example.com/v1/Wide" | quote }}\n',
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert not result.failed, failures(result)
    (made,) = [each.object for each in result.objects if each.id.kind == "ConfigMap"]
    assert find_str(made, "data", "known") == known


async def test_listed_values_files_of_the_chart_are_used(tmp_path: Path) -> None:
    def with_files(listed: str) -> str:
        return release("web").replace(
            "      chart: ./charts/web\n", f"      chart: ./charts/web\n      valuesFiles: {listed}\n"
        )

    files = with_chart({"hr.yaml": with_files("[charts/web/values.yaml, more.yaml]"), "more.yaml": "text: more\n"})
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert find_str(result.manifests[WEB][0].object, "data", "text") == "more"
    write_tree(tmp_path / "tree", {"hr.yaml": with_files("[more.yaml]")})
    assert (
        "must list the chart's own values.yaml" in failures(await built(tmp_path / "tree", tmp_path))["HelmRelease web"]
    )


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, ("web", "apps")),
        ({"releaseName": "other"}, ("other", "apps")),
        ({"targetNamespace": "shop"}, ("shop-web", "shop")),
        ({"targetNamespace": "s" * 60}, ("s" * 40 + "-a7adb6b5a6a6", "s" * 60)),
    ],
)
def test_release_names_are_derived_and_limited_in_length(spec: JsonObject, names: tuple[str, str]) -> None:
    found = names_of(Stored(WEB, {"spec": spec}, ""))
    assert found[1] == names[1]
    assert found[0][:41] == names[0][:41]
    assert len(found[0]) <= 53
