"""ArtifactGenerators: a tree similar to Flux's own example, and artifacts that cannot be made."""

from pathlib import Path

import pytest

from tests.offline.support import built, config_map, failures, kustomization, names, with_chart, write_tree
from wharfinger.offline.orchestrator.filter import parse_filter
from wharfinger.offline.orchestrator.selection import selection_of
from wharfinger.offline.output.nodes import NodeState, nodes_of
from wharfinger.offline.store.kinds import ARTIFACT_GENERATOR, EXTERNAL_ARTIFACT
from wharfinger.runtime.fixpoint.model import Id

GENERATOR = """apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: tree, namespace: flux-system}
spec:
  sources:
  - {alias: monorepo, kind: GitRepository, name: flux-system}
  artifacts:
  - name: apps
    originRevision: "@monorepo"
    copy:
    - {from: "@monorepo/apps/base/**", to: "@artifact/base/"}
    - {from: "@monorepo/apps/production/**", to: "@artifact/production/"}
"""
BUILDS = kustomization("apps", "./production").replace(
    "kind: GitRepository, name: flux-system", "kind: ExternalArtifact, name: apps"
)
FILES = {
    "clusters/a/flux-system/ks.yaml": kustomization("flux-system", "./clusters/a"),
    "clusters/a/artifacts.yaml": GENERATOR,
    "clusters/a/apps.yaml": BUILDS,
    "apps/base/kustomization.yaml": "resources: [map.yaml]\n",
    "apps/base/map.yaml": config_map("web"),
    "apps/production/kustomization.yaml": "resources: [../base]\nnamePrefix: production-\n",
    "apps/staging/map.yaml": config_map("staging"),
}
GENERATOR_ID = Id(ARTIFACT_GENERATOR, "flux-system", "tree")


