"""Builds of two versions of a tree. Only changed releases are rendered, but the differences equal those of two whole builds."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.offline.support import (
    OPTIONS,
    config_map,
    kustomization,
    release,
    tool_options,
    with_chart,
    write_tree,
)
from tests.packages.rendering.test_chart_engine import engine_program
from wharfinger.offline.orchestrator.orchestrator import Config, Surveyed
from wharfinger.offline.orchestrator.sides import Sides, TreeVersion, build_sides, differing_releases
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.comparison import compared
from wharfinger.offline.sources.fetcher import Artifact, SourceRequest
from wharfinger.packages.rendering.renderer import Rendered, Renderer, RenderRequest
from wharfinger.runtime.fixpoint.model import Id

VALUES = "  valuesFrom: [{kind: ConfigMap, name: shared, valuesKey: all}]\n"
OPTIONAL = "  valuesFrom: [{kind: ConfigMap, name: absent, optional: true}]\n"
REPOSITORY = (
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: far, namespace: flux-system}\n"
    "spec: {url: 'https://git.example.com/far'}\n"
)
FAR = release("far").replace("name: flux-system, namespace", "name: far, namespace")
MAKER = (
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: made, namespace: apps}\n"
    "spec:\n  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system, "
    "namespace: flux-system}}}\n" + VALUES
)
FILES = with_chart(
    {
        "ks.yaml": kustomization("apps", "./apps"),
        "apps/one.yaml": release("one", "  values: {text: one}\n"),
        "apps/two.yaml": release("two", VALUES),
        "apps/shared.yaml": config_map("shared", all="text: shared\n"),
        "other/.keep": "",
    }
)


class CountingRenderer:
    """A renderer that records the names of the rendered releases."""

    def __init__(self, inner: Renderer) -> None:
        self.inner = inner
        self.releases: set[str] = set()

    async def render(self, request: RenderRequest) -> Rendered:
        self.releases.add(request.release)
        return await self.inner.render(request)


class CountingFetcher:
    """A fetcher that always returns the same folder, and counts its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    async def fetch(self, _request: SourceRequest) -> Artifact:
        self.count += 1
        return Artifact(self.folder, "main@1")


async def sides(
    tmp_path: Path,
    files: Mapping[str, str],
    changes: Mapping[str, str],
    *,
    everything: bool = False,
    fetcher: CountingFetcher | None = None,
    engine: Path | None = None,
    links: Mapping[str, str] | None = None,
) -> tuple[Sides, list[str]]:
    """Build a tree before and after ``changes`` to its files. An empty text in ``changes`` deletes the file. Return both sides,
    and the names of the releases that were rendered on either side.
    """
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        shutil.rmtree(folder, ignore_errors=True)
        write_tree(folder, files)
        for name, target in (links or {}).items():
            (folder / name).symlink_to(target)
    for name, text in changes.items():
        if text:
            write_tree(after, {name: text})
        else:
            (after / name).unlink()
    async with open_tools(replace(tool_options(tmp_path), engine=engine)) as tools:
        renderer = CountingRenderer(tools.renderer)
        fetchers = tools.fetchers if fetcher is None else dict.fromkeys(tools.fetchers, fetcher)
        counted = replace(tools, renderer=renderer, fetchers=fetchers)
        configs = [Config(folder, OPTIONS, root=folder) for folder in (before, after)]
        built = await build_sides(*(TreeVersion(config, counted) for config in configs), everything=everything)
        return built, sorted(renderer.releases)


def names(sides: Sides) -> set[str]:
    return {each.name for each in sides.unchanged}


