"""Renders of charts. Each render request contains the digest of the chart's folder, so that the render cache can be used."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.chart_makers import ChartMakers
from wharfinger.offline.building.chart_nodes import may_make_nodes
from wharfinger.packages.definition.crd_files import served_kinds
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
        """Return whether the chart of a request is the same as at the time when its digest was computed."""
        known = self._known.get(request.chart)
        if known is None:
            return True  # the path of such a chart contains its digest, so the chart does not change
        try:
            return await trio.to_thread.run_sync(folder_stamp, request.chart) == known[0]
        except ArtifactError:
            return False


class ChartRenders:
    """The renderer of charts in one run. It computes the digest of each folder once."""

    def __init__(
        self,
        renderer: Renderer,
        digests: FolderDigests,
        kube_version: str,
        api_versions: tuple[str, ...],
        makers: ChartMakers | None = None,
    ) -> None:
        self._renderer = renderer
        self._digests = digests
        self._kube_version = kube_version
        self._api_versions = api_versions
        self._seen: dict[Path, str] = {}
        self._makers: dict[Path, bool] = {}
        self._known_makers = makers or ChartMakers()

    async def render(
        self, chart: Path, release: str, namespace: str, values: JsonObject, *, digest: str = "", crds: bool = True
    ) -> Rendered:
        """Render a chart as a new release; ``digest`` identifies its files if the caller knows it. Raises PackageError.

        With ``crds``, the templates see the API versions of the chart's own CRDs, as if these had been installed before.
        """
        request = RenderRequest(
            chart=chart,
            chart_digest=digest or await self.digest_of(chart),
            release=release,
            namespace=namespace,
            values=values,
            kube_version=self._kube_version,
            api_versions=self._api_versions,
            is_upgrade=False,
        )
        return await (self.render_installed(request) if crds else self.render_request(request))

    async def render_request(self, request: RenderRequest) -> Rendered:
        """Render a prepared request. Raises PackageError."""
        return await self._renderer.render(request)

    async def render_installed(self, request: RenderRequest) -> Rendered:
        """Render a request as an install does: the chart's custom resource definitions exist when its templates run.

        Raises PackageError.
        """
        rendered = await self._renderer.render(request)
        known = set(request.api_versions)
        new = [version for each in rendered.crds for version in versions_of(each) if version not in known]
        if not new:
            return rendered
        return await self._renderer.render(replace(request, api_versions=(*request.api_versions, *dict.fromkeys(new))))

    async def digest_of(self, folder: Path) -> str:
        """Return the digest of a folder's content. Raises ArtifactError."""
        digest = self._seen.get(folder)
        if digest is None:
            digest = self._seen[folder] = await self._digests.of(folder)
        return digest

    async def may_make_nodes(self, chart: Path) -> bool:
        """Return whether a chart's folder may render objects that have a controller. Raises ArtifactError."""
        if chart not in self._makers:
            try:
                self._makers[chart] = await trio.to_thread.run_sync(may_make_nodes, chart)
            except OSError as error:
                raise ArtifactError(f"{error.filename}: cannot be read: {error.strerror}") from error
        return self._makers[chart]

    async def is_known_to_make_nodes(self, key: str | None) -> bool | None:
        """Return whether the chart with this cache key may make nodes, without fetching it; None if that is not known."""
        return await self._known_makers.known(key)

    async def learn(self, key: str | None, chart: Path) -> None:
        """Store whether a fetched chart may make nodes. Raises ArtifactError."""
        if key is not None:
            await self._known_makers.learn(key, may_make_nodes=await self.may_make_nodes(chart))


def versions_of(definition: JsonObject) -> Iterator[str]:
    """Yield the API versions that a custom resource definition adds to a server: ``group/version`` and ``group/version/Kind``.

    Raises ArtifactError.
    """
    try:
        for kind in served_kinds(definition):
            yield kind.rpartition("/")[0]
            yield kind
    except FormatError as error:
        raise ArtifactError(f"a definition in crds/ cannot be read: {error}") from error


def objects_of(rendered: Rendered, *, crds: bool = True) -> tuple[JsonObject, ...]:
    """Return the objects that a release installs, in Helm's order: definitions, objects, and hooks other than tests."""
    hooks = tuple(each for each in rendered.hooks if not is_test(each))
    return (*(rendered.crds if crds else ()), *rendered.objects, *hooks)
