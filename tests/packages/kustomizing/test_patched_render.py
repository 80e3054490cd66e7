"""Patches of a rendered chart, applied by the real kustomize: by kubectl, and by the engine if it was built."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.packages.errors import PatchError
from wharfinger.packages.kustomizing.engine_kustomize import kustomize_builder
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder
from wharfinger.packages.kustomizing.patched_render import patched
from wharfinger.packages.kustomizing.patches import read_patches
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_output import read_output
from wharfinger.packages.rendering.helm_renderer import RenderLimits
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.runtime.daemon.engine import ENGINE, find_kubectl, open_engine

WEB: Final = (
    "---\n# Source: web/templates/deployment.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n"
    "  namespace: prod\nspec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      - name: app\n        image: a:1\n"
    "      - name: side\n        image: s:1\n"
    "---\n# Source: web/templates/config.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, labels: {tier: front}}\n"
    "data: {text: 'a: 1'}   # a comment that stays\n"
)
SMP: Final = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
ENGINE_PROGRAM: Final = shutil.which(ENGINE)


def hook(event: str, image: str) -> JsonObject:
    metadata: JsonObject = {"name": "migrate", "annotations": {"helm.sh/hook": event}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"image": image}}


def rendered() -> Rendered:
    return replace(read_output(WEB), hooks=(hook("pre-install", "m:1"), hook("pre-upgrade", "m:2")))


@asynccontextmanager
async def builder_in(folder: Path, *, engine: bool = False) -> AsyncIterator[KustomizeBuilder]:
    program = Path(ENGINE_PROGRAM) if engine and ENGINE_PROGRAM else None
    async with open_engine(program, folder, None, RenderLimits()) as opened:
        yield kustomize_builder(opened, find_kubectl(), folder, EntryCache(folder / "cache"))


async def apply(folder: Path, *patches: JsonObject) -> Rendered:
    wanted: list[JsonValue] = [*patches]
    async with builder_in(folder) as builder:
        return await patched(rendered(), read_patches(wanted), builder)


async def test_strategic_merge_and_json_patches_are_applied(tmp_path: Path) -> None:
    added = SMP + "spec: {template: {spec: {containers: [{name: side, image: s:2}, {name: app, $patch: delete}]}}}\n"
    jobs: JsonObject = {"kind": "Job", "name": "mig.*"}
    found = await apply(
        tmp_path,
        {"patch": added},
        {"patch": "[{op: replace, path: /spec/replicas, value: 3}]", "target": {"kind": "Deployment"}},
        {"patch": "[{op: replace, path: /spec/image, value: m:3}]", "target": jobs},
    )
    deployment, config = found.objects
    assert find(deployment, "spec", "replicas") == 3
    assert find(deployment, "spec", "template", "spec", "containers") == [{"name": "side", "image": "s:2"}]
    assert config == rendered().objects[1]
    # The two hooks have the same kind and name, and both are patched.
    assert [find(each, "spec", "image") for each in found.hooks] == ["m:3", "m:3"]
    # The manifest contains the patched objects. Documents that no patch changes keep their text.
    assert read_output(found.manifest).objects == found.objects
    assert "# a comment that stays" in found.manifest
    assert found.manifest.startswith("---\n# Source: web/templates/deployment.yaml\n")


async def test_patches_are_applied_in_order_and_can_delete_objects(tmp_path: Path) -> None:
    found = await apply(
        tmp_path,
        {"patch": "metadata: {labels: {mine: 'yes'}}", "target": {"kind": "Deployment"}},
        {"patch": "spec: {replicas: 7}", "target": {"labelSelector": "mine=yes"}},
        {"patch": "$patch: delete", "target": {"kind": "ConfigMap"}},
    )
    assert [find(each, "kind") for each in found.objects] == ["Deployment"]
    assert find(found.objects[0], "spec", "replicas") == 7
    assert "ConfigMap" not in found.manifest


REFUSED: Final[dict[str, tuple[list[JsonObject], str]]] = {
    "no such object": (
        [{"patch": "spec: {replicas: 2}", "target": {"kind": "StatefulSet", "name": "web"}}],
        r"spec\.patches\[0\]: no object of the chart matches kind=StatefulSet, name=web; correct the target",
    ),
    "the object it names is not there": (
        [{"patch": SMP.replace("web", "shop")}],
        r"spec\.patches\[0\]: no object of the chart matches group=apps, version=v1, kind=Deployment, name=shop",
    ),
    "the second does not apply": (
        [
            {"patch": "spec: {replicas: 2}", "target": {"kind": "Deployment"}},
            {"patch": "[{op: remove, path: /spec/paused}]", "target": {"kind": "Deployment"}},
        ],
        r"spec\.patches\[1\]: the patch cannot be applied: .*/spec/paused",
    ),
    "another name": (
        [{"patch": "[{op: replace, path: /metadata/name, value: other}]", "target": {"kind": "ConfigMap"}}],
        r"a patch turns another object into ConfigMap default/other \(v1\); kind, name and namespace",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_patches_without_a_match_or_with_errors_are_refused(name: str, tmp_path: Path) -> None:
    patches, message = REFUSED[name]
    with pytest.raises(PatchError, match=message):
        await apply(tmp_path, *patches)


async def test_patches_without_a_kustomize_builder_are_refused(tmp_path: Path) -> None:
    patches = read_patches([{"patch": SMP}])
    with pytest.raises(PatchError, match="patches need kustomize: install kubectl"):
        await patched(rendered(), patches, None)
    assert await patched(rendered(), (), None) == rendered()


@pytest.mark.skipif(ENGINE_PROGRAM is None, reason="the chart engine is not built (`make engine`)")
async def test_the_engine_and_kubectl_apply_patches_equally(tmp_path: Path) -> None:
    patch: JsonObject = {"patch": "spec: {replicas: 3}", "target": {"kind": "Deployment"}}
    async with builder_in(tmp_path, engine=True) as builder:
        found = await patched(rendered(), read_patches([patch]), builder)
    assert found == await apply(tmp_path, patch)
