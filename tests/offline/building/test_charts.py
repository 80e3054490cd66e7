"""Renders of charts. The cache key of a render contains the digest of the chart's files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.charts import ChartRenders, FolderDigests, objects_of, versions_of
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest

OBJECT: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
CRD: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "c"},
}


def hook(events: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": events, "annotations": {"helm.sh/hook": events}}}


class Keeping:
    """A renderer that records its requests."""

    def __init__(self) -> None:
        self.requests: list[RenderRequest] = []

    async def render(self, request: RenderRequest) -> Rendered:
        self.requests.append(request)
        return Rendered((CRD,), (hook("pre-install"), hook("test")), (OBJECT,), "")


class Identified(Keeping):
    """A renderer whose results may be cached. ``meanwhile`` is called during a render."""

    meanwhile: Callable[[], int] = staticmethod(lambda: 0)

    async def identity(self, _: RenderRequest) -> str | None:
        return "one"

    async def render(self, request: RenderRequest) -> Rendered:
        self.meanwhile()
        return await super().render(request)


async def test_a_changed_file_changes_the_chart_digest_in_the_next_run(tmp_path: Path) -> None:
    folder, keeping, digests = chart(tmp_path / "web"), Keeping(), FolderDigests()
    renders = ChartRenders(keeping, digests, "v1.34.0", ("x/v1",))
    await renders.render(folder, "web", "apps", {"a": 1})
    await renders.render(folder, "web", "apps", {"a": 1})
    (folder / "values.yaml").write_text("more: 1\n")
    await ChartRenders(keeping, digests, "v1.34.0", ("x/v1",)).render(folder, "web", "apps", {"a": 1})
    one, two, three = keeping.requests
    assert one == two
    assert one.chart_digest != three.chart_digest
    assert (one.kube_version, one.api_versions, one.is_upgrade) == ("v1.34.0", ("x/v1",), False)


async def test_a_chart_that_changes_while_it_is_rendered_is_not_cached(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", files={"values.yaml": "colour: blue\n"})
    keeping, digests = Identified(), FolderDigests()
    caching = CachingRenderer(keeping, EntryCache(tmp_path / "renders"), digests.is_current)

    async def rendered() -> int:
        await ChartRenders(caching, digests, "v1.34.0", ()).render(folder, "web", "apps", {})
        return len(keeping.requests)

    keeping.meanwhile = lambda: (folder / "values.yaml").write_text("more: 1\n")
    assert await rendered() == 1
    keeping.meanwhile = lambda: 0
    (folder / "values.yaml").write_text("colour: blue\n")  # This is the content that was digested.
    assert await rendered() == 2
    assert await rendered() == 2
    assert len({each.chart_digest for each in keeping.requests}) == 1


async def test_test_hooks_are_not_part_of_a_release(tmp_path: Path) -> None:
    rendered = await Keeping().render(RenderRequest(tmp_path, "", "a", "b", {}, "v1.34.0", (), is_upgrade=False))
    assert objects_of(rendered) == (CRD, OBJECT, hook("pre-install"))
    assert objects_of(rendered, crds=False) == (OBJECT, hook("pre-install"))


SERVED: JsonObject = {
    **CRD,
    "spec": {
        "group": "example.com",
        "names": {"kind": "Wide"},
        "versions": [
            {"name": "v1", "served": True},
            {"name": "v1beta1", "served": True},
            {"name": "v0", "served": False},
        ],
    },
}
VERSIONS = ("example.com/v1", "example.com/v1/Wide", "example.com/v1beta1", "example.com/v1beta1/Wide")


class Defining(Keeping):
    """A renderer of a chart that has a CustomResourceDefinition."""

    async def render(self, request: RenderRequest) -> Rendered:
        self.requests.append(request)
        return Rendered((SERVED,), (), (OBJECT,), "")


async def test_a_chart_that_installs_its_crds_sees_their_api_versions(tmp_path: Path) -> None:
    folder, defining = chart(tmp_path / "web"), Defining()
    renders = ChartRenders(defining, FolderDigests(), "v1.34.0", ("x/v1",))
    await renders.render(folder, "web", "apps", {})
    assert [each.api_versions for each in defining.requests] == [("x/v1",), ("x/v1", *VERSIONS)]
    await renders.render(folder, "web", "apps", {}, crds=False)
    await ChartRenders(defining, FolderDigests(), "v1.34.0", VERSIONS).render(folder, "web", "apps", {})
    assert [each.api_versions for each in defining.requests[2:]] == [("x/v1",), VERSIONS]  # Each is rendered only once.
    with pytest.raises(ArtifactError, match="a definition in crds/ cannot be read: "):
        list(versions_of({**CRD, "spec": {"group": 7}}))
