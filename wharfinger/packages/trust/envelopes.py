"""Signed statements about artifacts: DSSE envelopes, whose payload is an in-toto statement.

A statement has subjects (digests of artifacts), the type of its predicate, and the predicate: an SBOM, the provenance of a build,
or the bare statement that the artifact is signed. Whether a statement counts depends on its digests and its type. The content of
the predicate is only displayed.

Sources: DSSE's ``protocol.md``; in-toto's ``spec/v1/statement.md``.
"""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    find_list,
    find_object,
    find_str,
)
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, DigestError
from wharfinger.packages.trust.log_entries import decoded

MAX_ENVELOPE: Final = 8 * 1024 * 1024
IN_TOTO: Final = "application/vnd.in-toto+json"
ENVELOPE: Final = "application/vnd.dsse.envelope.v1+json"
SIGNED: Final = "https://sigstore.dev/cosign/sign/v1"
"""The predicate type of a statement that states only that the artifact is signed."""
_STATEMENTS: Final = frozenset({"https://in-toto.io/Statement/v0.1", "https://in-toto.io/Statement/v1"})
_MOST_SUBJECTS: Final = 1_000
_MOST_SIGNATURES: Final = 10


@dataclass(frozen=True, slots=True)
class Statement:
    """The content of an envelope: the subjects' digests, the type of the predicate, and the predicate."""

    digests: frozenset[str]
    predicate_type: str
    predicate: JsonObject = field(repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload with its signatures."""

    payload: bytes = field(repr=False)
    type: str
    signatures: tuple[bytes, ...] = field(repr=False)

    @property
    def signed(self) -> bytes:
        """The bytes that a signature covers."""
        kind = self.type.encode()
        return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(self.payload), self.payload)


def read_envelope(value: JsonValue) -> Envelope:
    """Read a DSSE envelope. Raises FormatError."""
    document = as_object(value, "envelope")
    listed = find_list(document, "signatures")
    if len(listed) > _MOST_SIGNATURES:
        raise FormatError(f"envelope.signatures: expected at most {_MOST_SIGNATURES} signatures, found {len(listed)}")
    return Envelope(
        decoded(find_str(document, "payload"), "envelope.payload"),
        find_str(document, "payloadType"),
        tuple(decoded(find_str(each, "sig"), "envelope.signatures") for each in listed),
    )


def read_statement(payload: bytes) -> Statement:
    """Read a statement whose signature was verified. Raises ArtifactError."""
    try:
        document = as_object(decode_json(payload, max_bytes=MAX_ENVELOPE, what="statement"), "statement")
        kind = find_str(document, "_type")
        if kind not in _STATEMENTS:
            raise ArtifactError(f"the signed statement is of type {kind[:100]!r}, which is not an in-toto statement")
        subjects = find_list(document, "subject")[:_MOST_SUBJECTS]
        found = (find_str(each, "digest", "sha256") for each in subjects)
        digests = frozenset(Digest(f"sha256:{each}").text for each in found if each)
        return Statement(digests, find_str(document, "predicateType")[:500], find_object(document, "predicate"))
    except (FormatError, DigestError) as error:
        raise ArtifactError(f"the signed statement cannot be read: {error}") from error
