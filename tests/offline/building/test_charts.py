"""Renders of charts, by the digest of their files."""

from pathlib import Path

from tests.packages.support.charts import chart
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.charts import ChartRenders, objects_of
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
    """A renderer that keeps its requests."""

    def __init__(self) -> None:
        self.requests: list[RenderRequest] = []

    async def render(self, request: RenderRequest) -> Rendered:
        self.requests.append(request)
        return Rendered((CRD,), (hook("pre-install"), hook("test")), (OBJECT,), "")


async def test_a_changed_file_is_another_chart(tmp_path: Path) -> None:
    folder, keeping = chart(tmp_path / "web"), Keeping()
    renders = ChartRenders(keeping, "v1.34.0", ("x/v1",))
    await renders.render(folder, "web", "apps", {"a": 1})
    await renders.render(folder, "web", "apps", {"a": 1})
    (folder / "values.yaml").write_text("more: 1\n")
    await renders.render(folder, "web", "apps", {"a": 1})
    one, two, three = keeping.requests
    assert one == two
    assert one.chart_digest != three.chart_digest
    assert (one.kube_version, one.api_versions, one.is_upgrade) == ("v1.34.0", ("x/v1",), False)


async def test_tests_are_no_part_of_a_release(tmp_path: Path) -> None:
    rendered = await Keeping().render(RenderRequest(tmp_path, "", "a", "b", {}, "v1.34.0", (), is_upgrade=False))
    assert objects_of(rendered) == (CRD, OBJECT, hook("pre-install"))
    assert objects_of(rendered, crds=False) == (OBJECT, hook("pre-install"))
