"""Renders of charts, with what identifies a chart's folder, so that the render cache can be used."""

from collections import OrderedDict
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.rendering.renderer import Rendered, Renderer, RenderRequest, is_test
from wharfinger.packages.store.folder_digest import folder_digest, folder_stamp

MAX_KNOWN: Final = 4096


class FolderDigests:
    """Digests of folders, each computed again only if a file may have changed."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[str, str]] = OrderedDict()

    async def of(self, folder: Path) -> str:
        """Return the digest of a folder's content. Raises ArtifactError."""
        stamp = await trio.to_thread.run_sync(folder_stamp, folder)
        known = self._known.get(folder)
        if known is None or known[0] != stamp:
            known = (stamp, await trio.to_thread.run_sync(folder_digest, folder))
            self._known[folder] = known
        self._known.move_to_end(folder)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return known[1]

    async def is_current(self, request: RenderRequest) -> bool:
        """Return whether the chart of a request still is what its digest was computed from."""
        known = self._known.get(request.chart)
        if known is None:
            return True  # its files are named by their digest, and do not change
        try:
            return await trio.to_thread.run_sync(folder_stamp, request.chart) == known[0]
        except ArtifactError:
            return False


class ChartRenders:
    """The renders of one run, in which the digest of a folder is asked for once."""

    def __init__(
        self, renderer: Renderer, digests: FolderDigests, kube_version: str, api_versions: tuple[str, ...]
    ) -> None:
        self._renderer = renderer
        self._digests = digests
        self._kube_version = kube_version
        self._api_versions = api_versions
        self._seen: dict[Path, str] = {}

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
        """Return the digest of a folder's content. Raises ArtifactError."""
        digest = self._seen.get(folder)
        if digest is None:
            digest = self._seen[folder] = await self._digests.of(folder)
        return digest


def objects_of(rendered: Rendered, *, crds: bool = True) -> tuple[JsonObject, ...]:
    """Return what a release installs, in Helm's order: definitions, objects, and hooks, without tests."""
    hooks = tuple(each for each in rendered.hooks if not is_test(each))
    return (*(rendered.crds if crds else ()), *rendered.objects, *hooks)
