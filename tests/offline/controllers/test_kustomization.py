"""Kustomizations, built as Flux builds them, and compared with the real kustomize if possible."""

import subprocess
from pathlib import Path

from tests.offline.support import built, config_map, failures, flux_id, kustomization, names, opened, write_tree
from tests.packages.support.charts import tool
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.formats.yaml.reader import read_yaml_all

APPS = flux_id("Kustomization", "apps")
DEPLOYMENT = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"
    "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
    "    spec: {containers: [{name: main, image: registry.example.com/web:1}]}\n"
)


def real_kustomize(folder: Path) -> list[JsonObject]:
    done = subprocess.run(
        [tool("kubectl"), "kustomize", "--load-restrictor", "LoadRestrictionsNone", folder],
        check=True,
        capture_output=True,
    )
    return [each for each in read_yaml_all(done.stdout, what="kustomize") if isinstance(each, dict)]


async def test_a_plain_build_equals_that_of_kustomize(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("apps", "./apps"),
            "apps/kustomization.yaml": "resources: [web.yaml, map.yaml, ../base]\nnamespace: shop\nnamePrefix: p-\n"
            "configMapGenerator:\n- {name: generated, literals: [a=b]}\n"
            "images:\n- {name: registry.example.com/web, newTag: '2'}\n",
            "apps/web.yaml": DEPLOYMENT,
            "apps/map.yaml": config_map("map"),
            "base/kustomization.yaml": "resources: [base.yaml]\n",
            "base/base.yaml": config_map("base"),
        },
    )
    result = await built(tree, tmp_path)
    assert not result.failed
    assert [each.object for each in result.manifests[APPS]] == real_kustomize(tree / "apps")


async def test_spec_changes_are_built_as_the_equal_overlay(tmp_path: Path) -> None:
    more = (
        "  targetNamespace: shop\n  namePrefix: p-\n  components: [../extra]\n"
        "  images: [{name: registry.example.com/web, newTag: '3'}]\n"
        "  patches:\n    - target: {kind: Deployment}\n      patch: |\n"
        "        - {op: add, path: /spec/replicas, value: 4}\n"
    )
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("apps", "./apps", more),
            "apps/web.yaml": DEPLOYMENT,
            "apps/inner/map.yaml": config_map("map"),
            "extra/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
            "labels: [{pairs: {extra: 'yes'}}]\n",
        },
    )
    result = await built(tree, tmp_path)
    write_tree(
        tmp_path / "overlay",
        {
            "kustomization.yaml": "resources: [../tree/apps/inner/map.yaml, ../tree/apps/web.yaml]\nnamespace: shop\n"
            "namePrefix: p-\ncomponents: [../tree/extra]\nimages: [{name: registry.example.com/web, newTag: '3'}]\n"
            "patches:\n- target: {kind: Deployment}\n  patch: |\n    - {op: add, path: /spec/replicas, value: 4}\n"
        },
    )
    assert not result.failed
    assert [each.object for each in result.manifests[APPS]] == real_kustomize(tmp_path / "overlay")


async def test_inline_variables_win_over_referenced_ones(tmp_path: Path) -> None:
    more = (
        "  postBuild:\n    substitute: {two: spec}\n    substituteFrom:\n"
        "      - {kind: ConfigMap, name: vars}\n      - {kind: Secret, name: secrets}\n"
        "      - {kind: ConfigMap, name: absent, optional: true}\n"
    )
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("apps", "./apps", more),
            "vars.yaml": config_map("vars", "flux-system", one="map", two="map", three="map"),
            "secrets.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: secrets, namespace: flux-system}\n"
            "data: {three: c2VjcmV0}\n",
            "apps/map.yaml": config_map("map", text="${one} ${two} ${three} ${four:-none}"),
        },
    )
    result = await built(tree, tmp_path)
    assert find_str(result.manifests[APPS][0].object, "data", "text") == "map spec secret none"


