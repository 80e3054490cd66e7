"""Renders of charts, with what identifies a chart's folder, so that the render cache can be used."""

from collections import OrderedDict
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.rendering.renderer import Rendered, Renderer, RenderRequest, is_test
from wharfinger.packages.store.folder_digest import folder_digest, folder_stamp

MAX_KNOWN: Final = 4096


class ChartRenders:
    """The renders of one run."""

    def __init__(self, renderer: Renderer, kube_version: str, api_versions: tuple[str, ...]) -> None:
        self._renderer = renderer
        self._kube_version = kube_version
        self._api_versions = api_versions
        self._digests: OrderedDict[Path, tuple[str, str]] = OrderedDict()

    async def render(
        self, chart: Path, release: str, namespace: str, values: JsonObject, *, digest: str = ""
    ) -> Rendered:
        """Render a chart as a new release; ``digest`` identifies its files if the caller knows it. Raises PackageError."""
        return await self.render_request(
            RenderRequest(
                chart=chart,
                chart_digest=digest or await self.digest_of(chart),
                release=release,
                namespace=namespace,
                values=values,
                kube_version=self._kube_version,
                api_versions=self._api_versions,
                is_upgrade=False,
            )
        )

    async def render_request(self, request: RenderRequest) -> Rendered:
        """Render a request that was made elsewhere. Raises PackageError."""
        return await self._renderer.render(request)

    async def digest_of(self, folder: Path) -> str:
        """Return the digest of a folder's content; it is computed again only if a file may have changed.

        Raises ArtifactError.
        """
        stamp = await trio.to_thread.run_sync(folder_stamp, folder)
        known = self._digests.get(folder)
        if known is None or known[0] != stamp:
            known = (stamp, await trio.to_thread.run_sync(folder_digest, folder))
            self._digests[folder] = known
        self._digests.move_to_end(folder)
        while len(self._digests) > MAX_KNOWN:
            self._digests.popitem(last=False)
        return known[1]


def objects_of(rendered: Rendered, *, crds: bool = True) -> tuple[JsonObject, ...]:
    """Return what a release installs, in Helm's order: definitions, objects, and hooks, without tests."""
    hooks = tuple(each for each in rendered.hooks if not is_test(each))
    return (*(rendered.crds if crds else ()), *rendered.objects, *hooks)
