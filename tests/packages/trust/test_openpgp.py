"""Texts signed with OpenPGP, verified by the real gpgv."""

from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest

from tests.packages.support.openpgp import Pgp, pgp
from wharfinger.packages.errors import ArtifactError, RegistryError
from wharfinger.packages.trust.openpgp import MAX_KEYRING, read_keyring, verify_text

__all__ = ["pgp"]
TEXT = b"name: web\n"


async def test_a_signed_text_is_verified(pgp: Pgp) -> None:
    keyring = read_keyring(pgp.keyring("other", "ours"))
    found = await verify_text(pgp.sign(TEXT), keyring)
    assert found.text == TEXT
    assert found.fingerprint in pgp.run("--list-keys", "--with-colons").decode()


async def test_unsigned_text_around_the_signed_text_is_not_returned(pgp: Pgp) -> None:
    signed = b"name: evil\n\n" + pgp.sign(TEXT) + b"\nname: evil\n"
    with suppress(ArtifactError):  # Some versions of gpgv refuse this text.
        assert (await verify_text(signed, read_keyring(pgp.keyring("ours")))).text == TEXT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda signed: signed.replace(b"web", b"wep"), "the text was changed after it was signed"),
        (lambda signed: TEXT, "expected a text signed with OpenPGP, found other text"),
        (lambda signed: b"", "expected a text signed with OpenPGP, found other text"),
        (lambda signed: signed[: len(signed) // 2], "the signature does not verify"),
        (lambda signed: signed + signed, "the signature does not verify"),
    ],
)
async def test_changed_texts_are_refused(pgp: Pgp, change: object, message: str) -> None:
    assert callable(change)
    with pytest.raises(ArtifactError, match=message):
        await verify_text(change(pgp.sign(TEXT)), read_keyring(pgp.keyring("ours")))


async def test_unknown_and_expired_keys_are_refused(pgp: Pgp) -> None:
    with pytest.raises(ArtifactError, match=r"with a key that is not in spec\.verify\.keyring"):
        await verify_text(pgp.sign(TEXT, "other"), read_keyring(pgp.keyring("ours")))
    late = pgp.sign(TEXT, "late", at="20200101T120000!")
    with pytest.raises(ArtifactError, match="the key of the signature has expired"):
        await verify_text(late, read_keyring(pgp.keyring("late")))


async def test_a_revoked_key_is_refused(pgp: Pgp) -> None:
    pgp.run("--passphrase", "", "--quick-generate-key", "gone <gone@example>", "ed25519", "sign", "never")
    signed = pgp.sign(TEXT, "gone")
    assert (await verify_text(signed, read_keyring(pgp.keyring("gone")))).text == TEXT
    (fingerprint, *_) = (
        line.split(":")[9]
        for line in pgp.run("--list-keys", "--with-colons", "=gone <gone@example>").decode().splitlines()
        if line.startswith("fpr")
    )
    certificate = (pgp.home / "openpgp-revocs.d" / f"{fingerprint}.rev").read_text()
    pgp.run("--import", data=certificate.replace(":-----BEGIN", "-----BEGIN").encode())
    with pytest.raises(ArtifactError, match="the key of the signature was revoked"):
        await verify_text(signed, read_keyring(pgp.keyring("gone")))


async def test_a_missing_gpgv_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"gpgv cannot be run: .*install gpgv") as caught:
        await verify_text(TEXT, b"", {"PATH": str(tmp_path)})
    assert caught.value.transient


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected armored public keys of OpenPGP, found none"),
        ("x" * (MAX_KEYRING + 1), "at most"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----", "found a private key"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nA\n-----END PGP PUBLIC KEY BLOCK-----", "its text is not base64"),
    ],
)
def test_invalid_keyrings_are_refused(text: str, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read_keyring(text)


@pytest.mark.parametrize("filler", ["\n", "A\n", "=abcd\n", " ", "Version: \n"])
@pytest.mark.parametrize("end", ["", "-----END PGP PUBLIC KEY BLOCK-----"])
def test_a_hostile_keyring_is_refused_quickly(filler: str, end: str) -> None:
    text = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n" + filler * (200_000 // len(filler)) + end
    begun = process_time()
    with suppress(ArtifactError):
        read_keyring(text)
    assert process_time() - begun < 2.0


def test_a_keyring_with_headers_is_read() -> None:
    begin, end = (f"-----{word} PGP PUBLIC KEY BLOCK-----\n" for word in ("BEGIN", "END"))
    block = f"{begin}Version: x\nComment: y\n\naGVs\nbG8=\n=abcd\n{end}"
    assert read_keyring(block + "text\n" + block.replace("\n", "\r\n")) == b"hello" * 2
