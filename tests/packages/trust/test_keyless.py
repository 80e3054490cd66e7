"""Keyless signatures: signatures that are trusted, and attacks, which must be refused with a certain message. After an attack,
nothing may be in the store.

The authority and the log are simulated (:mod:`tests.packages.support.sigstore`), so no test needs a network.
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.packages.support.registry_contract import REPOSITORY, push_index
from tests.packages.support.sigstore import (
    AUTHORITY,
    BUNDLE,
    CERTIFICATE_LOG,
    GOOD,
    ISSUER,
    KEYLESS,
    NOW,
    OTHER_LOG,
    PROVENANCE,
    ROOT,
    SIGNER,
    STRANGER,
    SUBJECT,
    Authority,
    Made,
    certificate_builder,
    claim,
    statement,
)
from tests.packages.trust.test_trusted_registry import entry, fetch, stated, stored
from wharfinger.formats.json.value import JsonObject, encode_json, find, find_object
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import TrustError
from wharfinger.packages.registry.manifest import OCI_MANIFEST
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.registry import WritableRegistry
from wharfinger.packages.trust.certificates import log_id
from wharfinger.packages.trust.envelopes import ENVELOPE
from wharfinger.packages.trust.keys import public_pem
from wharfinger.packages.trust.policy import Policy, TrustedKey
from wharfinger.packages.trust.signatures import SIMPLE_SIGNING, signature_tag, statements_tag

CERTIFICATE, CHAIN, LOGGED = (f"dev.sigstore.cosign/{each}" for each in ("certificate", "chain", "bundle"))
SIGNATURE = "dev.cosignproject.cosign/signature"


async def push_annotated(
    registry: WritableRegistry, digest: Digest, payload: bytes, annotations: JsonObject, tag: str = "", kind: str = ""
) -> None:
    """Push a signature in cosign's older format, in which the signature and its certificate are annotations."""
    layer = await registry.push_blob(REPOSITORY, kind or SIMPLE_SIGNING, payload)
    described: JsonObject = {
        "mediaType": kind or SIMPLE_SIGNING,
        "digest": layer.digest.text,
        "size": layer.size,
        "annotations": annotations,
    }
    data = encode_json({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": [described]})
    await registry.push_manifest(REPOSITORY, tag or signature_tag(digest), data, OCI_MANIFEST)


async def push_bundles(registry: WritableRegistry, digest: Digest, *bundles: JsonObject | bytes) -> None:
    """Push bundles that refer to an artifact."""
    listed: list[JsonObject] = []
    for bundle in bundles:
        data = bundle if isinstance(bundle, bytes) else encode_json(bundle)
        layer = await registry.push_blob(REPOSITORY, BUNDLE, data)
        manifest: JsonObject = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "artifactType": BUNDLE,
            "layers": [{"mediaType": BUNDLE, "digest": layer.digest.text, "size": layer.size}],
        }
        own = await registry.push_manifest(REPOSITORY, "", encode_json(manifest), OCI_MANIFEST)
        listed.append({**entry(own), "artifactType": BUNDLE})
    await push_index(registry, f"sha256-{digest.hex}", *listed)


async def artifact(registry: WritableRegistry, version: str = "1.0.0") -> Digest:
    return (await stated(registry, "1.0.0", version)).digest


# --- trusted ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        GOOD,
        GOOD.but(issuer_oid="1.3.6.1.4.1.57264.1.1"),
        GOOD.but(names=[x509.RFC822Name("https://git.example/team/by-mail")]),
        GOOD.but(issuer=ISSUER, others_before=0),
        GOOD.but(others_before=12),
    ],
    ids=["like Fulcio", "the older extension", "an e-mail address", "first in the log", "late in the log"],
)
async def test_keyless_signatures_are_trusted(made: Made, tmp_path: Path) -> None:
    """A signature can be stored in two formats, as annotations (the older format) and as a bundle. Both are trusted."""
    for form in ("annotations", "bundle"):
        registry = OciLayout(tmp_path / form / "layout")
        digest = await artifact(registry)
        if form == "bundle":
            await push_bundles(registry, digest, b"{}", made.bundle(statement(digest)))
        else:
            payload = claim(digest)
            await push_annotated(registry, digest, payload, made.annotations(payload))
        assert digest_of(b"layer").hex in await fetch(registry, tmp_path / form, KEYLESS)


