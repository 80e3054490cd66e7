"""The images that a package lists: in annotations of its chart, or by digest in ``images_digests.json``.

The value of the annotations ``artifacthub.io/images`` and ``images`` is a YAML list of objects with the field ``image``. An
image without a host is on Docker Hub. ``images_digests.json`` names images by digest in the repository of the package itself.
"""

import io
import tarfile
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find, find_object, find_str
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import AddressError, ArtifactError, DigestError
from wharfinger.packages.registry.address import PackageReference, parse_reference

ANNOTATIONS: Final = ("artifacthub.io/images", "images")
DIGESTS_FILE: Final = "images_digests.json"
MAX_ANNOTATION: Final = 1024 * 1024
MAX_IMAGES: Final = 1000
HUB: Final = "registry-1.docker.io"
_HUB_NAMES: Final = frozenset({"docker.io", "index.docker.io"})


def annotated_images(metadata: JsonObject, what: str) -> tuple[PackageReference, ...]:
    """Return the images that the metadata of a chart names. Raises ArtifactError."""
    found: dict[str, PackageReference] = {}
    annotations = find_object(metadata, "annotations")
    for key in ANNOTATIONS:
        text = find_str(annotations, key)
        if not text:
            continue
        try:
            limits = YamlLimits(MAX_ANNOTATION, max_nodes=100_000, max_characters=2 * MAX_ANNOTATION)
            listed = read_yaml(text.encode(), what=key, limits=limits)
            for name in _images(listed):
                found.setdefault(name, image_reference(name))
        except (FormatError, AddressError) as error:
            raise ArtifactError(f"{what}: annotation {key}: {error}; correct Chart.yaml, or use --no-images") from error
    if len(found) > MAX_IMAGES:
        raise ArtifactError(f"{what}: expected at most {MAX_IMAGES} images, found {len(found)}; use --no-images")
    return tuple(found.values())


def _images(listed: JsonValue) -> list[str]:
    entries = listed if isinstance(listed, list) else []
    names = [find(each, "image") for each in entries]
    return [name for name in names if isinstance(name, str) and name]


def image_reference(name: str) -> PackageReference:
    """Read an image as container runtimes do: without a host it is on Docker Hub, without a tag it has the tag ``latest``.

    Raises AddressError.
    """
    host, slash, path = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, path = HUB, name if slash else f"library/{name}"
    elif host in _HUB_NAMES:
        host, path = HUB, path if "/" in path else f"library/{path}"
    found = parse_reference(f"{host}/{path}")
    return found if found.tag or found.digest else PackageReference(found.repository, "latest")


def listed_digests(layer: bytes, what: str) -> tuple[Digest, ...]:
    """Return the digests in the file ``images_digests.json`` of a package's layer; () if there is no such file. Blocking.

    Raises ArtifactError.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(layer), mode="r:*") as archive:
            for member in archive:
                if member.name.removeprefix("./") == DIGESTS_FILE and member.isfile():
                    file = archive.extractfile(member)
                    data = file.read(MAX_ANNOTATION + 1) if file is not None else b""
                    listed = as_object(decode_json(data, max_bytes=MAX_ANNOTATION, what=DIGESTS_FILE), DIGESTS_FILE)
                    return tuple(sorted(set(_digests(listed))))
    except (tarfile.TarError, EOFError, OSError, FormatError, DigestError) as error:
        raise ArtifactError(f"{what}: {DIGESTS_FILE} cannot be read: {error}; push the package again") from error
    return ()


def _digests(value: JsonValue) -> list[Digest]:
    if isinstance(value, str):
        return [Digest(value)]
    if isinstance(value, dict):
        return [digest for each in value.values() for digest in _digests(each)]
    return []
