"""Indexes: one name for several manifests, one of which is the package for this machine.

Programs that build images for several platforms, such as buildx, push an index even for a single image, because the index also
lists attestations. If there is only one image, it is chosen; otherwise the first image for Linux on this machine's architecture
is chosen (image-spec 1.1 §"Image Index"). A package's files are seldom bound to an architecture, so the architecture of a
single image does not matter.
"""

import platform
from collections.abc import Mapping
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find, find_list, find_str
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import ArtifactError, DigestError
from wharfinger.packages.registry.manifest import INDEXES, MAX_MANIFEST, read_descriptor
from wharfinger.packages.registry.registry import Descriptor

MAX_MANIFESTS: Final = 10_000
_ARCHITECTURES: Final[Mapping[str, str]] = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
    "armv6l": "arm",
    "i686": "386",
}
_ATTESTATION: Final = "vnd.docker.reference.type"


def is_index(media_type: str) -> bool:
    """Return whether a manifest of this type is an index."""
    return media_type in INDEXES


def running_architecture() -> str:
    """Return this machine's architecture by the name that images use (Go's): ``amd64``, ``arm64``, …"""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, machine)


def choose_manifest(data: bytes, descriptor: Descriptor, *, architecture: str = "") -> Descriptor:
    """Return the descriptor of an index's manifest for an architecture; "" means this machine's architecture.

    Raises DigestError if the bytes do not match the descriptor, ArtifactError if they are not an index or if no entry fits.
    """
    what = f"index {descriptor.digest}"
    if len(data) != descriptor.size or digest_of(data) != descriptor.digest:
        raise DigestError(f"{what}: the {len(data)} bytes received have another digest or size", transient=True)
    try:
        document = as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="document"), "document")
        return choose_entry(find_list(document, "manifests"), architecture=architecture)
    except (FormatError, DigestError, ArtifactError) as error:
        raise ArtifactError(f"{what}: {error}") from error


def choose_entry(listed: list[JsonValue], *, architecture: str = "") -> Descriptor:
    """Return the descriptor of the index entry for an architecture, chosen as in `choose_manifest`.

    Raises FormatError, DigestError, ArtifactError.
    """
    architecture = architecture or running_architecture()
    if len(listed) > MAX_MANIFESTS:
        raise ArtifactError(f"{len(listed)} manifests; at most {MAX_MANIFESTS} are read")
    entries = [as_object(entry, f"manifests.{number}") for number, entry in enumerate(listed)]
    images = [entry for entry in entries if not _is_attestation(entry)]
    fitting = images if len(images) == 1 else [entry for entry in images if _is_for(entry, architecture)]
    if not fitting:
        there = ", ".join(sorted({_platform(entry) for entry in images})[:5]) or "nothing"
        raise ArtifactError(
            f"no image for linux/{architecture}; the index has {there}; push an image for "
            f"linux/{architecture}, or name another image by its digest"
        )
    return read_descriptor(fitting[0], "manifests")


def referrers_tag(digest: Digest) -> str:
    """Return the tag that names the index of an artifact's referrers in registries without the referrers API (OCI 1.1)."""
    return f"sha256-{digest.hex}"


def read_referrers(data: bytes, what: str) -> tuple[tuple[str, Descriptor], ...]:
    """Return the manifests of an index of referrers, each with its artifact type. Raises ArtifactError."""
    try:
        document = as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="document"), "document")
        entries = [as_object(each, "manifests") for each in find_list(document, "manifests")[:MAX_MANIFESTS]]
        return tuple((find_str(each, "artifactType"), read_descriptor(each, "manifests")) for each in entries)
    except (FormatError, DigestError) as error:
        raise ArtifactError(f"{what}: {error}") from error


def _is_attestation(entry: JsonObject) -> bool:
    """Return whether an entry is an attestation, which buildx adds beside an image to describe its build."""
    return find(entry, "annotations", _ATTESTATION) is not None


def _is_for(entry: JsonObject, architecture: str) -> bool:
    return _platform(entry) == f"linux/{architecture}"


def _platform(entry: JsonObject) -> str:
    system = find_str(entry, "platform", "os", default="?")[:40]
    return f"{system}/{find_str(entry, 'platform', 'architecture', default='?')[:40]}"
