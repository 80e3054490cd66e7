"""Content digests: ``sha256:<64 hex>``, checked when they are read."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from wharfinger.packages.errors import DigestError

_SHA256: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """A sha256 digest. Raises DigestError for any other text, also for digests of other algorithms."""

    text: str

    def __post_init__(self) -> None:
        """Raise DigestError for anything but a sha256 digest."""
        if not _SHA256.match(self.text):
            raise DigestError(f"digest {self.text[:100]!r} is not of the form sha256:<64 hex digits>")

    @property
    def hex(self) -> str:
        """The 64 hexadecimal digits."""
        return self.text.removeprefix("sha256:")

    def __str__(self) -> str:
        """Return the digest with its algorithm."""
        return self.text


def digest_of(data: bytes) -> Digest:
    """Return the digest of some bytes."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())
