"""A certificate authority and a transparency log for tests. They do the work of Fulcio and Rekor, with keys that tests know.

Every part of a signature can be made wrong on its own. Parts that are not given are correct.
"""

import base64
import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from wharfinger.formats.json.value import JsonObject, canonical_json, encode_json
from wharfinger.packages.digest import Digest
from wharfinger.packages.trust.certificates import log_id
from wharfinger.packages.trust.claims import Claim, write_claim
from wharfinger.packages.trust.envelopes import IN_TOTO, SIGNED
from wharfinger.packages.trust.keys import Signing, public_pem, sign
from wharfinger.packages.trust.policy import Policy, TrustedIdentity, TrustedKey, TrustRoot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ISSUER = "https://ci.example"
SUBJECT = "https://git.example/team/web/.ci/release.yaml@refs/tags/v1"
MINUTES = timedelta(minutes=10)
LOG: Signing = ec.derive_private_key(31, ec.SECP256R1())
OTHER_LOG: Signing = ec.derive_private_key(32, ec.SECP256R1())
CERTIFICATE_LOG = ec.derive_private_key(33, ec.SECP256R1())
SIGNER = ec.derive_private_key(34, ec.SECP256R1())
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PROVENANCE = "https://slsa.dev/provenance/v1"
_SCT_LIST = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")


def pem_of(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def certificate_builder(
    name: str, issuer: str, key: ec.EllipticCurvePrivateKey, first: datetime, last: datetime
) -> x509.CertificateBuilder:
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    issued_by = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])
    return x509.CertificateBuilder(issued_by, x509.Name(subject), key.public_key(), 7, first, last)


@dataclass(frozen=True)
class Authority:
    """A certificate authority with an intermediate certificate, like Fulcio."""

    key: ec.EllipticCurvePrivateKey
    name: str = "authority.example"
    path_length: int | None = None

    @cached_property
    def root(self) -> x509.Certificate:
        return self._certificate(self.key, self.name, self.key, self.name, 1)

    @property
    def between_key(self) -> ec.EllipticCurvePrivateKey:
        return ec.derive_private_key(self.key.private_numbers().private_value + 1, ec.SECP256R1())

    @cached_property
    def between(self) -> x509.Certificate:
        return self._certificate(self.between_key, f"signing.{self.name}", self.key, self.name, 0)

    @property
    def pem(self) -> str:
        return pem_of(self.root) + pem_of(self.between)

    def _certificate(
        self, key: ec.EllipticCurvePrivateKey, name: str, by: ec.EllipticCurvePrivateKey, issuer: str, depth: int
    ) -> x509.Certificate:
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = certificate_builder(name, issuer, key, NOW - timedelta(days=365), NOW + timedelta(days=365))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=depth), critical=True)
        builder = builder.add_extension(usage, critical=True)
        return builder.sign(by, hashes.SHA256())


AUTHORITY = Authority(ec.derive_private_key(41, ec.SECP256R1()))
STRANGER = Authority(ec.derive_private_key(51, ec.SECP256R1()), "stranger.example")
ROOT = TrustRoot(AUTHORITY.pem, (TrustedKey("spec.verify.keyless.logKeys[0]", public_pem(LOG)),))
IDENTITY = TrustedIdentity("spec.verify.keyless.identities[0]", ISSUER, "https://git.example/team/*")
KEYLESS = Policy(identities=(IDENTITY,), root=ROOT)


