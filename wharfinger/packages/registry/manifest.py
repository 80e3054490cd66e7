"""OCI image manifests, read as untrusted data.

`read_manifest` takes the bytes of a manifest and the descriptor by which they were requested, checks that the bytes match the
descriptor, and returns a :class:`~wharfinger.packages.registry.registry.Manifest`. For bytes that are not valid it raises a
PackageError (a fuzz test checks that). The size of a manifest and the numbers of its layers and annotations are limited.

It reads OCI image manifest v1 (image-spec 1.1 §"Image Manifest") and Docker schema 2, which older registries and tools write;
:mod:`wharfinger.packages.registry.image_index` reads indexes of them. It reads neither schema 1, nor embedded ``data``, nor
foreign layers (``urls``).

A package is one of two kinds of artifact: a Helm chart (one layer with the chart's archive), or an image whose layers, on
top of each other, are the package's files.
"""

import re
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    encode_json,
    find,
    find_list,
    find_object,
    find_str,
    need_str,
)
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import ArtifactError, DigestError
from wharfinger.packages.registry.registry import Descriptor, Manifest

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
HELM_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
HELM_CHART: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
HELM_PROVENANCE: Final = "application/vnd.cncf.helm.chart.provenance.v1.prov"

PACKAGE_CONFIG: Final = "application/vnd.wharfinger.package.config.v1+json"
OCI_LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
IMAGE_LAYERS: Final = frozenset(
    {
        OCI_LAYER,
        "application/vnd.oci.image.layer.v1.tar",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "application/vnd.docker.image.rootfs.diff.tar",
    }
)

READABLE: Final = (OCI_MANIFEST, DOCKER_MANIFEST)
INDEXES: Final = (OCI_INDEX, DOCKER_LIST)

MAX_MANIFEST: Final = 4 * 1024 * 1024
"""The largest size of a manifest, in bytes; the distribution spec asks registries to accept manifests up to this size."""
MAX_LAYERS: Final = 1_000
MAX_ANNOTATIONS: Final = 1_000
MAX_BLOB: Final = 64 * 1024**3
"""The largest size that a descriptor may announce, in bytes; a descriptor with a larger size is broken, or is not part of a
package.
"""

_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}\Z")


def read_manifest(data: bytes, descriptor: Descriptor) -> Manifest:
    """Read a manifest.

    Raises DigestError if the bytes do not match the descriptor, ArtifactError if they are not a supported manifest.
    """
    what = f"manifest {descriptor.digest}"
    if len(data) > MAX_MANIFEST:
        raise ArtifactError(f"{what}: {len(data)} bytes is over the limit of {MAX_MANIFEST}")
    if len(data) != descriptor.size or digest_of(data) != descriptor.digest:
        raise DigestError(
            f"{what}: expected {descriptor.size} bytes with this digest, received {len(data)} bytes that do not match",
            transient=True,
        )
    try:
        return _read(as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="document"), "document"), descriptor)
    except (FormatError, DigestError, ArtifactError) as error:
        raise ArtifactError(f"{what}: {error}") from error


def manifest_media_type(data: bytes, content_type: str) -> str:
    """Return the media type of the bytes: their own ``mediaType`` first, then the Content-Type of the response.

    An OCI manifest in a folder may have neither; then its fields decide. Raises ArtifactError for bytes that are not a JSON
    object.
    """
    try:
        document = as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="manifest"), "manifest")
        own = find_str(document, "mediaType")
    except FormatError as error:
        raise ArtifactError(f"{error}; the registry did not answer with a manifest") from error
    return _media_type(own or content_type.partition(";")[0].strip() or _looks_like(document))


def read_descriptor(value: JsonValue, what: str) -> Descriptor:
    """Read a descriptor in a manifest, an index or a layout. ``what`` is its place in messages.

    Raises ShapeError, DigestError, ArtifactError.
    """
    entry = as_object(value, what)
    size = find(entry, "size")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MAX_BLOB:
        raise ArtifactError(f"{what}.size: expected a number of bytes from 0 to {MAX_BLOB}")
    return Descriptor(_media_type(need_str(entry, "mediaType")), Digest(need_str(entry, "digest")), size)


def write_manifest(config: Descriptor, layers: tuple[Descriptor, ...], annotations: dict[str, str]) -> bytes:
    """Return the bytes of an OCI image manifest: the same arguments give the same bytes."""
    document: JsonObject = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": _descriptor_json(config),
        "layers": [_descriptor_json(layer) for layer in layers],
        "annotations": {key: annotations[key] for key in sorted(annotations)},
    }
    return encode_json(document)


def is_chart(manifest: Manifest) -> bool:
    """Return whether this is the manifest of a Helm chart, as `helm push` makes it, and not of an image."""
    return manifest.config.media_type == HELM_CONFIG or any(one.media_type == HELM_CHART for one in manifest.layers)


