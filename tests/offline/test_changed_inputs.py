"""A build with a full cache notices every change of an input: its output equals that of a build with an empty cache.

If possible, changed files keep their size and their time of modification, so that only their content differs.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from tests.offline.support import OPTIONS, config_map, kustomization, release, tool_options, with_chart, write_tree
from tests.packages.rendering.test_chart_engine import engine_program
from wharfinger.offline.controllers.controller import RunOptions
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.documents import yaml_documents

FILES: Final = {
    **with_chart(
        {
            "clusters/p/apps.yaml": kustomization("apps", "./apps", "  postBuild: {substitute: {colour: red}}\n"),
            "clusters/p/plain.yaml": kustomization("plain", "./plain"),
            "clusters/p/values.yaml": config_map("values", **{"values.yaml": "replicas: 2"}),
            "apps/kustomization.yaml": "namePrefix: a-\nresources: [../base, release.yaml]\n",
            "apps/release.yaml": release(
                "web", "  values: {text: one}\n  valuesFrom: [{kind: ConfigMap, name: values, optional: true}]\n"
            ),
            "base/kustomization.yaml": "resources: [map.yaml]\nconfigMapGenerator: [{name: made, files: [data.txt]}]\n",
            "base/map.yaml": config_map("base", colour="${colour}"),
            "base/data.txt": "a text\n",
            "plain/one.yaml": config_map("one"),
            "plain/two.yaml": config_map("two"),
        }
    ),
    "charts/web/values.yaml": "size: 1\n",
    "charts/web/templates/platform.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: platform}\n"
    "data: {version: {{ .Capabilities.KubeVersion.Version }}, chart: {{ .Chart.Version }}, size: {{ .Values.size | quote }}, "
    'has: {{ .Capabilities.APIVersions.Has "x/v1" | quote }}}\n',
}


@dataclass(frozen=True)
class Change:
    """One named change of an input. It changes the files of a tree (``of_files``) or the ``options``."""

    name: str
    of_files: Callable[[Path], object] = lambda _: None
    options: RunOptions = OPTIONS


def edit(file: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a function that edits a file. The time of modification stays, and so does the size if both texts are equally
    long.
    """

    def done(tree: Path) -> None:
        path = tree / file
        before, text = path.stat(), path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return done


def link(file: str, target: str) -> Callable[[Path], None]:
    """Return a function that replaces a file with a link."""

    def done(tree: Path) -> None:
        (tree / file).unlink()
        (tree / file).symlink_to(target)

    return done


CHANGES: Final = (
    Change("values of a release", edit("apps/release.yaml", "one", "two")),
    Change("values that a release reads", edit("clusters/p/values.yaml", "replicas: 2", "replicas: 3")),
    Change("an object of a base", edit("base/map.yaml", "colour", "colouR")),
    Change("a file of a generator", edit("base/data.txt", "text", "word")),
    Change("a kustomization", edit("apps/kustomization.yaml", "a-", "b-")),
    Change("the kustomization of a base", edit("base/kustomization.yaml", "made", "done")),
    Change("a variable", edit("clusters/p/apps.yaml", "red", "tan")),
    Change("a path", edit("clusters/p/plain.yaml", "./plain", "./base")),
    Change("a template", edit("charts/web/templates/map.yaml", "-web", "-wob")),
    Change("the values of a chart", edit("charts/web/values.yaml", "1", "9")),
    Change("the version of a chart", edit("charts/web/Chart.yaml", "1.2.3", "1.2.4")),
    Change("a new file", lambda tree: write_tree(tree, {"plain/three.yaml": config_map("three")})),
    Change("a new template", lambda tree: write_tree(tree, {"charts/web/templates/new.yaml": config_map("new")})),
    Change("a file that is gone", lambda tree: (tree / "plain/two.yaml").unlink()),
    Change("a file that is ignored", lambda tree: write_tree(tree, {"plain/.sourceignore": "two.yaml\n"})),
    Change("a kustomization that is new", lambda tree: write_tree(tree, {"plain/kustomization.yaml": "resources: [one.yaml]\n"})),
    Change("a link in place of a file", link("plain/two.yaml", "../base/map.yaml")),
    Change("a text that cannot be read any more", edit("plain/two.yaml", "apps}", "apps]")),
    Change("the version of Kubernetes", options=replace(OPTIONS, kube_version="v1.31.0")),
    Change("the API versions", options=replace(OPTIONS, api_versions=("x/v1",))),
)  # fmt: skip


async def text_of(tree: Path, cache: Path, options: RunOptions = OPTIONS) -> str:
    """Return the manifests and the failures of a build, as text."""
    config = Config(tree / "clusters" / "p", options, root=tree)
    programs = replace(tool_options(cache), engine=engine_program())
    async with open_tools(programs) as tools, open_orchestrator(config, tools) as orchestrator:
        result = await orchestrator.render()
    return yaml_documents(result.objects) + "".join(f"{each}\n" for each in result.failed.values())


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name.replace(" ", "-"))
async def test_a_changed_input_changes_the_result(change: Change, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    before = await text_of(tree, tmp_path)
    assert await text_of(tree, tmp_path) == before
    change.of_files(tree)
    after = await text_of(tree, tmp_path, change.options)
    assert after != before
    assert after == await text_of(tree, tmp_path / "new", change.options)


@pytest.mark.slow
async def test_a_reverted_change_restores_the_first_bytes(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    texts = []
    for colour in ("red", "tan", "red"):
        write_tree(tree, {"clusters/p/apps.yaml": FILES["clusters/p/apps.yaml"].replace("red", colour)})
        texts.append(await text_of(tree, tmp_path))
    assert texts[0] == texts[2] != texts[1]


async def test_another_program_version_renders_charts_again(tmp_path: Path) -> None:
    """The versions of programs are inputs, too, so a build with another version of helm must not use the cached renders."""
    tree = write_tree(tmp_path / "tree", FILES)
    await text_of(tree, tmp_path)
    helm = tmp_path / "helm"
    helm.write_text(
        "#!/bin/sh\n[ \"$1\" = version ] && echo v4.0.0 && exit\ncat <<'END'\n" + config_map("other") + "END\n"
    )
    helm.chmod(0o755)
    config = Config(tree / "clusters" / "p", OPTIONS, root=tree)
    programs = replace(tool_options(tmp_path), helm=helm, engine=engine_program())
    async with open_tools(programs) as tools, open_orchestrator(config, tools) as orchestrator:
        result = await orchestrator.render()
    assert "other" in {each.id.name for each in result.objects}