@dataclass(frozen=True)
class Made:
    """One keyless signature with its certificate and log entry. The defaults are those of a correct signer."""

    authority: Authority = AUTHORITY
    subject: str = SUBJECT
    issuer: str = ISSUER
    valid_from: datetime = NOW - timedelta(minutes=1)
    signed_at: datetime = NOW
    log: Signing = LOG
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING
    certificate_log: ec.EllipticCurvePrivateKey | None = None
    others_before: int = 3
    """The number of log entries before this one. One more entry follows this one."""
    names: Sequence[x509.GeneralName] = field(default=())
    issuer_oid: str = "1.3.6.1.4.1.57264.1.8"

    @cached_property
    def certificate(self) -> x509.Certificate:
        names = self.names or [x509.UniformResourceIdentifier(self.subject)]
        authority = self.authority
        builder = certificate_builder(
            "", f"signing.{authority.name}", SIGNER, self.valid_from, self.valid_from + MINUTES
        )
        builder = builder.add_extension(x509.ExtendedKeyUsage([self.usage]), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
        text = self.issuer.encode()
        size = bytes((len(text),)) if len(text) < 128 else b"\x82" + len(text).to_bytes(2, "big")
        size = b"\x81" + bytes((len(text),)) if 128 <= len(text) < 256 else size
        value = b"\x0c" + size + text if self.issuer_oid.endswith(".8") else text
        builder = builder.add_extension(
            x509.UnrecognizedExtension(x509.ObjectIdentifier(self.issuer_oid), value), critical=False
        )
        if self.certificate_log is not None:
            bare = builder.sign(authority.between_key, hashes.SHA256())
            proof = _certificate_proof(bare, authority.between, self.certificate_log, self.valid_from)
            builder = builder.add_extension(x509.UnrecognizedExtension(_SCT_LIST, proof), critical=False)
        return builder.sign(authority.between_key, hashes.SHA256())

    def annotations(self, payload: bytes) -> JsonObject:
        """Return the annotations of a signature in cosign's older format."""
        signature = sign(SIGNER, payload)
        body = self.body_of_payload(payload, signature)
        return {
            "dev.cosignproject.cosign/signature": base64.b64encode(signature).decode(),
            "dev.sigstore.cosign/certificate": pem_of(self.certificate),
            "dev.sigstore.cosign/chain": pem_of(self.authority.between) + pem_of(self.authority.root),
            "dev.sigstore.cosign/bundle": encode_json(self.entry(body)).decode(),
        }

    def body_of_payload(self, payload: bytes, signature: bytes) -> JsonObject:
        certificate = base64.b64encode(pem_of(self.certificate).encode()).decode()
        return {
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()}},
                "signature": {
                    "content": base64.b64encode(signature).decode(),
                    "publicKey": {"content": certificate},
                },
            },
        }

    def entry(self, body: JsonObject) -> JsonObject:
        """Return the entry of the transparency log in the format of cosign's annotation ``dev.sigstore.cosign/bundle``."""
        stated: JsonObject = {
            "body": base64.b64encode(canonical_json(body)).decode(),
            "integratedTime": int(self.signed_at.timestamp()),
            "logID": log_id(self.log.public_key()).hex(),
            "logIndex": 1000 + self.others_before,
        }
        promise = base64.b64encode(sign(self.log, canonical_json(stated))).decode()
        return {"SignedEntryTimestamp": promise, "Payload": stated}

    def bundle(self, payload: bytes) -> JsonObject:
        """Return a Sigstore bundle 0.3 with a signed statement."""
        signed = b"DSSEv1 %d %b %d %b" % (len(IN_TOTO), IN_TOTO.encode(), len(payload), payload)
        signature = base64.b64encode(sign(SIGNER, signed)).decode()
        certificate = base64.b64encode(pem_of(self.certificate).encode()).decode()
        body: JsonObject = {
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
                "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
                "signatures": [{"signature": signature, "verifier": certificate}],
            },
        }
        return {
            "mediaType": BUNDLE,
            "verificationMaterial": {
                "certificate": {
                    "rawBytes": base64.b64encode(self.certificate.public_bytes(serialization.Encoding.DER)).decode()
                },
                "tlogEntries": [self.bundle_entry(body)],
            },
            "dsseEnvelope": {
                "payload": base64.b64encode(payload).decode(),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": signature, "keyid": ""}],
            },
        }

    def bundle_entry(self, body: JsonObject) -> JsonObject:
        stated = self.entry(body)
        payload = stated["Payload"]
        assert isinstance(payload, dict)
        index, hashes_, size, root = self.proof(canonical_json(body))
        return {
            "logIndex": str(payload["logIndex"]),
            "logId": {"keyId": base64.b64encode(log_id(self.log.public_key())).decode()},
            "kindVersion": {"kind": body["kind"], "version": body["apiVersion"]},
            "integratedTime": str(payload["integratedTime"]),
            "inclusionPromise": {"signedEntryTimestamp": stated["SignedEntryTimestamp"]},
            "inclusionProof": {
                "logIndex": str(index),
                "treeSize": str(size),
                "rootHash": base64.b64encode(root).decode(),
                "hashes": [base64.b64encode(each).decode() for each in hashes_],
                "checkpoint": {"envelope": self.checkpoint(size, root)},
            },
            "canonicalizedBody": payload["body"],
        }

    def proof(self, body: bytes) -> tuple[int, list[bytes], int, bytes]:
        leaves = [b"entry %d" % number for number in range(self.others_before)] + [body, b"the last entry"]
        return self.others_before, path_of(leaves, self.others_before), len(leaves), tree_root(leaves)

    def checkpoint(self, size: int, root: bytes) -> str:
        text = f"log.example\n{size}\n{base64.b64encode(root).decode()}\n"
        signed = log_id(self.log.public_key())[:4] + sign(self.log, text.encode())
        return f"{text}\n\u2014 log.example {base64.b64encode(signed).decode()}\n"

    def but(self, **changes: object) -> "Made":
        return replace(self, **changes)  # type: ignore[arg-type]