def package_layers(manifest: Manifest) -> tuple[Descriptor, ...]:
    """Return the layers with the package: the layer with a chart's archive, or all layers of an image, the lowest first.

    Raises ArtifactError for other layers, or if there are none.
    """
    what = f"manifest {manifest.descriptor.digest}"
    if is_chart(manifest):
        charts = tuple(layer for layer in manifest.layers if layer.media_type == HELM_CHART)
        if len(charts) != 1:
            found = ", ".join(sorted({layer.media_type for layer in manifest.layers})[:5]) or "no layers"
            raise ArtifactError(
                f"{what}: expected one layer of type {HELM_CHART}, found {len(charts)} (it has: {found}); "
                "push it with `wharfinger package push` or `helm push`"
            )
        return charts
    if not manifest.layers:
        raise ArtifactError(f"{what}: an image without layers; push the package with `wharfinger package push`")
    for number, layer in enumerate(manifest.layers):
        if layer.media_type.endswith("+zstd"):
            raise ArtifactError(f"{what}: layer {number} is compressed with zstd; build the image with gzip layers")
        if layer.media_type not in IMAGE_LAYERS:
            raise ArtifactError(
                f"{what}: layer {number} is of type {layer.media_type}, neither a chart nor an image's layer; "
                "push the package with `wharfinger package push`"
            )
    return manifest.layers


def blobs_of(manifest: Manifest) -> tuple[Descriptor, ...]:
    """Return the descriptors of the configuration and of the layers, in this order. A digest that occurs several times is
    returned only once.
    """
    seen: dict[Digest, Descriptor] = {}
    for descriptor in (manifest.config, *manifest.layers):
        seen.setdefault(descriptor.digest, descriptor)
    return tuple(seen.values())


def manifest_fields(manifest: Manifest) -> JsonObject:
    """Return all fields of a manifest, to be stored; `manifest_from_fields` is the inverse."""
    return {
        "descriptor": _descriptor_json(manifest.descriptor),
        "artifactType": manifest.artifact_type,
        "config": _descriptor_json(manifest.config),
        "layers": [_descriptor_json(layer) for layer in manifest.layers],
        "annotations": dict(manifest.annotations),
    }


def manifest_from_fields(fields: JsonObject) -> Manifest:
    """Read a manifest from its stored fields. Raises FormatError, DigestError, or ArtifactError if they are not valid."""
    return _manifest(fields, read_descriptor(find(fields, "descriptor"), "descriptor"))


def _read(document: JsonObject, descriptor: Descriptor) -> Manifest:
    if find(document, "schemaVersion") != 2:
        raise ArtifactError("schemaVersion is not 2; push the package again with a current tool")
    media_type = find_str(document, "mediaType") or descriptor.media_type
    if media_type in INDEXES or ("manifests" in document and "layers" not in document):
        raise ArtifactError("expected one image, found an index; name the image by its digest")
    if media_type not in READABLE:
        raise ArtifactError(f"{media_type[:200]!r} is not a supported type of manifest")
    if descriptor.media_type not in {"", media_type}:
        raise ArtifactError(f"announced as {descriptor.media_type[:200]!r}, but it is {media_type!r}")
    return _manifest(document, Descriptor(media_type, descriptor.digest, descriptor.size))


def _manifest(document: JsonObject, descriptor: Descriptor) -> Manifest:
    layers = find_list(document, "layers")
    if len(layers) > MAX_LAYERS:
        raise ArtifactError(f"{len(layers)} layers; at most {MAX_LAYERS} are read")
    config = read_descriptor(find(document, "config"), "config")
    artifact_type = find_str(document, "artifactType")
    return Manifest(
        descriptor=descriptor,
        artifact_type=_media_type(artifact_type) if artifact_type else config.media_type,
        config=config,
        layers=tuple(read_descriptor(layer, f"layers.{index}") for index, layer in enumerate(layers)),
        annotations=_annotations(find_object(document, "annotations")),
    )


def _looks_like(document: JsonObject) -> str:
    return OCI_INDEX if "manifests" in document else OCI_MANIFEST if "layers" in document else ""


def _annotations(value: JsonObject) -> tuple[tuple[str, str], ...]:
    if len(value) > MAX_ANNOTATIONS:
        raise ArtifactError(f"annotations: {len(value)} entries; at most {MAX_ANNOTATIONS} are read")
    found: list[tuple[str, str]] = []
    for key in sorted(value):
        text = value[key]
        if not isinstance(text, str):
            raise ArtifactError(f"annotations: the value of {key[:100]!r} is not a string")
        found.append((key, text))
    return tuple(found)


def _media_type(text: str) -> str:
    if not _MEDIA_TYPE.match(text):
        raise ArtifactError(f"{text[:200]!r} is not a media type")
    return text


def _descriptor_json(descriptor: Descriptor) -> JsonObject:
    return {"mediaType": descriptor.media_type, "digest": descriptor.digest.text, "size": descriptor.size}