async def test_certificates_in_a_certificate_log_are_trusted(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path / "layout")
    digest = await artifact(registry)
    await push_bundles(registry, digest, GOOD.but(certificate_log=CERTIFICATE_LOG).bundle(statement(digest)))
    assert digest_of(b"layer").hex in await fetch(registry, tmp_path, LOGGED_ONLY)


async def test_a_required_statement_counts_as_a_signature(tmp_path: Path) -> None:
    policy = replace(KEYLESS, predicates=(PROVENANCE,))
    for form in ("bundle", "annotations"):
        registry = OciLayout(tmp_path / form / "layout")
        digest = await artifact(registry)
        if form == "bundle":
            await push_bundles(registry, digest, GOOD.bundle(statement(digest, PROVENANCE)))
        else:
            data, annotations = annotated_statement(statement(digest, PROVENANCE))
            await push_annotated(registry, digest, data, annotations, statements_tag(digest), ENVELOPE)
        assert digest_of(b"layer").hex in await fetch(registry, tmp_path / form, policy)


def annotated_statement(payload: bytes) -> tuple[bytes, JsonObject]:
    """Return a statement in the older format: the envelope, and its annotations."""
    bundle = GOOD.bundle(payload)
    data = encode_json(find_object(bundle, "dsseEnvelope"))
    logged = find_object(find(bundle, "verificationMaterial", "tlogEntries", 0))
    stated_entry: JsonObject = {
        "SignedEntryTimestamp": find(logged, "inclusionPromise", "signedEntryTimestamp"),
        "Payload": {
            "body": logged["canonicalizedBody"],
            "integratedTime": int(str(logged["integratedTime"])),
            "logIndex": int(str(logged["logIndex"])),
            "logID": base64.b64decode(str(find(logged, "logId", "keyId"))).hex(),
        },
    }
    annotations = {**GOOD.annotations(payload), SIGNATURE: "", LOGGED: encode_json(stated_entry).decode()}
    return data, annotations


# --- attacks ---------------------------------------------------------------------------------------------------------------

LOGGED_ONLY = replace(
    KEYLESS,
    root=replace(
        ROOT,
        certificate_log_keys=(TrustedKey("spec.verify.keyless.certificateLogKeys[0]", public_pem(CERTIFICATE_LOG)),),
    ),
)
EXPECTED = f"expected a signature by https://git.example/team/* (issuer {ISSUER})"
AGAIN = "sign the artifact again, or correct spec.verify.keyless"
LOG_NAME = log_id(OTHER_LOG.public_key()).hex()[:16]
NOT_LOGGED = f"the entry is not in the transparency log: its proof of inclusion does not verify; {AGAIN}"
NOT_ISSUED = "the certificate is not issued by an authority of spec.verify: "
Attack = Callable[[WritableRegistry, Digest], Awaitable[None]]


def annotated(made: Made, **changes: str) -> Attack:
    async def attack(registry: WritableRegistry, digest: Digest) -> None:
        payload = claim(digest)
        annotations = {
            **made.annotations(payload),
            **{f"dev.sigstore.cosign/{key}": text for key, text in changes.items()},
        }
        await push_annotated(registry, digest, payload, annotations)

    return attack


def bundled(made: Made, change: Callable[[JsonObject], None] = lambda _: None, kind: str = "") -> Attack:
    async def attack(registry: WritableRegistry, digest: Digest) -> None:
        bundle = made.bundle(statement(digest, kind) if kind else statement(digest))
        change(bundle)
        await push_bundles(registry, digest, bundle)

    return attack


