"""The images in the rendered manifests of a package, for packages that list no images themselves.

A package is downloaded to a temporary store and rendered as for a first installation, with its default settings or with the
given settings. The search covers the containers and image volumes of every pod specification in an object, also in a custom
resource. It also covers the field ``spec.image``, which some operators read, such as the Prometheus Operator. Hooks and tests
are searched, too. An image that only a running program chooses is in no manifest, so it cannot be found here.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list
from wharfinger.packages.definition.definition import Definition, Layout, read_definition
from wharfinger.packages.errors import AddressError, ArtifactError, RenderError
from wharfinger.packages.files.disk_files import disk_errors
from wharfinger.packages.kustomizing.engine_kustomize import FORBIDDEN
from wharfinger.packages.kustomizing.kustomize import KubectlKustomize
from wharfinger.packages.kustomizing.manifest_renderer import ManifestRenderer
from wharfinger.packages.mirroring.image_references import MAX_IMAGES, image_reference
from wharfinger.packages.registry.address import PackageReference
from wharfinger.packages.registry.registry import Manifest, Registry
from wharfinger.packages.rendering.helm_command import KUBE_VERSION
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.renderer import RenderRequest
from wharfinger.packages.settings.values import RenderContext, effective_settings, helm_values, merged_values
from wharfinger.packages.store.disk_store import open_store

OWN_REGISTRY: Final = "registry.invalid/packages"
"""The registry that templates get as the package's own registry. Images with a digest in this registry are skipped here,
because ``images_digests.json`` lists them.
"""

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_API_VERSIONS: Final = ("v1", "apps/v1", "batch/v1", "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1")
_NO_DIGEST: Final = "sha256:" + "0" * 64


@dataclass(frozen=True, slots=True)
class RenderedImages:
    """A search for images in rendered manifests; made by `open_rendered_images`. ``settings`` maps the names of packages to
    their settings.
    """

    settings: Mapping[str, JsonObject]
    kube_version: str
    _scratch: Path

    async def find(
        self, registry: Registry, repository: str, name: str, manifest: Manifest
    ) -> tuple[PackageReference, ...]:
        """Return the images of a package. Raises PackageError and FormatError if it cannot be rendered.

        A library chart has no images: it is never installed, and the charts that contain it name their images themselves.
        """
        async with _open_folder(self._scratch) as folder, open_store(folder) as store:
            await store.download(registry, repository, manifest)
            return await self._rendered(await store.install(manifest), name)

    async def _rendered(self, tree: Path, name: str) -> tuple[PackageReference, ...]:
        definition = await trio.to_thread.run_sync(lambda: read_definition(tree, name=name, version=""))
        if definition.layout is not Layout.MANIFESTS and (
            definition.chart is None or definition.chart.type == "library"
        ):
            return ()
        helm, kubectl = shutil.which("helm"), shutil.which("kubectl")
        if helm is None:
            raise RenderError("helm is not on PATH; install it", transient=False)
        program = Path(kubectl) if kubectl is not None else None
        building = KubectlKustomize(program, self._scratch, network=False, forbidden=FORBIDDEN)
        renderer = ManifestRenderer(HelmRenderer(Path(helm), self._scratch), building)
        rendered = await renderer.render(self._request(tree, definition, name))
        return images_in((*rendered.objects, *rendered.hooks), f"{name} {definition.version}".strip())

    def _request(self, tree: Path, definition: Definition, name: str) -> RenderRequest:
        given = self.settings.get(name, {})
        context = RenderContext(name, name, OWN_REGISTRY, definition.version, _NO_DIGEST)
        settings, values = effective_settings(definition, given), merged_values(definition, given)
        return RenderRequest(
            chart=tree,
            chart_digest="",
            release=name,
            namespace=name,
            values=helm_values(definition, context, {}, settings, values),
            kube_version=self.kube_version,
            api_versions=_API_VERSIONS,
            is_upgrade=False,
            chart_file=definition.chart_file,
            manifests=definition.layout is Layout.MANIFESTS,
        )


@asynccontextmanager
async def open_rendered_images(
    settings: Mapping[str, JsonObject], kube_version: str = ""
) -> AsyncIterator[RenderedImages]:
    """Yield a search for images. It deletes each package that it has downloaded after its use. Raises StoreError if no
    temporary folder can be made.
    """
    async with _open_folder(None) as scratch:
        yield RenderedImages(settings, kube_version or KUBE_VERSION, scratch)


@asynccontextmanager
async def _open_folder(parent: Path | None) -> AsyncIterator[Path]:
    """Make a temporary folder, and delete it at the end of the block, so that unpacked packages do not fill the disk."""
    with disk_errors("making a folder for unpacked packages"):
        made = tempfile.TemporaryDirectory(prefix="wharfinger-mirror-", dir=parent, ignore_cleanup_errors=True)
    try:
        yield Path(made.name)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(made.cleanup)


def images_in(objects: Iterable[JsonObject], what: str) -> tuple[PackageReference, ...]:
    """Return the images that objects name, each once, in order.

    Raises ArtifactError if a container's image is not a valid reference, or is in the package's own registry without a digest,
    or if there are more than MAX_IMAGES images.
    """
    found: dict[str, PackageReference] = {}
    for obj in objects:
        for name in _names(obj):
            if name.startswith(f"{OWN_REGISTRY}@") or name in found:
                continue
            if name.startswith(OWN_REGISTRY):
                own = f"the image {name.removeprefix(OWN_REGISTRY)[:200]!r} in the package's own registry"
                raise ArtifactError(
                    f"{what}: a container uses {own}, whose digest is known only during an installation"
                )
            try:
                found[name] = image_reference(name)
            except (AddressError, FormatError) as error:
                raise ArtifactError(f"{what}: a container has the image {name[:200]!r}: {error}") from error
        said = find(obj, "spec", "image")
        if isinstance(said, str) and "/" in said and not said.startswith(OWN_REGISTRY):
            try:
                found.setdefault(said, image_reference(said))
            except (AddressError, FormatError):
                continue  # in many kinds, a field of this name is not the image of a container
    if len(found) > MAX_IMAGES:
        raise ArtifactError(f"{what}: expected at most {MAX_IMAGES} images, found {len(found)}")
    return tuple(found.values())


def _names(obj: JsonObject) -> Iterator[str]:
    """Yield the images of the containers and volumes of every pod specification in an object."""
    to_see: list[JsonValue] = [obj]
    while to_see:
        value = to_see.pop()
        if isinstance(value, list):
            to_see += reversed(value)
        elif isinstance(value, dict):
            for key in _CONTAINERS:
                if isinstance(value.get(key), list):
                    yield from _texts(find(each, "image") for each in find_list(value, key))
            if isinstance(value.get("volumes"), list):
                yield from _texts(find(each, "image", "reference") for each in find_list(value, "volumes"))
            to_see += reversed(value.values())


def _texts(values: Iterable[JsonValue]) -> Iterator[str]:
    return (each for each in values if isinstance(each, str) and each)
