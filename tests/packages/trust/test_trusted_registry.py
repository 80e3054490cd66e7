"""Attacks on a registry for which a verification policy is configured. Nothing is stored, and the message names the artifact,
the key and the rule.

Each attack is tried on a layout on disk and on docker-registry, with the store that the daemon uses.
"""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.registry_contract import READ_CONTRACT, REPOSITORY, ReadCheck, push, push_index
from tests.packages.support.signing import KEY, OTHER, POLICY, sign
from tests.registry_server import open_registry_server
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import PackageError, RegistryError, TrustError
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_CONFIG, OCI_INDEX, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.registry import Descriptor, Registry, WritableRegistry
from wharfinger.packages.store.disk_store import open_store
from wharfinger.packages.trust.claims import Claim, write_claim
from wharfinger.packages.trust.keys import PublicKey, public_pem
from wharfinger.packages.trust.keys import sign as signed
from wharfinger.packages.trust.policy import Policy, TrustedKey
from wharfinger.packages.trust.signatures import (
    SIGNATURE,
    SIGNATURE_TYPE,
    SIMPLE_SIGNING,
    push_signature,
    signature_tag,
)
from wharfinger.packages.trust.trusted_registry import TrustedRegistry

OURS = str(PublicKey("spec.verify.keys[0]", public_pem(KEY)))


async def stated(registry: WritableRegistry, tag: str, version: str, layer: bytes = b"layer") -> Descriptor:
    """Push an artifact whose manifest states a version, as `helm push` does."""
    config = await registry.push_blob(REPOSITORY, HELM_CONFIG, b'{"name":"web"}')
    chart = await registry.push_blob(REPOSITORY, HELM_CHART, layer)
    manifest = write_manifest(config, (chart,), {"org.opencontainers.image.version": version})
    return await registry.push_manifest(REPOSITORY, tag, manifest, OCI_MANIFEST)


async def no_signature(registry: WritableRegistry, _root: Path) -> None:
    await push(registry, "1.0.0")


async def another_key(registry: WritableRegistry, _root: Path) -> None:
    pushed = await push(registry, "1.0.0")
    await sign(registry, REPOSITORY, pushed.digest, key=OTHER)


async def signature_of_another_artifact(registry: WritableRegistry, _root: Path) -> None:
    pushed, other = await push(registry, "1.0.0"), await push(registry, "0.9.0", b"old")
    payload = write_claim(Claim(other.digest, "", "1.0.0"))
    await push_signature(registry, REPOSITORY, pushed.digest, payload, signed(KEY, payload))


async def old_artifact_under_a_new_tag(registry: WritableRegistry, _root: Path) -> None:
    old = await push(registry, "0.9.0", b"old")
    await sign(registry, REPOSITORY, old.digest, "0.9.0")
    _, data = await registry.document(REPOSITORY, old.digest)
    await registry.push_manifest(REPOSITORY, "1.0.0", data, OCI_MANIFEST)


async def old_chart_under_a_new_tag(registry: WritableRegistry, _root: Path) -> None:
    old = await stated(registry, "1.0.0", "0.9.0")
    await sign(registry, REPOSITORY, old.digest, "")


async def artifact_of_another_package(registry: WritableRegistry, _root: Path) -> None:
    pushed = await push(registry, "1.0.0")
    payload = write_claim(Claim(pushed.digest, "registry.example/charts/shop", "1.0.0"))
    await push_signature(registry, REPOSITORY, pushed.digest, payload, signed(KEY, payload))


async def no_version(registry: WritableRegistry, _root: Path) -> None:
    pushed = await push(registry, "1.0.0")
    await sign(registry, REPOSITORY, pushed.digest, "")


async def tampered_payload(registry: WritableRegistry, _root: Path) -> None:
    pushed, other = await push(registry, "1.0.0"), await push(registry, "0.9.0", b"old")
    payload = write_claim(Claim(other.digest, "", "1.0.0"))
    changed = payload.replace(other.digest.hex.encode(), pushed.digest.hex.encode())
    await push_signature(registry, REPOSITORY, pushed.digest, changed, signed(KEY, payload))


