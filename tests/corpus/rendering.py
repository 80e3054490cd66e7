"""Rendering of charts with the renderer of the daemon."""

from pathlib import Path

import trio

from tests.corpus.charts import Version
from tests.corpus.server import NAMESPACE, RELEASE
from tests.packages.support.charts import tool
from tests.packages.support.looking import given
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest


async def render(
    version: Version,
    client: ClusterClient,
    scratch: Path,
    kubeconfig: Path,
    *,
    upgrade: bool = False,
    program: str = "helm",
    release: str = RELEASE,
    namespace: str = NAMESPACE,
) -> Rendered:
    """Render a version of a chart for the server of ``client``. Charts that look up objects use ``kubeconfig``."""

    async def access() -> JsonObject:
        return as_object(read_yaml(await trio.Path(kubeconfig).read_bytes(), what="kubeconfig"), "kubeconfig")

    renderer = HelmRenderer(tool(program), scratch, access=given(access))
    return await renderer.render(
        RenderRequest(
            chart=version.folder,
            chart_digest="",
            release=release,
            namespace=namespace,
            values=version.values,
            kube_version=await client.server_version(),
            api_versions=await client.api_versions(),
            is_upgrade=upgrade,
        )
    )