CASES: Mapping[str, tuple[Mapping[str, str], Mapping[str, str], list[str]]] = {
    "nothing": (FILES, {}, []),
    "values": (FILES, {"apps/one.yaml": release("one", "  values: {text: other}\n")}, ["one"]),
    "a ConfigMap of values": (
        FILES,
        {"apps/shared.yaml": config_map("shared", all="text: other\n")},
        ["two"],
    ),
    "the chart": (FILES, {"charts/web/values.yaml": "text: x\nreplicas: 2\n"}, ["one", "two"]),
    "a new release": (FILES, {"apps/three.yaml": release("three")}, ["three"]),
    "a release that waits for one that is left out": (
        {**FILES, "apps/three.yaml": release("three", depends=("one",))},
        {"apps/three.yaml": release("three", "  values: {text: x}\n", depends=("one",))},
        ["three"],
    ),
    "a release less": (FILES, {"apps/one.yaml": ""}, ["one"]),
    "an object beside": (FILES, {"apps/more.yaml": config_map("more")}, []),
    "a patch": (
        FILES,
        {"ks.yaml": kustomization("apps", "./apps", "  commonMetadata: {labels: {a: b}}\n")},
        [],
    ),
    "a release that may read what another makes": (
        {**FILES, "apps/three.yaml": release("three", OPTIONAL)},
        {"apps/one.yaml": ""},
        ["one", "three", "two"],
    ),
    "a failure": (
        {**FILES, "apps/three.yaml": release("three", VALUES.replace("shared", "absent"))},
        {"apps/one.yaml": ""},
        ["one", "two"],
    ),
    "values that contain a node": (
        {
            **FILES,
            "charts/raw/Chart.yaml": "apiVersion: v2\nname: raw\nversion: 1.0.0\n",
            "charts/raw/templates/raw.yaml": "{{ .Values.raw }}\n",
            "apps/raw.yaml": release("raw", f"  values: {{raw: {json.dumps(MAKER)}}}\n", chart="./charts/raw"),
        },
        {"apps/shared.yaml": config_map("shared", all="text: other\n")},
        ["made", "raw", "two"],
    ),
    "a chart that makes nodes": (
        {
            **FILES,
            "charts/maker/Chart.yaml": "apiVersion: v2\nname: maker\nversion: 1.0.0\n",
            "charts/maker/templates/made.yaml": MAKER,
            "apps/maker.yaml": release("maker", chart="./charts/maker"),
        },
        {"apps/shared.yaml": config_map("shared", all="text: other\n")},
        ["made", "maker", "two"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
async def test_changed_releases_are_rendered_and_compared_as_in_a_whole_build(tmp_path: Path, case: str) -> None:
    files, changes, rendered = CASES[case]
    narrowed, releases = await sides(tmp_path, files, changes)
    assert releases == rendered
    whole, _ = await sides(tmp_path, files, changes, everything=True)
    assert compared(narrowed.before, narrowed.after) == compared(whole.before, whole.after)
    assert set(narrowed.after.failed) == set(whole.after.failed)
    assert narrowed.unchanged.isdisjoint({*narrowed.before.failed, *narrowed.after.failed})


ARGO = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: argo, namespace: argocd}\n"
    "spec: {source: {repoURL: 'https://git.example.com/a/fleet', path: charts/web}, destination: {namespace: apps}}\n"
)
SOURCE = (
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\n"
    "spec: {url: 'https://git.example.com/a/fleet'}\n---\n" + kustomization("root", "./flux")
)


@pytest.mark.slow
async def test_a_link_to_a_folder_in_a_chart_fails_its_releases(tmp_path: Path) -> None:
    files = {**FILES, "flux/source.yaml": SOURCE, "argo.yaml": ARGO, "shared/x.yaml": config_map("x", a="1")}
    changes = {"shared/x.yaml": config_map("x", a="2")}
    both, _ = await sides(tmp_path, files, changes, links={"charts/web/templates/shared": "../../../shared"})
    failed = {who.name: str(each) for who, each in both.after.failed.items()}
    assert failed.keys() == {"one", "two", "argo"}
    assert all("templates/shared is a link to a folder; put a copy in its place" in each for each in failed.values())
    assert not names(both)


@pytest.mark.slow
async def test_sources_are_fetched_only_for_changed_releases(tmp_path: Path) -> None:
    files = {**FILES, "apps/git.yaml": REPOSITORY, "apps/far.yaml": FAR}
    far = CountingFetcher(write_tree(tmp_path / "far", with_chart({})))
    narrowed, releases = await sides(
        tmp_path, files, {"apps/one.yaml": release("one", "  values: {text: x}\n")}, fetcher=far
    )
    assert (far.count, releases, names(narrowed)) == (0, ["one"], {"far", "two"})
    narrowed, releases = await sides(tmp_path, files, {"apps/far.yaml": FAR + "  values: {text: x}\n"}, fetcher=far)
    assert (far.count, releases, names(narrowed)) == (2, ["far"], {"one", "two"})
    assert [change.id.name for change in compared(narrowed.before, narrowed.after).changes] == [
        "far-web",
        "far",
    ]


@pytest.mark.slow
async def test_releases_made_by_a_fetched_chart_are_compared(tmp_path: Path) -> None:
    """The chart's own release has equal inputs on both sides, but the chart makes another release, whose values differ."""
    source = REPOSITORY.replace("far'}", "far', ref: {tag: 1.0.0}}")
    chart = with_chart({"charts/web/templates/made.yaml": MAKER})
    far = CountingFetcher(write_tree(tmp_path / "far", chart))
    files = {**FILES, "apps/git.yaml": source, "apps/far.yaml": FAR}
    changes = {"apps/shared.yaml": config_map("shared", all="text: other\n")}
    unknown, _ = await sides(tmp_path, files, changes, fetcher=far)
    assert ({who.name for who in unknown.unsearched}, names(unknown)) == ({"far"}, {"far", "one"})
    await sides(tmp_path, files, {}, fetcher=far, everything=True)
    known, _ = await sides(tmp_path, files, changes, fetcher=far)
    assert (known.unsearched, names(known)) == (frozenset(), {"one"})
    changed = {change.id.name for change in compared(known.before, known.after).changes}
    assert changed == {"made-web", "shared", "two-web"}


@pytest.mark.slow
async def test_a_changed_file_of_an_artifact_renders_its_release(tmp_path: Path) -> None:
    """The chart of the release is in an artifact, into which files of the tree are copied. If such a file differs, the release
    must be rendered.
    """
    generator = (
        "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: g, namespace: apps}\n"
        "spec:\n  sources: [{alias: tree, kind: GitRepository, name: flux-system, namespace: flux-system}]\n"
        "  artifacts:\n  - name: web\n    copy:\n    - {from: '@tree/charts/web/', to: '@artifact/'}\n"
        "    - {from: '@tree/production.yaml', to: '@artifact/web/values.yaml', strategy: Merge}\n"
    )
    three = (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: three, namespace: apps}\n"
        "spec: {chartRef: {kind: ExternalArtifact, name: web}}\n"
    )
    files = {**FILES, "apps/g.yaml": generator, "apps/three.yaml": three, "production.yaml": "text: old\n"}
    some, releases = await sides(tmp_path, files, {"production.yaml": "text: new\n"})
    assert not some.after.failed
    assert (releases, names(some)) == (["three"], {"one", "two"})
    assert [change.id.name for change in compared(some.before, some.after).changes] == ["three-web"]
    _, releases = await sides(tmp_path, files, {"apps/one.yaml": release("one", "  values: {text: x}\n")})
    assert releases == ["one"]


