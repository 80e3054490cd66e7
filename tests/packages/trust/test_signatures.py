"""Signatures in a registry. Their number is limited. Signatures that cannot be read do not prevent the reading of others."""

from pathlib import Path

from tests.packages.support.registry_contract import REPOSITORY, push, push_index
from tests.packages.support.signing import KEY, OTHER
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json
from wharfinger.packages.registry.manifest import OCI_MANIFEST
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.registry import Descriptor
from wharfinger.packages.trust.claims import MAX_PAYLOAD, Claim
from wharfinger.packages.trust.keys import is_signed_by
from wharfinger.packages.trust.signatures import (
    MAX_SIGNATURES,
    SIGNATURE,
    SIGNATURE_TYPE,
    SIMPLE_SIGNING,
    find_signatures,
    push_signature,
    signature_tag,
)
from wharfinger.packages.trust.signer import Signer


def entry(image: Descriptor) -> JsonObject:
    return {"mediaType": OCI_MANIFEST, "digest": image.digest.text, "size": image.size}


async def test_signatures_are_added_and_replaced(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path)
    digest = (await push(registry, "1.0.0")).digest
    assert await find_signatures(registry, REPOSITORY, digest) == ()
    for payload, signature in ((b"one", b"a"), (b"two", b"b"), (b"one", b"c")):
        await push_signature(registry, REPOSITORY, digest, payload, signature)
    found = await find_signatures(registry, REPOSITORY, digest)
    assert [(each.payload, each.signature) for each in found] == [(b"two", b"b"), (b"one", b"c")]


async def test_a_signature_by_another_key_is_retained(tmp_path: Path) -> None:
    """While keys are rotated, artifacts are signed with the old and with the new key. Both signatures have the same payload."""
    registry = OciLayout(tmp_path)
    digest = (await push(registry, "1.0.0")).digest
    for key in (KEY, OTHER, KEY):
        await Signer(key).sign(registry, REPOSITORY, Claim(digest, "web", "1.0.0"))
    found = await find_signatures(registry, REPOSITORY, digest)
    signed = [[is_signed_by(key.public_key(), each.payload, each.signature) for key in (OTHER, KEY)] for each in found]
    assert signed == [[True, False], [False, True]]


async def test_the_number_of_signatures_is_bounded(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path)
    digest = (await push(registry, "1.0.0")).digest
    blob = await registry.push_blob(REPOSITORY, SIMPLE_SIGNING, b"payload")
    layer: JsonObject = {"mediaType": SIMPLE_SIGNING, "digest": blob.digest.text, "size": blob.size}
    two: list[JsonValue] = [{**layer, "annotations": {SIGNATURE: text}} for text in ("!", "YQ==")]
    data = encode_json({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": two * MAX_SIGNATURES})
    await registry.push_manifest(REPOSITORY, signature_tag(digest), data, OCI_MANIFEST)
    found = await find_signatures(registry, REPOSITORY, digest)
    assert len(found) == MAX_SIGNATURES
    assert [each.signature for each in found[:2]] == [b"", b"a"]


async def test_an_oversized_payload_does_not_hide_other_signatures(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path)
    digest = (await push(registry, "1.0.0")).digest
    await push_signature(registry, REPOSITORY, digest, b"x" * (MAX_PAYLOAD + 1), b"a")
    await push_signature(registry, REPOSITORY, digest, b"good", b"b")
    large, good = await find_signatures(registry, REPOSITORY, digest)
    assert large.problem.endswith("has 1048577 bytes; at most 1048576 are read")
    assert (good.payload, good.signature, good.problem) == (b"good", b"b", "")


async def test_an_unreadable_manifest_does_not_hide_other_signatures(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path)
    pushed = await push(registry, "1.0.0")
    await push_signature(registry, REPOSITORY, pushed.digest, b"good", b"b")
    broken: JsonObject = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "layers": [{"mediaType": SIMPLE_SIGNING, "digest": pushed.digest.text, "size": -1}],
        "subject": entry(pushed),
    }
    own = await registry.push_manifest(REPOSITORY, "", encode_json(broken), OCI_MANIFEST)
    await push_index(registry, f"sha256-{pushed.digest.hex}", {**entry(own), "artifactType": SIGNATURE_TYPE})
    good, other = await find_signatures(registry, REPOSITORY, pushed.digest)
    assert (good.payload, good.problem) == (b"good", "")
    assert other.problem.startswith("the manifest of signatures cannot be read")
