"""Texts signed with OpenPGP, verified by the program ``gpgv`` without an agent, a trust database or the user's keyring.

Only the text that gpgv returns is signed. The file may contain unsigned text as well, before and after the signed text. So no
caller may look for the signed text in the file itself.
"""

import base64
import binascii
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from wharfinger.packages.errors import ArtifactError, RegistryError
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits
from wharfinger.process.errors import ProcessError

MAX_TEXT: Final = 1024 * 1024
MAX_KEYRING: Final = 256 * 1024
LIMITS: Final = Limits(wall_s=20.0, stdout_bytes=MAX_TEXT, memory_bytes=1024**3)
_BEGIN: Final = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_END: Final = "-----END PGP PUBLIC KEY BLOCK-----"
_CHECKSUM: Final = 5
"""The number of characters in the checksum line of an armored block."""
_BAD: Final = frozenset({"BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG", "NODATA"})
_SAID: Final = {
    "BADSIG": "the text was changed after it was signed",
    "EXPSIG": "the signature has expired",
    "EXPKEYSIG": "the key of the signature has expired",
    "REVKEYSIG": "the key of the signature was revoked",
    "ERRSIG": "the signature was made with a key that is not in spec.verify.keyring",
    "NODATA": "expected a text signed with OpenPGP, found other text",
}


@dataclass(frozen=True, slots=True)
class SignedText:
    """A text, and the fingerprint of the key that has signed it."""

    text: bytes = field(repr=False)
    fingerprint: str


def read_keyring(armored: str) -> bytes:
    """Return a keyring with the public keys that an armored text contains. Raises ArtifactError."""
    if len(armored) > MAX_KEYRING:
        raise ArtifactError(f"expected a keyring of at most {MAX_KEYRING} characters, found {len(armored)}")
    if "PRIVATE KEY" in armored:
        raise ArtifactError("expected public keys, found a private key; give the output of `gpg --armor --export`")
    found = b""
    for begun in armored.split(_BEGIN)[1:]:
        block, end, _ = begun.partition(_END)
        try:
            found += base64.b64decode(_body(block), validate=True) if end else b""
        except (binascii.Error, ValueError) as error:
            raise ArtifactError("a public key cannot be read: its text is not base64") from error
    if not found:
        raise ArtifactError(
            "expected armored public keys of OpenPGP, found none; give the output of `gpg --armor --export`"
        )
    return found


def _body(block: str) -> str:
    """Return the base64 text of a block, without the block's headers, the empty line after them, and the checksum.

    The text is untrusted and may be long, so it is read line by line.
    """
    lines = [line.strip() for line in block.splitlines()[1:]]
    while lines and ": " in lines[0]:
        del lines[0]
    return "".join(line for line in lines if not (line.startswith("=") and len(line) == _CHECKSUM))


async def verify_text(signed: bytes, keyring: bytes, environ: Mapping[str, str] | None = None) -> SignedText:
    """Return the text of a clear-signed document, if one of the keys has signed it. Raises ArtifactError, RegistryError."""
    path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    with tempfile.TemporaryDirectory(prefix="wharfinger-openpgp-", ignore_cleanup_errors=True) as made:
        place = Path(made)
        await trio.to_thread.run_sync(_write, place, signed, keyring)
        command = Command(
            (
                "gpgv",
                "--homedir",
                made,
                "--keyring",
                str(place / "keys.gpg"),
                "--status-fd",
                "2",
                "--output",
                "-",
                "signed",
            ),
            place,
            {"PATH": path, "LC_ALL": "C", "HOME": made},
        )
        try:
            outcome = await run_child(command, LIMITS)
        except ProcessError as error:
            raise RegistryError(f"gpgv cannot be run: {error}; install gpgv", transient=True) from error
    if outcome.ending is not Ending.EXITED:
        raise RegistryError(f"gpgv: {outcome.describe()}", transient=outcome.ending is Ending.DEADLINE)
    status = [
        line.split() for line in outcome.stderr.decode(errors="replace").splitlines() if line.startswith("[GNUPG:] ")
    ]
    words = [line[1] for line in status if len(line) > 1]
    bad = next((word for word in words if word in _BAD), "")
    valid = [line[2] for line in status if len(line) > 2 and line[1] == "VALIDSIG"]
    if bad or not outcome.ok or not valid or words.count("GOODSIG") != len(valid):
        raise ArtifactError(f"the signature does not verify: {_SAID.get(bad, 'gpgv refused it')}")
    return SignedText(outcome.stdout, valid[0])


def _write(place: Path, signed: bytes, keyring: bytes) -> None:
    (place / "keys.gpg").write_bytes(keyring)
    (place / "signed").write_bytes(signed)
