"""The renderer of packages without a chart: plain manifests as they are, kustomizations built by kustomize.

It passes requests for charts on to the renderer of charts. Before kustomize reads anything, everything that the kustomization
names is checked (:mod:`wharfinger.packages.kustomizing.loads`): a package is built only from its own files, not from other files
of the machine or from the network.

The rendered objects are written in the form of Helm's output, so hooks (``helm.sh/hook``) are found as in a chart.
"""

from functools import partial
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.definition.manifest_folder import KUSTOMIZATION_FILES, is_kustomization, read_manifests
from wharfinger.packages.errors import ArtifactError, RenderError
from wharfinger.packages.files.package_files import open_files
from wharfinger.packages.kustomizing.kustomization import Folder
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder, KustomizeError
from wharfinger.packages.kustomizing.loads import LoadError, check_loads
from wharfinger.packages.rendering.helm_output import read_output
from wharfinger.packages.rendering.renderer import KeyedRenderer, Rendered, RenderRequest

PLAIN: Final = "manifests 1"
"""The identity of the reader of plain manifests in the keys of cached renders. Raise the number whenever a change of the reader
changes its result for the same files.
"""
_PACKAGE: Final = "package"
"""The name of the package's folder in messages of kustomize."""


class ManifestRenderer:
    """A renderer that implements :class:`~wharfinger.packages.rendering.renderer.KeyedRenderer`.

    ``charts`` renders packages with a chart, ``builder`` builds kustomizations.
    """

    def __init__(self, charts: KeyedRenderer, builder: KustomizeBuilder) -> None:
        self._charts = charts
        self._builder = builder

    async def identity(self, request: RenderRequest) -> str | None:
        """Return a text that identifies everything on which a render depends, except for the request: if any of it changes, the
        text changes. Raises RenderError.

        Return None for a kustomization, because its builder has its own cache.
        """
        if not request.manifests:
            return await self._charts.identity(request)
        return None if await trio.to_thread.run_sync(_is_built, request) else PLAIN

    async def render(self, request: RenderRequest) -> Rendered:
        """Render one package. Raises RenderError."""
        if not request.manifests:
            return await self._charts.render(request)
        try:
            if await trio.to_thread.run_sync(_is_built, request):
                return await self._built(request)
            return await trio.to_thread.run_sync(_plain, request)
        except (ArtifactError, FormatError) as error:
            raise RenderError(f"release {request.release}: {error}") from error

    async def _built(self, request: RenderRequest) -> Rendered:
        folder = await trio.to_thread.run_sync(request.chart.resolve)
        try:
            await trio.to_thread.run_sync(partial(check_loads, folder, folder, remote=False))
            objects = await self._builder.build(Folder(folder, _PACKAGE))
        except LoadError as error:
            at = error.file.relative_to(folder).as_posix() if error.file.is_relative_to(folder) else error.file.name
            told = str(error).replace("outside of the source", "outside of the package").replace("the source", "it")
            raise RenderError(f"release {request.release}: {at}: {told}") from error
        except KustomizeError as error:
            raise RenderError(f"release {request.release}: {error}", transient=error.transient) from error
        return await trio.to_thread.run_sync(_rendered, [(KUSTOMIZATION_FILES[0], each) for each in objects])


def _is_built(request: RenderRequest) -> bool:
    """Return whether kustomize builds a package. Blocking. Raises RenderError."""
    try:
        return is_kustomization(open_files(request.chart, request.release))
    except ArtifactError as error:
        raise RenderError(f"release {request.release}: {error}", transient=True) from error


def _plain(request: RenderRequest) -> Rendered:
    return _rendered(read_manifests(open_files(request.chart, request.release)))


def _rendered(objects: list[tuple[str, JsonObject]] | tuple[tuple[str, JsonObject], ...]) -> Rendered:
    """Return objects, each with its file, as the result of a render. Blocking. Raises RenderError, FormatError."""
    return read_output("".join(f"---\n# Source: {_PACKAGE}/{name}\n{write_yaml(each)}" for name, each in objects))