async def test_a_kustomization_builds_an_artifact(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    result = await built(tree / "clusters", tmp_path, root=tree)
    assert not result.failed
    assert not result.orphans
    assert names(result) == ["production-web"]
    kinds = {each.id.kind for each in result.objects}
    assert ARTIFACT_GENERATOR in kinds
    assert EXTERNAL_ARTIFACT not in kinds  # In the cluster, the generator's controller makes it.
    artifact = Id(EXTERNAL_ARTIFACT, "flux-system", "apps")
    assert result.makers[artifact] == GENERATOR_ID
    assert {each.id: each.state for each in nodes_of(result)}[artifact] is NodeState.DATA
    needed = selection_of(result, [parse_filter("Kustomization/apps")]).needed
    assert {artifact, GENERATOR_ID} <= needed
    assert artifact in result.depends_on[Id(
        "Kustomization.kustomize.toolkit.fluxcd.io", "flux-system", "apps"
    )]  # fmt: skip


async def test_files_copied_into_an_artifact_are_not_loaded_again(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {**FILES, "apps/production/more.yaml": config_map("unlisted")})
    result = await built(tree, tmp_path)
    assert not result.failed
    assert names(result) == ["production-web", "staging"]


async def test_a_failed_generator_blocks_readers_of_its_artifacts(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path / "tree", {**FILES, "clusters/a/artifacts.yaml": GENERATOR.replace("apps/base/**", "apps/bsae/**")}
    )
    result = await built(tree, tmp_path)
    assert failures(result) == {
        "ArtifactGenerator tree": "clusters/a/artifacts.yaml:1: ArtifactGenerator flux-system/tree: "
        "spec.artifacts[0].copy[0].from: the source has nothing that matches 'apps/bsae/**'; correct it"
    }
    assert list(result.blocked.values()) == [(GENERATOR_ID,)]


async def test_a_reference_to_an_unknown_artifact_fails(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {**FILES, "clusters/a/apps.yaml": BUILDS.replace("name: apps}", "name: aps}")})
    result = await built(tree, tmp_path)
    told = failures(result)["Kustomization apps"]
    assert "spec.sourceRef: ExternalArtifact flux-system/aps does not exist; did you mean flux-system/apps?" in told


async def test_a_path_pattern_makes_one_artifact_per_folder(tmp_path: Path) -> None:
    generator = GENERATOR.partition("  artifacts:")[0] + (
        '  pathPattern: "@monorepo/teams/{team}/apps/{app}"\n  commonMetadata: {labels: {a: b}}\n  artifacts:\n'
        '  - name: "{team}-{app}"\n    copy: [{from: "@monorepo/teams/{team}/apps/{app}/**", to: "@artifact/"}]\n'
    )
    builds = "---\n".join(
        kustomization(name, ".").replace(
            "kind: GitRepository, name: flux-system", f"kind: ExternalArtifact, name: {name}"
        )
        for name in ("one-web", "two-api")
    )
    files = {
        "clusters/a/flux-system/ks.yaml": FILES["clusters/a/flux-system/ks.yaml"],
        "clusters/a/artifacts.yaml": generator,
        "clusters/a/apps.yaml": builds,
        "teams/one/apps/Web/map.yaml": config_map("web"),
        "teams/two/apps/api/map.yaml": config_map("api"),
        "teams/two/README.md": "text",
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert not result.failed, failures(result)
    assert names(result) == ["api", "web"]


async def test_a_release_renders_a_chart_in_an_artifact(tmp_path: Path) -> None:
    generator = GENERATOR.partition("  artifacts:")[0] + (
        "  artifacts:\n  - name: web\n    copy:\n"
        '    - {from: "@monorepo/charts/web/", to: "@artifact/"}\n'
        '    - {from: "@monorepo/production.yaml", to: "@artifact/web/values.yaml", strategy: Merge}\n'
    )
    release = (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: flux-system}\n"
        "spec: {chartRef: {kind: ExternalArtifact, name: web}}\n"
    )
    files = with_chart({"generator.yaml": generator, "release.yaml": release, "production.yaml": "text: merged\n"})
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert not result.failed, failures(result)
    assert [each.object["data"] for each in result.objects if each.id.kind == "ConfigMap"] == [
        {"text": "merged", "replicas": "1"}
    ]


async def test_a_disabled_generator_makes_no_artifact(tmp_path: Path) -> None:
    disabled = GENERATOR.replace(
        "metadata: {", "metadata: {annotations: {source.extensions.fluxcd.io/reconcile: disabled}, "
    )
    result = await built(write_tree(tmp_path / "tree", {**FILES, "clusters/a/artifacts.yaml": disabled}), tmp_path)
    assert result.skipped[GENERATOR_ID] == "its reconciliation is disabled by an annotation"
    assert "ExternalArtifact flux-system/apps does not exist" in failures(result)["Kustomization apps"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "name: flux-system}\n  artifacts",
            "name: other}\n  artifacts",
            "spec.sources[0]: GitRepository flux-system/other does not",
        ),
        ("alias: monorepo, ", "", "spec.sources[0]: needs kind, name, and an alias"),
        ("name: apps\n", "name: Apps\n", "spec.artifacts[0].name: 'Apps' cannot be a name"),
        ("  artifacts:\n", '  pathPattern: "@none/{x}"\n  artifacts:\n', "spec.pathPattern: expected @ALIAS/PATTERN"),
        ("  artifacts:\n", '  pathPattern: "@monorepo/{x}/{x}"\n  artifacts:\n', "expected names in braces, each once"),
        ("  artifacts:\n", '  pathPattern: "@monorepo/{x}"\n  artifacts:\n', "two artifacts have the name 'apps'"),
    ],
)
async def test_errors_of_generators_name_the_field(old: str, new: str, told: str, tmp_path: Path) -> None:
    wrong = GENERATOR.replace(old, new)
    assert wrong != GENERATOR
    result = await built(write_tree(tmp_path / "tree", {**FILES, "clusters/a/artifacts.yaml": wrong}), tmp_path)
    assert told in failures(result)["ArtifactGenerator tree"]
