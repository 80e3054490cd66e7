"""Keys of all kinds. Their signatures are also verified by openssl, and invalid keys are refused."""

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.packages.support.signing import KEY, OTHER, private_pem
from wharfinger.packages.trust.keys import (
    KeyFormatError,
    PublicKey,
    Signing,
    load_private,
    load_public,
    public_pem,
    sign,
)

KINDS: list[Signing] = [
    KEY,
    ec.derive_private_key(99, ec.SECP384R1()),
    rsa.generate_private_key(65537, 2048),
    ed25519.Ed25519PrivateKey.from_private_bytes(b"k" * 32),
]


@pytest.mark.parametrize("key", KINDS, ids=lambda key: type(key).__name__)
def test_a_signature_is_valid_for_one_key_and_one_payload(key: Signing) -> None:
    public = PublicKey("a", public_pem(key))
    signature = sign(key, b"payload")
    assert public.has_signed(b"payload", signature)
    assert not public.has_signed(b"payloae", signature)
    assert not public.has_signed(b"payload", signature[:-1] + bytes([signature[-1] ^ 1]))
    assert not public.has_signed(b"payload", b"")
    assert not PublicKey("b", public_pem(OTHER)).has_signed(b"payload", signature)


@pytest.mark.parametrize("key", KINDS[:3], ids=lambda key: type(key).__name__)
def test_openssl_and_wharfinger_verify_each_others_signatures(key: Signing, tmp_path: Path) -> None:
    """Openssl verifies a signature made by wharfinger, and wharfinger a signature made by openssl."""
    (tmp_path / "key").write_bytes(private_pem(key))
    (tmp_path / "pub").write_text(public_pem(key))
    (tmp_path / "payload").write_bytes(b"payload")
    (tmp_path / "signature").write_bytes(sign(key, b"payload"))
    run = ["openssl", "dgst", "-sha256"]
    verify = [*run, "-verify", "pub", "-signature", "signature", "payload"]
    assert b"Verified OK" in subprocess.run(verify, cwd=tmp_path, check=True, capture_output=True).stdout
    made = subprocess.run([*run, "-sign", "key", "payload"], cwd=tmp_path, check=True, capture_output=True).stdout
    assert PublicKey("a", public_pem(key)).has_signed(b"payload", made)


def test_a_private_key_is_read_with_its_password() -> None:
    assert public_pem(load_private(private_pem(KEY), "", "f")) == public_pem(KEY)
    assert public_pem(load_private(private_pem(KEY, "geheim"), "geheim", "f")) == public_pem(KEY)


WEAK = rsa.generate_private_key(65537, 1024)  # noqa: S505 - to be refused
DSA = dsa.generate_private_key(1024)  # noqa: S505 - to be refused


@pytest.mark.parametrize(
    ("pem", "password", "message"),
    [
        (b"hello", "", "f: expected a private key in PEM text, and its password in WHARFINGER_KEY_PASSWORD"),
        (private_pem(KEY, "geheim"), "", "found other text, or a password that does not fit; correct the key"),
        (private_pem(KEY, "geheim"), "wrong", "found other text, or a password that does not fit; correct the key"),
        (private_pem(KEY), "unused", "found other text, or a password that does not fit; correct the key"),
        (b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----", "", "found one in the format of cosign; make a key pair"),
        (private_pem(WEAK), "", "f: expected an RSA key of at least 2048 bits, found 1024; use a longer key"),
        (
            DSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "",
            "f: expected a key for ECDSA, RSA or Ed25519; use one of these",
        ),
    ],
)
def test_invalid_private_keys_are_refused(pem: bytes, password: str, message: str) -> None:
    with pytest.raises(KeyFormatError) as caught:
        load_private(pem, password, "f")
    assert message in str(caught.value)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        ("", "k: expected a public key in PEM text"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "k: expected a public key in PEM text"),
        (private_pem(KEY).decode(), "k: expected a public key in PEM text"),
        (public_pem(WEAK), "k: expected an RSA key of at least 2048 bits, found 1024"),
        (
            DSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
            "k: expected a key for ECDSA, RSA or Ed25519",
        ),
        ("x" * 70_000, "k: expected a public key in PEM text"),
    ],
)
def test_invalid_public_keys_are_refused(pem: str, message: str) -> None:
    with pytest.raises(KeyFormatError) as caught:
        load_public(pem, "k")
    assert message in str(caught.value)
