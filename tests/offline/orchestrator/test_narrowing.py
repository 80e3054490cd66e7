"""Builds that are narrowed by a filter. The chosen objects equal those of a whole build, and only releases that the chosen
objects may need are rendered.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.offline.orchestrator.test_sides import MAKER, CountingFetcher, CountingRenderer
from tests.offline.support import OPTIONS, config_map, kustomization, release, tool_options, with_chart, write_tree
from wharfinger.offline.orchestrator.filter import parse_filter
from wharfinger.offline.orchestrator.narrowing import build_narrowed
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.selection import selected, selection_of
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.documents import yaml_documents

VALUES = "  valuesFrom: [{kind: ConfigMap, name: shared, valuesKey: all}]\n"
OF_ONE = "  valuesFrom: [{kind: ConfigMap, name: one-web, valuesKey: text}]\n"
FILES = with_chart(
    {
        "ks.yaml": kustomization("apps", "./apps") + "---\n" + kustomization("other", "./other"),
        "apps/one.yaml": release("one", "  values: {text: 'text: first'}\n"),
        "apps/two.yaml": release("two", VALUES, depends=("three",)),
        "apps/three.yaml": release("three"),
        "apps/shared.yaml": config_map("shared", all="text: shared\n"),
        "other/four.yaml": release("four"),
    }
)
MAKES = {
    **FILES,
    "charts/maker/Chart.yaml": "apiVersion: v2\nname: maker\nversion: 1.0.0\n",
    "charts/maker/templates/made.yaml": MAKER,
    "apps/maker.yaml": release("maker", chart="./charts/maker"),
}
REPOSITORY = (
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: far, namespace: flux-system}\n"
    "spec: {url: 'https://git.example.com/far', ref: {tag: 1.0.0}}\n"
)
FAR = {
    **FILES,
    "apps/git.yaml": REPOSITORY,
    "apps/far.yaml": release("far").replace("name: flux-system, namespace", "name: far, namespace"),
}

CASES: Mapping[str, tuple[Mapping[str, str], str, list[str]]] = {
    "one release": (FILES, "HelmRelease/one", ["one"]),
    "a release and those that it depends on": (FILES, "HelmRelease/two", ["three", "two"]),
    "a kustomization with what it makes": (FILES, "Kustomization/other", ["four"]),
    "releases of a folder": (FILES, "kind=HelmRelease,path=other", ["four"]),
    "releases that a chart makes": (MAKES, "HelmRelease/made", ["made", "maker"]),
    "objects that any release may make": (FILES, "ConfigMap/four-web", ["four", "one", "three", "two"]),
    "a failure anywhere": (
        {**FILES, "other/five.yaml": release("five", chart="./charts/none")},
        "HelmRelease/one",
        ["four", "one", "three", "two"],
    ),
    "values that a release makes": (
        {**FILES, "apps/six.yaml": release("six", OF_ONE)},
        "HelmRelease/six",
        ["four", "one", "six", "three", "two"],
    ),
}


async def narrowed(
    tmp_path: Path, tree: Path, text: str, fetcher: CountingFetcher | None = None
) -> tuple[Result, Result, list[str]]:
    """Return three things: the chosen part of a narrowed build, the result of a whole build, and the releases that the narrowed
    build has rendered.
    """
    config = Config(tree, OPTIONS, root=tree, filters=(parse_filter(text),))
    async with open_tools(tool_options(tmp_path)) as tools:
        renderer = CountingRenderer(tools.renderer)
        fetchers = tools.fetchers if fetcher is None else dict.fromkeys(tools.fetchers, fetcher)
        counted = replace(tools, renderer=renderer, fetchers=fetchers)
        some = await build_narrowed(config, counted)
        rendered = sorted(renderer.releases)
        async with open_orchestrator(config, counted) as orchestrator:
            assert orchestrator.filter == config.filters
            whole = await orchestrator.render()
    return selected(some, selection_of(some, config.filters)), whole, rendered


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES)
async def test_the_chosen_part_equals_that_of_a_whole_build(tmp_path: Path, case: str) -> None:
    files, text, rendered = CASES[case]
    some, whole, releases = await narrowed(tmp_path, write_tree(tmp_path / "tree", files), text)
    assert releases == rendered
    assert some.objects
    assert yaml_documents(some.objects) == yaml_documents(whole.objects)
    assert (some.failed, some.warnings, some.skipped) == (whole.failed, whole.warnings, whole.skipped)


@pytest.mark.slow
async def test_a_fetched_chart_is_rendered_until_it_is_known_to_make_no_nodes(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FAR)
    far = CountingFetcher(write_tree(tmp_path / "far", with_chart({})))
    some, whole, releases = await narrowed(tmp_path, tree, "HelmRelease/one", far)
    assert yaml_documents(some.objects) == yaml_documents(whole.objects)
    assert releases == ["far", "one"]
    far.count = 0
    config = Config(tree, OPTIONS, root=tree, filters=(parse_filter("HelmRelease/one"),))
    async with open_tools(tool_options(tmp_path)) as tools:
        renderer = CountingRenderer(tools.renderer)
        await build_narrowed(config, replace(tools, renderer=renderer, fetchers=dict.fromkeys(tools.fetchers, far)))
    assert (renderer.releases, far.count) == ({"one"}, 0)
