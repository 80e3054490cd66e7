"""The reading and writing of cosign's signatures of an artifact in its registry.

The signatures are in the repository of the artifact itself: in the manifest with the tag ``sha256-<hex>.sig`` and, since OCI
1.1, in manifests that refer to the artifact. Each layer of such a manifest is a payload, with the signature in an annotation,
or a Sigstore bundle. Signed statements in cosign's older format, without bundles, are in the manifest with the tag
``sha256-<hex>.att``. A repository may contain any number of signatures by anybody, so at most MAX_SIGNATURES of them are read,
and MAX_READ bytes in total.
"""

import base64
import binascii
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
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
from wharfinger.packages.trust.bundles import BUNDLE_TYPE, MAX_BUNDLE, read_bundle
from wharfinger.packages.trust.claims import MAX_PAYLOAD
from wharfinger.packages.trust.envelopes import ENVELOPE, MAX_ENVELOPE, read_envelope
from wharfinger.packages.trust.evidence import Signature
from wharfinger.packages.trust.log_entries import read_annotation

SIMPLE_SIGNING: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE_TYPE: Final = "application/vnd.dev.cosign.artifact.sig.v1+json"
SIGNATURE: Final = "dev.cosignproject.cosign/signature"
CERTIFICATE: Final = "dev.sigstore.cosign/certificate"
CHAIN: Final = "dev.sigstore.cosign/chain"
BUNDLE: Final = "dev.sigstore.cosign/bundle"
MAX_SIGNATURES: Final = 50
MAX_ANNOTATION: Final = 256 * 1024
MAX_READ: Final = 64 * 1024 * 1024
"""The largest size of all signatures of one artifact together, in bytes."""
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"


def signature_tag(digest: Digest) -> str:
    """Return the tag under which a repository has the signatures of an artifact."""
    return f"sha256-{digest.hex}.sig"


def statements_tag(digest: Digest) -> str:
    """Return the tag under which a repository has the signed statements about an artifact, except those in bundles."""
    return f"sha256-{digest.hex}.att"


async def find_signatures(
    registry: Registry, repository: str, digest: Digest, *, statements: bool = False
) -> tuple[Signature, ...]:
    """Return the signatures of an artifact; () if it has none. Raises PackageError if they cannot be read.

    Signed statements that are not in bundles are read only with ``statements``. Statements in bundles are always read.
    """
    found: list[Signature] = []
    room = MAX_READ
    for data in await _manifests(registry, repository, digest, statements=statements):
        try:
            layers = _layers(data)
        except ArtifactError as error:  # anybody can push a broken manifest, which must not hide the other signatures
            layers = []
            found.append(Signature(b"", b"", problem=str(error)))
        for layer, annotations in layers:
            if len(found) >= MAX_SIGNATURES:
                return tuple(found)
            most = {SIMPLE_SIGNING: MAX_PAYLOAD, ENVELOPE: MAX_ENVELOPE}.get(layer.media_type, MAX_BUNDLE)
            if layer.size > most:
                why = f"the signed payload {layer.digest} has {layer.size} bytes; at most {most} are read"
                found.append(Signature(b"", b"", problem=why))
                continue
            room -= layer.size
            if room < 0:
                return tuple(found)
            found.append(_read(await _payload(registry, repository, layer), layer.media_type, annotations))
    return tuple(found)


async def _manifests(registry: Registry, repository: str, digest: Digest, *, statements: bool) -> list[bytes]:
    found: list[bytes] = []
    for tag in (signature_tag(digest), *((statements_tag(digest),) if statements else ())):
        with suppress(ArtifactNotFoundError):
            found.append((await registry.document(repository, tag))[1])
    listed = [
        each
        for kind, each in await registry.referrers(repository, digest)
        if kind == SIGNATURE_TYPE or BUNDLE_TYPE.match(kind)
    ]
    found += [(await registry.document(repository, each.digest))[1] for each in listed[:MAX_SIGNATURES]]
    return found


def _layers(data: bytes) -> list[tuple[Descriptor, JsonObject]]:
    """Return the descriptor and the annotations of each layer of a manifest that contains a signature. Raises ArtifactError."""
    try:
        document = as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="signatures"), "signatures")
        layers = [as_object(each, "layers") for each in find_list(document, "layers")]
        return [
            (read_descriptor(layer, "layers"), find_object(layer, "annotations"))
            for layer in layers[:MAX_SIGNATURES]
            if (kind := find(layer, "mediaType")) in (SIMPLE_SIGNING, ENVELOPE)
            or (isinstance(kind, str) and BUNDLE_TYPE.match(kind))
        ]
    except (FormatError, DigestError, ArtifactError) as error:
        raise ArtifactError(f"the manifest of signatures cannot be read: {error}") from error


async def _payload(registry: Registry, repository: str, layer: Descriptor) -> bytes:
    async with registry.blob(repository, layer) as chunks:
        return b"".join([chunk async for chunk in chunks])


def _read(data: bytes, media_type: str, annotations: JsonObject) -> Signature:
    """Return the signature in the content of a layer. If it cannot be read, set ``problem`` and raise no error: anybody can push
    an unreadable signature, and it must not hide others.
    """
    try:
        if media_type == SIMPLE_SIGNING:
            return _signature(data, annotations)
        if media_type == ENVELOPE:
            return _statement(data, annotations)
        return read_bundle(data)
    except (ArtifactError, FormatError) as error:
        return Signature(b"", b"", problem=str(error))


def _signature(payload: bytes, annotations: JsonObject) -> Signature:
    try:
        signature = base64.b64decode(find_str(annotations, SIGNATURE)[:MAX_ANNOTATION], validate=True)
    except (FormatError, binascii.Error, ValueError):
        return Signature(payload, b"")  # an empty signature, which is valid for no key
    return _certified(Signature(payload, signature), annotations)


def _statement(data: bytes, annotations: JsonObject) -> Signature:
    envelope = read_envelope(decode_json(data, max_bytes=MAX_ENVELOPE, what="envelope"))
    if len(envelope.signatures) != 1:
        raise ArtifactError(f"the envelope has {len(envelope.signatures)} signatures; expected one signature")
    signature = Signature(envelope.signed, envelope.signatures[0], envelope=envelope, document=data)
    return _certified(signature, annotations)


def _certified(signature: Signature, annotations: JsonObject) -> Signature:
    """Return a signature with the certificate and the log entry from its annotations."""
    certificate, chain, entry = (
        find_str(annotations, key)[: MAX_ANNOTATION + 1] for key in (CERTIFICATE, CHAIN, BUNDLE)
    )
    if max(map(len, (certificate, chain, entry))) > MAX_ANNOTATION:
        raise ArtifactError(f"an annotation of the signature has more than {MAX_ANNOTATION} characters")
    found = read_annotation(entry) if entry else None
    return replace(signature, certificate=certificate, chain=chain, entry=found)


async def push_signature(
    registry: WritableRegistry,
    repository: str,
    digest: Digest,
    payload: bytes,
    signature: bytes,
    is_own: Callable[[bytes], bool] = lambda _signature: True,
) -> Descriptor:
    """Add a signature to those of an artifact. Raises PackageError.

    The new signature replaces the earlier ones of the same payload for which ``is_own`` returns True; by default, all of them.
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
