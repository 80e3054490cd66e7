"""The policy of a repository: the signers whose signatures make an artifact trusted.

The policy is only data, so this module does not load the library ``cryptography``.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.glob import text_glob
from wharfinger.formats.json.value import JsonObject, checksum

MAX_PATTERN: Final = 1000


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key in PEM text. ``name`` is its field in the policy, such as ``spec.verify.keys[0]``, for messages."""

    name: str
    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TrustedIdentity:
    """A signer without a key of their own: the subject in their certificate, and the issuer that authenticated the signer.

    ``subject`` is a glob: ``*`` matches any text. The issuer must match exactly.
    """

    name: str
    issuer: str
    subject: str

    def matches(self, subject: str, issuer: str) -> bool:
        """Return whether the subject and the issuer of a certificate are those of this signer."""
        return issuer == self.issuer and text_glob(self.subject).fullmatch(subject) is not None

    def __str__(self) -> str:
        """Return the subject with its issuer."""
        return f"{self.subject} (issuer {self.issuer})"


@dataclass(frozen=True, slots=True)
class TrustRoot:
    """The authority that issues certificates to signers, and the log that witnesses the time of each signature.

    ``authorities`` is PEM text: root certificates, and intermediate ones. With ``certificate_log_keys``, each certificate must
    have been logged by a certificate log with one of these keys.
    """

    authorities: str = field(repr=False)
    log_keys: tuple[TrustedKey, ...]
    certificate_log_keys: tuple[TrustedKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a repository. With a ``keyring``, a chart needs a provenance file; otherwise an artifact needs a signature
    by one of the keys or identities.

    ``require_version``: the signed content must state the version and the name under which the artifact is requested, so that
    an old signed artifact cannot be used instead of a new one. ``predicates``: a statement of each of these types must exist
    about the artifact, and must be signed like the artifact.
    """

    keys: tuple[TrustedKey, ...] = ()
    require_version: bool = True
    version: str = ""
    """The version that an artifact must state if it is requested by its digest. If this is empty, any version is accepted."""
    identities: tuple[TrustedIdentity, ...] = ()
    root: TrustRoot | None = None
    """The root of trust by which the certificates of ``identities`` are verified; None if there are no identities."""
    predicates: tuple[str, ...] = ()
    keyring: str = field(default="", repr=False)
    """Public keys of OpenPGP, armored. If there are any, a chart needs a provenance file that is signed with one of them, and all
    other fields have their default values.
    """

    @property
    def checksum(self) -> str:
        """A short text that changes when the policy changes, so that artifacts fetched under an earlier policy are verified
        again.
        """
        rules: JsonObject = {"keys": [key.pem for key in self.keys], "version": self.require_version}
        if self.root is not None:
            rules["identities"] = [[each.issuer, each.subject] for each in self.identities]
            rules["authorities"] = self.root.authorities
            rules["logs"] = [key.pem for key in self.root.log_keys]
            rules["certificateLogs"] = [key.pem for key in self.root.certificate_log_keys]
        if self.keyring:
            rules["keyring"] = self.keyring
        if self.predicates:
            rules["predicates"] = [*self.predicates]
        return re.sub(r"[^0-9a-z]", "", checksum(rules))[-16:]
