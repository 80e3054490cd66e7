from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.certificates import with_unknown_version
from wharfinger.control_plane.api.core.key_pairs import key_pair_problem

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])


def certificate() -> bytes:
    made = (
        x509.CertificateBuilder()
        .subject_name(NAME)
        .issuer_name(NAME)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2027, 1, 1, tzinfo=UTC))
        .sign(KEY, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM)


def pem(key: "ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey") -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def block(kind: str) -> bytes:
    return f"-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n".encode()


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (certificate(), pem(KEY), ""),
        (certificate(), pem(OTHER), "tls: private key does not match public key"),
        (
            certificate(),
            pem(ed25519.Ed25519PrivateKey.generate()),
            "tls: private key type does not match public key type",
        ),
        (b"", b"", "tls: failed to find any PEM data in certificate input"),
        (block("A") + block("B"), b"", "after skipping PEM blocks of the following types: [A B]"),
        (pem(KEY), b"", "PEM inputs may have been switched"),
        (certificate(), b"", "tls: failed to find any PEM data in key input"),
        (certificate(), certificate(), "tls: found a certificate rather than a key in the PEM for the private key"),
        (
            certificate(),
            block("A") + block("B"),
            "in key input after skipping PEM blocks of the following types: [A B]",
        ),
        (block("CERTIFICATE"), pem(KEY), "x509: malformed certificate"),
        (with_unknown_version(certificate().decode()).encode(), pem(KEY), "x509: malformed certificate"),
        (certificate(), block("PRIVATE KEY"), "tls: failed to parse private key"),
    ],
)
def test_invalid_key_pairs_are_refused(first: bytes, second: bytes, said: str) -> None:
    found = key_pair_problem(first, second)

    assert said in found if said else found == ""


def test_incomplete_pem_blocks_are_found_in_bounded_time() -> None:
    broken = b"-----BEGIN A-----\n" + b"x: -----BEGIN A-----\n" * 20_000
    assert key_pair_problem(broken, broken) == "tls: failed to find any PEM data in certificate input"