async def test_a_kustomization_of_another_source_is_built_from_it(tmp_path: Path) -> None:
    far = CountingFetcher(write_tree(tmp_path / "far", {"x/map.yaml": config_map("distant")}))
    elsewhere = kustomization("far", "./x").replace("name: flux-system}", "name: far}")
    files = {**FILES, "apps/git.yaml": REPOSITORY, "far.yaml": elsewhere}
    narrowed, releases = await sides(tmp_path, files, {"apps/one.yaml": ""}, fetcher=far)
    assert (far.count, releases) == (2, ["one"])
    assert "distant" in {each.id.name for each in narrowed.after.objects}


async def test_only_changed_releases_of_a_resource_set_are_rendered(tmp_path: Path) -> None:
    """A ResourceSet is always built. Of the releases that it makes, only those whose inputs differ are rendered."""
    provider = (
        "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\n"
        "metadata: {name: {name}, namespace: apps, labels: {env: dev}}\n"
        "spec: {type: Static, defaultValues: {name: {name}, text: {text}}}\n"
    )
    made = release("<< inputs.name >>", "  values: {text: << inputs.text >>}\n")
    indented = "".join(f"    {line}\n" for line in made.splitlines())
    files = {
        **FILES,
        "set.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set, namespace: apps}\n"
        "spec:\n  dependsOn: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, "
        "name: helmreleases.helm.toolkit.fluxcd.io}]\n"
        "  inputsFrom: [{selector: {matchLabels: {env: dev}}}]\n  resourcesTemplate: |\n" + indented,
        **{f"{name}.yaml": provider.replace("{name}", name).replace("{text}", "old") for name in ("red", "blue")},
    }
    changes = {"red.yaml": provider.replace("{name}", "red").replace("{text}", "new")}
    narrowed, releases = await sides(tmp_path, files, changes, engine=engine_program())
    assert not narrowed.after.failed
    assert (releases, names(narrowed)) == (["red"], {"blue", "one", "two"})
    assert {change.id.name for change in compared(narrowed.before, narrowed.after).changes} == {"red", "red-web"}


@pytest.mark.slow
async def test_a_failed_changed_release_blocks_its_dependents(tmp_path: Path) -> None:
    files = {**FILES, "apps/two.yaml": release("two", depends=("one",))}
    changes = {
        "apps/one.yaml": release("one", chart="./charts/none"),
        "apps/two.yaml": release("two", "  values: {text: x}\n", depends=("one",)),
    }
    narrowed, _ = await sides(tmp_path, files, changes)
    assert {who.name: each.is_primary for who, each in narrowed.after.failed.items()} == {"one": True, "two": False}


def test_releases_with_other_inputs_or_on_one_side_differ() -> None:
    one, two, three = (Id("HelmRelease", "apps", name) for name in ("one", "two", "three"))
    before, after = Surveyed({one: "a", two: "b"}, {}), Surveyed({one: "a", two: "c", three: "d"}, {})
    assert differing_releases(before, after) == {two, three}