GOOD = Made()


def statement(digest: Digest, predicate_type: str = SIGNED, predicate: JsonObject | None = None) -> bytes:
    return encode_json(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "web", "digest": {"sha256": digest.hex}}],
            "predicateType": predicate_type,
            "predicate": predicate or {},
        }
    )


def claim(digest: Digest, version: str = "1.0.0") -> bytes:
    return write_claim(Claim(digest, "", version))


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root hash of a Merkle tree (RFC 6962 §2.1)."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    cut = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + tree_root(leaves[:cut]) + tree_root(leaves[cut:])).digest()


def path_of(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the inclusion proof of a leaf in a Merkle tree (RFC 6962 §2.1.1)."""
    if len(leaves) == 1:
        return []
    cut = 1 << (len(leaves) - 1).bit_length() - 1
    if index < cut:
        return [*path_of(leaves[:cut], index), tree_root(leaves[cut:])]
    return [*path_of(leaves[cut:], index - cut), tree_root(leaves[:cut])]


def _certificate_proof(
    bare: x509.Certificate, issuer: x509.Certificate, key: ec.EllipticCurvePrivateKey, at: datetime
) -> bytes:
    """Return a list of one signed certificate timestamp, in DER (RFC 6962 §3.2, §3.3)."""
    spki = issuer.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    body = bare.tbs_certificate_bytes
    moment = int(at.timestamp() * 1000)
    signed = struct.pack(">BBQH", 0, 0, moment, 1) + hashlib.sha256(spki).digest()
    signed += len(body).to_bytes(3, "big") + body + struct.pack(">H", 0)
    signature = key.sign(signed, ec.ECDSA(hashes.SHA256()))
    proof = b"\x00" + log_id(key.public_key()) + struct.pack(">QH", moment, 0)
    proof += b"\x04\x03" + struct.pack(">H", len(signature)) + signature  # These bytes mean SHA-256 and ECDSA.
    listed = struct.pack(">H", len(proof)) + proof
    listed = struct.pack(">H", len(listed)) + listed
    return b"\x04" + (bytes((len(listed),)) if len(listed) < 128 else b"\x81" + bytes((len(listed),))) + listed
