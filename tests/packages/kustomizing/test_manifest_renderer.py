"""Renders of packages without a chart, by the real kubectl and by the real engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.rendering.test_chart_engine import engine_program
from tests.packages.support.charts import manifest, tool, write
from tests.packages.support.renders import ASKED
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.errors import RenderError
from wharfinger.packages.kustomizing.engine_kustomize import kustomize_builder
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import HelmRenderer, RenderLimits
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.rendering.renderer import RenderRequest
from wharfinger.runtime.daemon.engine import find_kubectl, open_engine, package_renderer

BASE = {"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": manifest("a")}
OVERLAY = {**BASE, "kustomization.yaml": "namePrefix: x-\nresources: [base]\n"}


def asked(folder: Path) -> RenderRequest:
    return replace(ASKED, chart=folder, chart_digest="sha256:" + "1" * 64, chart_file={"name": "web"}, manifests=True)


@asynccontextmanager
async def open_renderer(tmp_path: Path, *, engine: bool) -> AsyncIterator[CachingRenderer]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    helm = HelmRenderer(tool("helm"), scratch)
    async with open_engine(engine_program() if engine else None, scratch, None, RenderLimits(at_once=1)) as opened:
        entries = EntryCache(tmp_path / "renders")
        yield package_renderer(helm, kustomize_builder(opened, find_kubectl(), scratch, entries), entries)


def names(objects: tuple[JsonObject, ...]) -> list[JsonValue]:
    return [each["metadata"] for each in objects]


@pytest.mark.parametrize("engine", [True, False], ids=["engine", "kubectl"])
async def test_a_kustomization_is_built_from_its_own_files(tmp_path: Path, *, engine: bool) -> None:
    folder = write(tmp_path / "web", OVERLAY)
    async with open_renderer(tmp_path, engine=engine) as renderer:
        rendered = await renderer.render(asked(folder))
        assert names(rendered.objects) == [{"name": "x-a"}]
        assert rendered.manifest.startswith("---\n# Source: package/kustomization.yaml\napiVersion: v1\n")
        assert (rendered.crds, rendered.hooks) == ((), ())
        (folder / "base/a.yaml").write_text(manifest("b"))  # The cache of builds notices the new content.
        assert names((await renderer.render(asked(folder))).objects) == [{"name": "x-b"}]


async def test_plain_manifests_are_rendered_unchanged(tmp_path: Path) -> None:
    hook = manifest("h").replace("metadata: {", 'metadata: {annotations: {"helm.sh/hook": pre-install}, ')
    folder = write(tmp_path / "web", {"b.yaml": manifest("b"), "a.yaml": manifest("a"), "h.yaml": hook})
    async with open_renderer(tmp_path, engine=False) as renderer:
        rendered = await renderer.render(asked(folder))
        assert names(rendered.objects) == [{"name": "a"}, {"name": "b"}]
        assert [each["metadata"] for each in rendered.hooks] == [
            {"annotations": {"helm.sh/hook": "pre-install"}, "name": "h"}
        ]
        assert await renderer.render(asked(folder)) == rendered
        statistics = renderer.statistics()
        assert (statistics.hits, statistics.misses, statistics.uncached) == (1, 1, 0)


OUTSIDE = [
    ("resources: [../other]\n", r"kustomization.yaml: names '../other', which lies outside of the package"),
    ("resources: [../secret.yaml]\n", r"names '../secret.yaml', which lies outside of the package"),
    ("configMapGenerator: [{name: a, files: [../secret.yaml]}]\n", r"names '../secret.yaml', which lies outside"),
    ("resources: ['https://example.invalid/a.yaml']\n", r"a package is built without a network"),
    ("resources: ['https://example.invalid/a.git//b?ref=c']\n", r"a package is built without a network"),
    ("resources: ['file:///etc']\n", r"names 'file:///etc', a repository outside of the package"),
    ("resources: [absent.yaml]\n", r"kustomize: .*absent.yaml"),
    ("resources: [\n", r"kustomization.yaml: cannot be checked: kustomization.yaml: line"),
]


@pytest.mark.parametrize("engine", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["engine", "kubectl"])
async def test_loads_outside_of_the_package_are_refused(tmp_path: Path, *, engine: bool) -> None:
    write(tmp_path, {"secret.yaml": manifest("secret"), "other/kustomization.yaml": "resources: []\n"})
    async with open_renderer(tmp_path, engine=engine) as renderer:
        for number, (text, why) in enumerate(OUTSIDE):
            folder = write(tmp_path / f"web{number}", {"kustomization.yaml": text})
            with pytest.raises(RenderError, match=why) as caught:
                await renderer.render(asked(folder))
            assert str(tmp_path) not in str(caught.value)


async def test_a_missing_builder_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "web", OVERLAY)
    helm = HelmRenderer(tool("helm"), tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    entries = EntryCache(tmp_path / "renders")
    renderer = package_renderer(helm, kustomize_builder(None, find_kubectl(), tmp_path, entries), entries)
    with pytest.raises(
        RenderError, match=r"a kustomization needs the chart engine, or kubectl on PATH; build the engine"
    ):
        await renderer.render(asked(folder))


async def test_a_missing_folder_is_a_transient_error(tmp_path: Path) -> None:
    async with open_renderer(tmp_path, engine=False) as renderer:
        with pytest.raises(RenderError, match="its folder is missing; install the package again") as caught:
            await renderer.render(asked(tmp_path / "absent"))
        assert caught.value.transient
