"""The policy of a repository: whose signatures make an artifact trusted. It is data, and loads no cryptography."""

import re
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.json.value import JsonObject, checksum

MAX_PATTERN: Final = 1000


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key in PEM text. ``name`` is its place in the policy, for messages."""

    name: str
    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules: a signature by one of the keys is needed.

    ``require_version``: the signed content must state the version and the name under which the artifact is requested, so that
    an old signed artifact cannot stand in for a new one.
    """

    keys: tuple[TrustedKey, ...] = ()
    require_version: bool = True
    version: str = ""
    """The version that an artifact requested by its digest must state; empty: any."""

    @property
    def checksum(self) -> str:
        """A short text that changes with the policy: what was fetched under another one is verified again."""
        rules: JsonObject = {"keys": [key.pem for key in self.keys], "version": self.require_version}
        return re.sub(r"[^0-9a-z]", "", checksum(rules))[-16:]