async def signature_by_a_key(registry: WritableRegistry, digest: Digest) -> None:
    payload = claim(digest)
    await push_annotated(registry, digest, payload, {SIGNATURE: GOOD.annotations(payload)[SIGNATURE]})


async def content_that_was_not_signed(registry: WritableRegistry, digest: Digest) -> None:
    other = digest_of(b"other")
    await push_annotated(registry, digest, claim(digest), GOOD.annotations(claim(other)))


async def entry_of_another_signature(registry: WritableRegistry, digest: Digest) -> None:
    """Push a signature with a certificate that has expired, and with the log entry of an earlier signature. At the time in this
    entry, the certificate was valid.
    """
    payload = claim(digest)
    earlier = GOOD.annotations(claim(digest_of(b"earlier")))
    await push_annotated(registry, digest, payload, {**GOOD.annotations(payload), LOGGED: earlier[LOGGED]})


async def signature_of_another_artifact(registry: WritableRegistry, digest: Digest) -> None:
    await push_bundles(registry, digest, GOOD.bundle(statement(digest_of(b"other"))))


async def certificate_by_a_signer(registry: WritableRegistry, digest: Digest) -> None:
    """Let a signer issue a certificate for another name with its own certificate, which is valid but does not belong to an
    authority.
    """
    await annotated(GOOD.but(authority=_SignersAuthority(SIGNER, "signer.example")))(registry, digest)


class _SignersAuthority(Authority):
    """An authority that uses a signer's certificate as its own. The trusted authority has issued this certificate."""

    @property
    def between_key(self) -> ec.EllipticCurvePrivateKey:
        return self.key

    @cached_property
    def between(self) -> x509.Certificate:
        begin, by = NOW - timedelta(minutes=1), f"signing.{AUTHORITY.name}"
        builder = certificate_builder(f"signing.{self.name}", by, self.key, begin, begin + timedelta(hours=1))
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING])
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(SUBJECT)])
        builder = builder.add_extension(usage, critical=False).add_extension(names, critical=True)
        return builder.sign(AUTHORITY.between_key, hashes.SHA256())


def _entry(bundle: JsonObject) -> JsonObject:
    return find_object(find(bundle, "verificationMaterial", "tlogEntries", 0))


def time_changed(bundle: JsonObject) -> None:
    _entry(bundle)["integratedTime"] = str(int(NOW.timestamp()) + 1)


def no_promise(bundle: JsonObject) -> None:
    del _entry(bundle)["inclusionPromise"]


def no_entry(bundle: JsonObject) -> None:
    find_object(bundle, "verificationMaterial")["tlogEntries"] = []


def other_hash(bundle: JsonObject) -> None:
    find_object(_entry(bundle), "inclusionProof")["hashes"] = [base64.b64encode(b"x" * 32).decode()] * 2


def checkpoint_of_another_log(bundle: JsonObject) -> None:
    proof = find_object(_entry(bundle), "inclusionProof")
    root = base64.b64decode(str(proof["rootHash"]))
    proof["checkpoint"] = {"envelope": GOOD.but(log=OTHER_LOG).checkpoint(int(str(proof["treeSize"])), root)}


def root_that_no_log_signed(bundle: JsonObject) -> None:
    find_object(_entry(bundle), "inclusionProof")["checkpoint"] = {"envelope": GOOD.checkpoint(5, b"r" * 32)}


def statement_changed(bundle: JsonObject) -> None:
    envelope = find_object(bundle, "dsseEnvelope")
    text = base64.b64decode(str(envelope["payload"])).replace(b'"name":"web"', b'"name":"bad"')
    envelope["payload"] = base64.b64encode(text).decode()