async def tampered_index(registry: WritableRegistry, _root: Path) -> None:
    """Replace a signed index by an index of another image."""
    good, bad = await push(registry, "good"), await push(registry, "bad", b"bad")
    index = await push_index(registry, "1.0.0", entry(good))
    await sign(registry, REPOSITORY, index.digest)
    await push_index(registry, "1.0.0", entry(bad))


async def signatures_that_are_no_manifest(registry: WritableRegistry, _root: Path) -> None:
    pushed = await push(registry, "1.0.0")
    layer: JsonObject = {"mediaType": SIMPLE_SIGNING, "digest": "sha256:x", "size": -1}
    data = encode_json({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [], "layers": [layer]})
    await registry.push_manifest(REPOSITORY, signature_tag(pushed.digest), data, OCI_INDEX)


def entry(image: Descriptor) -> JsonObject:
    return {"mediaType": OCI_MANIFEST, "digest": image.digest.text, "size": image.size}


Attack = Callable[[WritableRegistry, Path], Awaitable[None]]
FOUND = "found 1 signature by other keys; sign the artifact with one of these keys, or add the signer's key to spec.verify.keys"
ATTACKS: list[tuple[Attack, str]] = [
    (
        no_signature,
        (
            "expected a signature, found none; sign the artifact with `wharfinger package push --sign KEY` or `cosign sign "
            "--key`, or remove spec.verify"
        ),
    ),
    (another_key, f"expected a signature by {OURS}, {FOUND}"),
    (tampered_payload, f"expected a signature by {OURS}, {FOUND}"),
    (
        signature_of_another_artifact,
        f"the signature by {OURS} is for OTHER, not for this artifact; sign this artifact",
    ),
    (
        old_artifact_under_a_new_tag,
        f"the signature by {OURS} is for version 0.9.0, but 1.0.0 was requested; push and sign the requested version",
    ),
    (
        old_chart_under_a_new_tag,
        f"the signature by {OURS} is for version 0.9.0, but 1.0.0 was requested; push and sign the requested version",
    ),
    (
        artifact_of_another_package,
        f"the signature by {OURS} is for the package 'shop', but 'web' was requested; push and sign the requested package",
    ),
    (
        no_version,
        (
            f"the artifact signed by {OURS} states no version, so an old version could be used instead of 1.0.0; push it with "
            "`wharfinger package push --sign KEY`, or set spec.verify.requireVersion: false"
        ),
    ),
    (
        tampered_index,
        (
            "expected a signature, found none; sign the artifact with `wharfinger package push --sign KEY` or `cosign sign "
            "--key`, or remove spec.verify"
        ),
    ),
    (
        signatures_that_are_no_manifest,
        (
            f"expected a signature by {OURS}, found 1 signature that cannot be read: the manifest of signatures cannot be read: "
            "layers.size: expected a number of bytes from 0 to 68719476736; sign the artifact again"
        ),
    ),
]


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[WritableRegistry]:
    if kind == "layout":
        yield OciLayout(folder / "layout")
        return
    async with open_registry_server(folder) as address, open_registry(address, scheme="http") as registry:
        yield registry


async def fetch(registry: Registry, root: Path, policy: Policy = POLICY, tag: str = "1.0.0") -> set[str]:
    """Fetch a package as the daemon does, and return the names of all files that the store then has."""
    trusted = TrustedRegistry(registry, policy, "registry.example")
    async with open_store(root) as store:
        try:
            descriptor = await trusted.resolve(REPOSITORY, tag)
            manifest = await trusted.manifest(REPOSITORY, descriptor.digest)
            await store.download(trusted, REPOSITORY, manifest)
        finally:
            found = {path.name for path in (root / "store").rglob("*") if path.is_file()} - {"lock"}
            (root / "found").write_text(" ".join(sorted(found)))
        return found


def stored(root: Path) -> str:
    return (root / "found").read_text()


@pytest.mark.parametrize(("attack", "rule"), ATTACKS, ids=[attack.__name__ for attack, _ in ATTACKS])
async def test_attacks_are_refused_and_store_nothing(attack: Attack, rule: str, tmp_path: Path) -> None:
    await attacked("layout", attack, rule, tmp_path)


@pytest.mark.sampled
@pytest.mark.parametrize(("attack", "rule"), ATTACKS[:-1], ids=[attack.__name__ for attack, _ in ATTACKS[:-1]])
async def test_attacks_on_a_registry_are_refused_and_store_nothing(attack: Attack, rule: str, tmp_path: Path) -> None:
    """The last attack of the list is omitted here, because docker-registry itself refuses its invalid manifest."""
    await attacked("registry", attack, rule, tmp_path)


