"""Requests and renderers for tests of the layers above Helm."""

from dataclasses import dataclass, field

import trio

from tests.packages.support.charts import WEB_SERVICE
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest

ASKED = RenderRequest(
    chart=WEB_SERVICE,
    chart_digest="sha256:" + "1" * 64,
    release="web",
    namespace="prod",
    values={"replicas": 2},
    kube_version="v1.31.0",
    api_versions=("apps/v1", "v1"),
    is_upgrade=False,
)


def config_map(name: str, text: str = "") -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}


def some_rendered(name: str = "web", text: str = "") -> Rendered:
    hook: JsonObject = {**config_map("hook"), "metadata": {"name": "hook", "annotations": {"helm.sh/hook": "test"}}}
    return Rendered((config_map("crd"),), (hook,), (config_map(name, text),), f"---\n# {name}\n", "read this")


@dataclass
class CountingRenderer:
    """A KeyedRenderer that counts its renders. If ``gate`` is set, renders wait for it; if ``error`` is set, they fail with
    it.
    """

    version: str | None = "helm v4.0.0"
    error: Exception | None = None
    gate: trio.Event | None = None
    text: str = ""
    asked: list[RenderRequest] = field(default_factory=list)

    async def identity(self, request: RenderRequest) -> str | None:
        assert request.chart_digest
        return self.version

    async def render(self, request: RenderRequest) -> Rendered:
        self.asked.append(request)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return some_rendered(f"{request.release}-{len(self.asked)}", self.text)
