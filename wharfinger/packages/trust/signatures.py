"""cosign's signatures of an artifact in its registry: where they are, and how they are read and written.

They are in the repository of the artifact itself: the manifest with the tag ``sha256-<hex>.sig`` and, since OCI 1.1, manifests
that refer to the artifact. Each layer of such a manifest is a payload, with the signature in an annotation. A repository may
contain any number of signatures by anybody, so at most MAX_SIGNATURES are read.
"""

import base64
import binascii
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    as_object,
    decode_json,
    encode_json,
    find,
    find_list,
    find_object,
    find_str,
)
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError
from wharfinger.packages.registry.manifest import MAX_MANIFEST, OCI_MANIFEST, read_descriptor
from wharfinger.packages.registry.registry import Descriptor, Registry, WritableRegistry
from wharfinger.packages.trust.claims import MAX_PAYLOAD

SIMPLE_SIGNING: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE_TYPE: Final = "application/vnd.dev.cosign.artifact.sig.v1+json"
SIGNATURE: Final = "dev.cosignproject.cosign/signature"
CERTIFICATE: Final = "dev.sigstore.cosign/certificate"
CHAIN: Final = "dev.sigstore.cosign/chain"
BUNDLE: Final = "dev.sigstore.cosign/bundle"
MAX_SIGNATURES: Final = 50
MAX_ANNOTATION: Final = 256 * 1024
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"


@dataclass(frozen=True, slots=True)
class Signature:
    """A payload and its signature, with the certificate of a signer without a key of their own, if there is one."""

    payload: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    certificate: str = field(default="", repr=False)
    chain: str = field(default="", repr=False)
    bundle: str = field(default="", repr=False)
    """The entry of the transparency log, in JSON."""


def signature_tag(digest: Digest) -> str:
    """Return the tag of the signatures of an artifact."""
    return f"sha256-{digest.hex}.sig"


async def find_signatures(registry: Registry, repository: str, digest: Digest) -> tuple[Signature, ...]:
    """Return the signatures of an artifact; () if it has none. Raises PackageError if they cannot be read."""
    found: list[Signature] = []
    for data in await _manifests(registry, repository, digest):
        for layer, annotations in _layers(data):
            if len(found) >= MAX_SIGNATURES:
                return tuple(found)
            payload = await _payload(registry, repository, layer)
            found.append(_signature(payload, annotations))
    return tuple(found)


async def _manifests(registry: Registry, repository: str, digest: Digest) -> list[bytes]:
    found: list[bytes] = []
    with suppress(ArtifactNotFoundError):
        found.append((await registry.document(repository, signature_tag(digest)))[1])
    listed = [each for kind, each in await registry.referrers(repository, digest) if kind == SIGNATURE_TYPE]
    found += [(await registry.document(repository, each.digest))[1] for each in listed[:MAX_SIGNATURES]]
    return found


def _layers(data: bytes) -> list[tuple[Descriptor, JsonObject]]:
    """Return the payloads of a manifest with their annotations. Raises ArtifactError."""
    try:
        document = as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="signatures"), "signatures")
        layers = [as_object(each, "layers") for each in find_list(document, "layers")]
        return [
            (read_descriptor(layer, "layers"), find_object(layer, "annotations"))
            for layer in layers[:MAX_SIGNATURES]
            if find(layer, "mediaType") == SIMPLE_SIGNING
        ]
    except (FormatError, DigestError, ArtifactError) as error:
        raise ArtifactError(f"the manifest of signatures cannot be read: {error}") from error


async def _payload(registry: Registry, repository: str, layer: Descriptor) -> bytes:
    if layer.size > MAX_PAYLOAD:
        raise ArtifactError(f"the signed payload {layer.digest} has {layer.size} bytes; at most {MAX_PAYLOAD} are read")
    async with registry.blob(repository, layer) as chunks:
        return b"".join([chunk async for chunk in chunks])


def _signature(payload: bytes, annotations: JsonObject) -> Signature:
    try:
        texts = {key: find_str(annotations, key)[:MAX_ANNOTATION] for key in (SIGNATURE, CERTIFICATE, CHAIN, BUNDLE)}
        signature = base64.b64decode(texts[SIGNATURE], validate=True)
    except (FormatError, binascii.Error, ValueError):
        return Signature(payload, b"")  # it verifies with no key
    return Signature(payload, signature, texts[CERTIFICATE], texts[CHAIN], texts[BUNDLE])


async def push_signature(
    registry: WritableRegistry,
    repository: str,
    digest: Digest,
    payload: bytes,
    signature: bytes,
    is_own: Callable[[bytes], bool] = lambda _signature: True,
) -> Descriptor:
    """Add a signature to those of an artifact. Raises PackageError.

    Signatures of the same payload for which ``is_own`` is true are replaced; by default all of them.
    """
    layer = await registry.push_blob(repository, SIMPLE_SIGNING, payload)
    others: list[JsonObject] = []
    try:
        _, data = await registry.document(repository, signature_tag(digest))
        document = as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="signatures"), "signatures")
        kept = [as_object(each, "layers") for each in find_list(document, "layers")]
        others = [
            each
            for each in kept
            if find(each, "digest") != layer.digest.text
            or not is_own(_signature(payload, find_object(each, "annotations")).signature)
        ]
    except ArtifactNotFoundError:
        pass
    except FormatError as error:
        raise ArtifactError(f"the manifest of signatures cannot be read: {error}; delete it, and sign again") from error
    own: JsonObject = {
        "mediaType": SIMPLE_SIGNING,
        "digest": layer.digest.text,
        "size": layer.size,
        "annotations": {SIGNATURE: base64.b64encode(signature).decode()},
    }
    layers = [*others, own]
    diffs = [find_str(each, "digest") for each in layers]
    config: JsonObject = {
        "architecture": "",
        "os": "",
        "rootfs": {"type": "layers", "diff_ids": [*diffs]},
        "config": {},
    }
    described = await registry.push_blob(repository, _CONFIG, encode_json(config))
    manifest: JsonObject = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": _CONFIG, "digest": described.digest.text, "size": described.size},
        "layers": [*layers],
    }
    return await registry.push_manifest(repository, signature_tag(digest), encode_json(manifest), OCI_MANIFEST)