async def attacked(kind: str, attack: Attack, rule: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as registry:
        await attack(registry, tmp_path)
        digest = (await registry.resolve(REPOSITORY, "1.0.0")).digest
        with pytest.raises(TrustError) as caught:
            await fetch(registry, tmp_path)
        if "OTHER" in rule:
            rule = rule.replace("OTHER", (await registry.resolve(REPOSITORY, "0.9.0")).digest.text)
    assert str(caught.value) == f"registry.example/{REPOSITORY}:1.0.0 ({digest}): not trusted: {rule}"
    assert caught.value.transient
    assert stored(tmp_path) == ""


REFUSED = {"check_unknown_names_are_not_found", "check_invalid_names_cannot_be_read"}
"""Checks of the contract that read blobs outside of all manifests, which a trusted registry refuses."""


@pytest.mark.parametrize("kind", ["layout", "registry"])
async def test_a_signed_package_is_fetched(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as registry:
        pushed = await push(registry, "1.0.0")
        await sign(registry, REPOSITORY, pushed.digest, key=OTHER)
        await sign(registry, REPOSITORY, pushed.digest, "1.0.0")  # The second signature does not replace the first.
        assert digest_of(b"layer").hex in await fetch(registry, tmp_path)


async def test_a_signed_index_covers_its_image(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path / "layout")
    index = await push_index(registry, "1.0.0", entry(await push(registry, "image")))
    await sign(registry, REPOSITORY, index.digest)
    assert digest_of(b"layer").hex in await fetch(registry, tmp_path)


async def test_a_missing_version_in_a_signature_is_read_from_the_manifest(tmp_path: Path) -> None:
    """`cosign sign` does not record a version, but the signed manifest states one."""
    registry = OciLayout(tmp_path / "layout")
    pushed = await stated(registry, "1.0.0_b1", "v1.0.0+b1")
    await sign(registry, REPOSITORY, pushed.digest, "")
    assert digest_of(b"layer").hex in await fetch(registry, tmp_path, tag="1.0.0_b1")


async def test_the_check_of_versions_can_be_disabled(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path / "layout")
    await no_version(registry, tmp_path)
    assert digest_of(b"layer").hex in await fetch(registry, tmp_path, replace(POLICY, require_version=False))


async def test_a_signature_by_one_of_several_keys_is_sufficient(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path / "layout")
    pushed = await push(registry, "1.0.0")
    await sign(registry, REPOSITORY, pushed.digest)
    policy = Policy((TrustedKey("spec.verify.keys[0]", public_pem(OTHER)), *POLICY.keys))
    assert await fetch(registry, tmp_path, policy)


async def test_a_signature_in_the_referrers_is_found(tmp_path: Path) -> None:
    """Since OCI 1.1, cosign pushes signatures as referrers, without a tag. They must be found as well."""
    registry = OciLayout(tmp_path / "layout")
    pushed = await push(registry, "1.0.0")
    payload = write_claim(Claim(pushed.digest, "", "1.0.0"))
    layer = await registry.push_blob(REPOSITORY, SIMPLE_SIGNING, payload)
    manifest: JsonObject = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "layers": [
            {
                "mediaType": SIMPLE_SIGNING,
                "digest": layer.digest.text,
                "size": layer.size,
                "annotations": {SIGNATURE: base64.b64encode(signed(KEY, payload)).decode()},
            }
        ],
        "subject": entry(pushed),
    }
    own = await registry.push_manifest(REPOSITORY, "", encode_json(manifest), OCI_MANIFEST)
    listed: JsonObject = {**entry(own), "artifactType": SIGNATURE_TYPE}
    await push_index(registry, f"sha256-{pushed.digest.hex}", listed)
    assert digest_of(b"layer").hex in await fetch(registry, tmp_path)


@pytest.mark.parametrize("kind", ["layout", "registry"])
async def test_a_tampered_layer_is_not_stored(kind: str, tmp_path: Path) -> None:
    """The layer is changed on the server's disk. Its manifest has a valid signature."""
    hexadecimal = digest_of(b"layer").hex
    async with opened(kind, tmp_path) as registry:
        pushed = await push(registry, "1.0.0")
        await sign(registry, REPOSITORY, pushed.digest)
        blob = tmp_path / "layout" / REPOSITORY / "blobs" / "sha256" / hexadecimal
        if kind == "registry":
            blob = tmp_path / "registry/docker/registry/v2/blobs/sha256" / hexadecimal[:2] / hexadecimal / "data"
        blob.write_bytes(b"lazer")
        with pytest.raises(PackageError) as caught:
            await fetch(registry, tmp_path)
    assert str(caught.value).endswith(f"/{REPOSITORY}@{digest_of(b'layer')}: the bytes received have another digest")
    assert hexadecimal not in stored(tmp_path)
    assert digest_of(b"lazer").hex not in stored(tmp_path)


async def test_blobs_outside_of_trusted_manifests_are_refused(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path / "layout")
    pushed = await push(registry, "1.0.0")
    trusted = TrustedRegistry(registry, POLICY, "registry.example")
    layer = (await registry.manifest(REPOSITORY, pushed.digest)).layers[0]
    with pytest.raises(TrustError, match="no trusted manifest names this blob"):
        async with trusted.blob(REPOSITORY, layer):
            raise AssertionError("must not open")
    with pytest.raises(TrustError, match="expected a signature, found none"):
        await trusted.manifest(REPOSITORY, pushed.digest)


async def test_an_error_while_reading_signatures_is_raised(tmp_path: Path) -> None:
    class Failing(OciLayout):
        async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
            raise RegistryError("the registry failed (503)", transient=True)

    await push(OciLayout(tmp_path / "layout"), "1.0.0")
    with pytest.raises(RegistryError, match="503"):
        await fetch(Failing(tmp_path / "layout"), tmp_path)
    assert stored(tmp_path) == ""


@pytest.mark.parametrize("check", [each for each in READ_CONTRACT if each.__name__ not in REFUSED])
async def test_a_trusted_registry_fulfils_the_contract(check: ReadCheck, tmp_path: Path) -> None:
    registry = OciLayout(tmp_path)
    pushed = await push(registry, "1.0.0")
    await sign(registry, REPOSITORY, pushed.digest)
    trusted = TrustedRegistry(_WithoutSignatures(registry), POLICY, "registry.example")
    await check(trusted)


class _WithoutSignatures(OciLayout):
    """A layout that does not list the tags of signatures."""

    def __init__(self, layout: OciLayout) -> None:
        super().__init__(layout._root)

    async def tags(self, repository: str) -> tuple[str, ...]:
        return tuple(tag for tag in await super().tags(repository) if not tag.endswith(".sig"))


async def test_an_artifact_requested_by_digest_must_have_the_expected_version(tmp_path: Path) -> None:
    """If a version range is configured, a package is requested by the digest that a scan of the tags has found. Before the
    scan, the tag may have been moved to an old package.
    """
    registry = OciLayout(tmp_path)
    old = await push(registry, "2.0.0")
    await sign(registry, REPOSITORY, old.digest, "1.0.0")
    for version, allowed in (("1.0.0", True), ("2.0.0", False), ("", True)):
        trusted = TrustedRegistry(registry, replace(POLICY, version=version), "registry.example")
        if allowed:
            assert (await trusted.manifest(REPOSITORY, old.digest)).descriptor == old
        else:
            with pytest.raises(TrustError, match=r"is for version 1\.0\.0, but 2\.0\.0 was requested"):
                await trusted.manifest(REPOSITORY, old.digest)


async def test_an_image_requested_by_digest_can_be_covered_by_a_signed_index(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path)
    image, other = await push(registry, "image"), await push(registry, "other", b"other")
    index = await push_index(registry, "1.0.0", entry(image))
    await sign(registry, REPOSITORY, index.digest)
    trusted = TrustedRegistry(registry, replace(POLICY, version="1.0.0"), "registry.example")
    assert (await trusted.manifest(REPOSITORY, image.digest)).descriptor == image
    with pytest.raises(TrustError, match="expected a signature, found none"):
        await trusted.manifest(REPOSITORY, other.digest)
    with pytest.raises(TrustError, match="expected a signature, found none"):
        await TrustedRegistry(registry, POLICY, "registry.example").manifest(REPOSITORY, image.digest)