def newer_bundle(bundle: JsonObject) -> None:
    bundle["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.9+json"


def signature_of_bytes(bundle: JsonObject) -> None:
    del bundle["dsseEnvelope"]


UNUSABLE = f"{EXPECTED}, found 1 signature that cannot be read: "
FORGED = Authority(ec.derive_private_key(61, ec.SECP256R1()))
"""An authority that has the name of the trusted one, and another key."""
CASES: list[tuple[str, Attack, Policy, str]] = [
    (
        "a key",
        signature_by_a_key,
        KEYLESS,
        f"{EXPECTED}, found 1 signature by other keys; sign the artifact as one of these",
    ),
    (
        "another identity",
        annotated(GOOD.but(subject="https://git.example/else/web")),
        KEYLESS,
        (
            f"{EXPECTED}, found one by https://git.example/else/web (issuer {ISSUER}); sign the artifact as one of these, or add "
            "the signer to spec.verify.keyless.identities"
        ),
    ),
    (
        "another issuer",
        bundled(GOOD.but(issuer="https://login.example")),
        KEYLESS,
        (
            f"{EXPECTED}, found one by {SUBJECT} (issuer https://login.example); sign the artifact as one of these, or add "
            "the signer to spec.verify.keyless.identities"
        ),
    ),
    (
        "an expired certificate",
        annotated(GOOD.but(signed_at=NOW + timedelta(hours=1))),
        KEYLESS,
        (
            "the certificate was not valid when it was used, at 2026-01-02 04:04:05 UTC; it was valid from "
            "2026-01-02 03:03:05+00:00 to 2026-01-02 03:13:05+00:00: "
        ),
    ),
    (
        "a certificate that is not valid yet",
        bundled(GOOD.but(signed_at=NOW - timedelta(hours=1))),
        KEYLESS,
        "the certificate was not valid when it was used, at 2026-01-02 02:04:05 UTC; it was valid from ",
    ),
    ("a foreign root", annotated(GOOD.but(authority=STRANGER)), KEYLESS, NOT_ISSUED),
    ("a forged root", bundled(GOOD.but(authority=FORGED)), KEYLESS, NOT_ISSUED),
    ("a certificate by a signer", certificate_by_a_signer, KEYLESS, NOT_ISSUED),
    (
        "a certificate for a server",
        annotated(GOOD.but(usage=ExtendedKeyUsageOID.SERVER_AUTH)),
        KEYLESS,
        NOT_ISSUED,
    ),
    (
        "two names",
        annotated(GOOD.but(names=[x509.RFC822Name("a@example"), x509.UniformResourceIdentifier(SUBJECT)])),
        KEYLESS,
        f"the certificate names 2 signers and the issuer '{ISSUER}'; expected one of each; {AGAIN}",
    ),
    (
        "another log",
        bundled(GOOD.but(log=OTHER_LOG)),
        KEYLESS,
        f"the signature is in the log {LOG_NAME}, which is not a log of spec.verify; {AGAIN}",
    ),
    (
        "no entry",
        bundled(GOOD, no_entry),
        KEYLESS,
        f"the signature has no entry of a transparency log, so its time is not known; {AGAIN}",
    ),
    (
        "no signed entry timestamp",
        bundled(GOOD, no_promise),
        KEYLESS,
        (
            "the log has not signed the time of the signature, so the signature may have been made after the certificate "
            f"expired; {AGAIN}"
        ),
    ),
    (
        "another time",
        bundled(GOOD, time_changed),
        KEYLESS,
        f"the signed timestamp of the transparency log does not verify: the entry or its time was changed; {AGAIN}",
    ),
    (
        "another proof",
        bundled(GOOD, other_hash),
        KEYLESS,
        NOT_LOGGED,
    ),
    (
        "a checkpoint of another log",
        bundled(GOOD, checkpoint_of_another_log),
        KEYLESS,
        NOT_LOGGED,
    ),
    (
        "another root of the log",
        bundled(GOOD, root_that_no_log_signed),
        KEYLESS,
        NOT_LOGGED,
    ),
    (
        "a changed statement",
        bundled(GOOD, statement_changed),
        KEYLESS,
        f"the signature was not made with the key of its certificate: the signature or the signed content was changed; {AGAIN}",
    ),
    (
        "changed content",
        content_that_was_not_signed,
        KEYLESS,
        f"the signature was not made with the key of its certificate: the signature or the signed content was changed; {AGAIN}",
    ),
    (
        "the entry of another signature",
        entry_of_another_signature,
        KEYLESS,
        f"the entry of the transparency log is about another signature; {AGAIN}",
    ),
    (
        "a replayed signature",
        signature_of_another_artifact,
        KEYLESS,
        f"the signature by {SUBJECT} (issuer {ISSUER}) is for {digest_of(b'other')}, not for this artifact; sign this artifact",
    ),
    (
        "a certificate in no log",
        bundled(GOOD),
        LOGGED_ONLY,
        f"spec.verify requires a proof by a certificate log, but the certificate has none; {AGAIN}",
    ),
    (
        "a certificate in another log",
        bundled(GOOD.but(certificate_log=ec.derive_private_key(99, ec.SECP256R1()))),
        LOGGED_ONLY,
        f"the certificate is not in a certificate log of spec.verify; {AGAIN}",
    ),
    (
        "a statement of another type",
        bundled(GOOD, kind=PROVENANCE),
        KEYLESS,
        (
            f"the statement by {SUBJECT} (issuer {ISSUER}) is of the type '{PROVENANCE}', which does not count as a signature; "
            "sign the artifact"
        ),
    ),
    (
        "no statement of a required type",
        bundled(GOOD),
        replace(KEYLESS, predicates=(PROVENANCE,)),
        (
            f"expected a signed statement of the type {PROVENANCE}, found none; make one with `cosign attest`, or correct "
            "spec.verify.attestations"
        ),
    ),
    (
        "a bundle of another version",
        bundled(GOOD, newer_bundle),
        KEYLESS,
        (
            f"{UNUSABLE}the bundle is of the type 'application/vnd.dev.sigstore.bundle.v0.9+json'; versions 0.1 to 0.3 are read; "
            "sign the artifact again"
        ),
    ),
    (
        "a bundle without a statement",
        bundled(GOOD, signature_of_bytes),
        KEYLESS,
        (
            f"{UNUSABLE}the bundle signs plain bytes (messageSignature); expected a signed statement "
            "(dsseEnvelope); sign the artifact again"
        ),
    ),
    (
        "an entry that is not JSON",
        annotated(GOOD, bundle="{"),
        KEYLESS,
        f"{UNUSABLE}the entry of the transparency log cannot be read: ",
    ),
    (
        "an unreadable certificate",
        annotated(GOOD, certificate="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
        KEYLESS,
        f"the certificate of the signature cannot be read: expected certificates in PEM text; {AGAIN}",
    ),
]


@pytest.mark.parametrize(("attack", "policy", "rule"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_attacks_are_refused_and_store_nothing(attack: Attack, policy: Policy, rule: str, tmp_path: Path) -> None:
    registry = OciLayout(tmp_path / "layout")
    digest = await artifact(registry)
    await attack(registry, digest)
    with pytest.raises(TrustError) as caught:
        await fetch(registry, tmp_path, policy)
    prefix = f"registry.example/{REPOSITORY}:1.0.0 ({digest}): not trusted: "
    assert str(caught.value).startswith(prefix)
    said = str(caught.value).removeprefix(prefix)
    assert said.startswith(rule) if rule.endswith(" ") else said == rule
    assert stored(tmp_path) == ""


async def test_an_old_artifact_under_a_new_version_is_refused(tmp_path: Path) -> None:
    """The signature is valid, but belongs to an old package, and the signed manifest states the old version."""
    registry = OciLayout(tmp_path / "layout")
    digest = await artifact(registry, "0.9.0")
    await push_bundles(registry, digest, GOOD.bundle(statement(digest)))
    with pytest.raises(TrustError, match=r"is for version 0\.9\.0, but 1\.0\.0 was requested"):
        await fetch(registry, tmp_path, KEYLESS)
    assert stored(tmp_path) == ""