async def test_a_variable_can_come_from_another_kustomization(tmp_path: Path) -> None:
    more = "  postBuild:\n    substituteFrom: [{kind: ConfigMap, name: vars}]\n"
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("apps", "./apps", more) + "---\n" + kustomization("first", "./first"),
            "first/vars.yaml": config_map("vars", "flux-system", one="map"),
            "apps/map.yaml": config_map("map", text="${one}"),
        },
    )
    result = await built(tree, tmp_path)
    assert find_str(result.manifests[APPS][0].object, "data", "text") == "map"
    assert flux_id("Kustomization", "apps") in result.depends_on


async def test_a_variable_from_its_own_build_does_not_deadlock(tmp_path: Path) -> None:
    more = "  postBuild:\n    substituteFrom: [{kind: ConfigMap, name: vars}]\n"
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("apps", "./apps", more),
            "apps/vars.yaml": config_map("vars", "flux-system", one="map"),
            "apps/map.yaml": config_map("map", text="${one}"),
        },
    )
    result = await built(tree, tmp_path)
    assert not result.failed
    assert {find_str(each.object, "data", "text") for each in result.manifests[APPS]} == {"", "map"}


async def test_a_missing_secret_is_a_failure_unless_allowed(tmp_path: Path) -> None:
    more = "  postBuild:\n    substituteFrom: [{kind: Secret, name: vars}]\n"
    tree = write_tree(
        tmp_path / "tree", {"ks.yaml": kustomization("apps", "./apps", more), "apps/map.yaml": config_map("map")}
    )
    assert "Secret flux-system/vars does not exist" in failures(await built(tree, tmp_path))["Kustomization apps"]


async def test_a_suspended_kustomization_builds_nothing_and_blocks_nothing(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("one", "./one", "  suspend: true\n")
            + "---\n"
            + kustomization("two", "./two", depends=("one",)),
            "one/map.yaml": config_map("one"),
            "two/map.yaml": config_map("two"),
        },
    )
    result = await built(tree, tmp_path)
    assert names(result) == ["two"]
    assert result.skipped == {flux_id("Kustomization", "one"): "suspended"}


async def test_two_kustomizations_with_the_same_path_are_both_built(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("one", "./same", "  namePrefix: one-\n")
            + "---\n"
            + kustomization("two", "./same", "  namePrefix: two-\n"),
            "same/map.yaml": config_map("map"),
        },
    )
    assert names(await built(tree, tmp_path)) == ["one-map", "two-map"]


async def test_a_kustomization_that_is_commented_out_is_not_built(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path / "tree",
        {
            "clusters/kustomization.yaml": "resources:\n- one.yaml\n# - two.yaml\n",
            "clusters/one.yaml": kustomization("one", "./one"),
            "clusters/two.yaml": kustomization("two", "./two"),
            "one/map.yaml": config_map("one"),
            "two/map.yaml": config_map("two"),
        },
    )
    result = await built(tree, tmp_path)
    assert names(result) == ["one"]
    assert {str(place) for place in result.orphans.values()} == {"clusters/two.yaml:1"}


async def test_encrypted_secrets_are_built_with_placeholders(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("apps", "./apps"),
            "apps/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: apps}\n"
            "stringData: {password: 'ENC[AES256_GCM,data:x,type:str]'}\nsops: {mac: 'ENC[x]'}\n",
        },
    )
    (manifest,) = (await built(tree, tmp_path)).manifests[APPS]
    assert manifest.object["stringData"] == {"password": "..PLACEHOLDER_password.."}
    assert "sops" not in manifest.object


async def test_nested_kustomizations_are_built(tmp_path: Path) -> None:
    """A Kustomization builds a second one, which builds a third one. Each of them becomes a node of the build only after it was
    rendered.
    """
    tree = write_tree(
        tmp_path / "tree",
        {
            "ks.yaml": kustomization("one", "./one"),
            "one/ks.yaml": kustomization("two", "./two"),
            "two/ks.yaml": kustomization("three", "./three", depends=("one",)),
            "three/map.yaml": config_map("deep"),
        },
    )
    async with opened(tree, tmp_path) as orchestrator:
        result = await orchestrator.render()
        assert [each.id.name for each in orchestrator.tree.loaded] == ["one"]
    assert names(result) == ["deep"]
    assert not result.failed
