"""Entries of a transparency log, in the format of Rekor: they prove the time of a signature.

A certificate of a signer is valid for minutes, but may be verified years later. So the log has to state when it received the
signature. It signs the entry together with the time; this is called a *promise*, or *signed entry timestamp*. If there is a proof
of inclusion, it must lead to a root that the log has signed. The promise and the proof come with the signature, and are verified
with the key of the log, so no request is needed.

Sources: Rekor's ``openapi.yaml``; RFC 6962 §2.1 (the tree); the C2SP specifications of signed notes and of checkpoints.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    canonical_json,
    decode_json,
    find,
    find_list,
    find_object,
    find_str,
)
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.certificates import log_id
from wharfinger.packages.trust.keys import Verifying, is_signed_by

MAX_ENTRY: Final = 1024 * 1024
MAX_HASHES: Final = 64
"""The largest number of hashes in a proof; enough for a log of 2⁶⁴ entries."""
_MAX_TIME: Final = 2**33


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """The path from an entry to the root of the log's tree, and the root with the log's signature."""

    index: int
    size: int
    root: bytes
    hashes: tuple[bytes, ...]
    checkpoint: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log entry: its ``body``, and the time at which the log accepted it (seconds since 1970)."""

    body: bytes = field(repr=False)
    time: int
    index: int
    log: bytes
    """The name of the log: the SHA-256 of its key."""
    promise: bytes = field(repr=False)
    """The log's signature of all fields above; empty if the log has not signed them."""
    proof: InclusionProof | None = None

    @property
    def moment(self) -> datetime:
        """The time as a datetime."""
        return datetime.fromtimestamp(self.time, UTC)


def read_annotation(text: str) -> LogEntry:
    """Read the entry from an annotation of a signature in cosign's older format, without a bundle. Raises ArtifactError."""
    try:
        document = as_object(decode_json(text, max_bytes=MAX_ENTRY, what="entry"), "entry")
        payload = find_object(document, "Payload")
        return LogEntry(
            decoded(find_str(payload, "body"), "body"),
            _number(find(payload, "integratedTime"), _MAX_TIME),
            _number(find(payload, "logIndex"), 2**63),
            bytes.fromhex(find_str(payload, "logID")),
            decoded(find_str(document, "SignedEntryTimestamp"), "SignedEntryTimestamp"),
        )
    except (FormatError, ValueError) as error:
        raise ArtifactError(f"the entry of the transparency log cannot be read: {error}") from error


def read_entry(value: JsonValue) -> LogEntry:
    """Read the entry of a Sigstore bundle (``tlogEntries``). Raises ArtifactError."""
    try:
        entry = as_object(value, "tlogEntries")
        proof = find_object(entry, "inclusionProof")
        return LogEntry(
            decoded(find_str(entry, "canonicalizedBody"), "canonicalizedBody"),
            _number(find(entry, "integratedTime"), _MAX_TIME),
            _number(find(entry, "logIndex"), 2**63),
            decoded(find_str(entry, "logId", "keyId"), "logId"),
            decoded(find_str(entry, "inclusionPromise", "signedEntryTimestamp"), "signedEntryTimestamp"),
            _proof(proof) if proof else None,
        )
    except (FormatError, ValueError) as error:
        raise ArtifactError(f"the entry of the transparency log cannot be read: {error}") from error


def _proof(proof: JsonObject) -> InclusionProof:
    hashes = find_list(proof, "hashes")
    if len(hashes) > MAX_HASHES:
        raise FormatError(f"hashes: expected at most {MAX_HASHES} hashes, found {len(hashes)}")
    return InclusionProof(
        _number(find(proof, "logIndex"), 2**63),
        _number(find(proof, "treeSize"), 2**63),
        decoded(find_str(proof, "rootHash"), "rootHash"),
        tuple(decoded(each if isinstance(each, str) else "", "hashes") for each in hashes),
        find_str(proof, "checkpoint", "envelope"),
    )


def decoded(text: str, what: str) -> bytes:
    """Decode base64 text. Raises FormatError."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"{what}: expected base64") from error


def _number(value: JsonValue, below: int) -> int:
    """Return a number from JSON, where protobuf writes large numbers as text. Raises FormatError."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise FormatError(f"expected a number from 0 to {below - 1}")
    return value


def check_entry(entry: LogEntry, keys: Sequence[Verifying]) -> None:
    """Raise ArtifactError unless the entry and its time were signed by the entry's log, whose key must be one of ``keys``. If
    there is a proof of inclusion, it must be valid, too.
    """
    key = next((each for each in keys if log_id(each) == entry.log), None)
    if key is None:
        raise ArtifactError(f"the signature is in the log {entry.log.hex()[:16]}, which is not a log of spec.verify")
    if not entry.promise:
        raise ArtifactError(
            "the log has not signed the time of the signature, so the signature may have been made after the "
            "certificate expired"
        )
    stated: JsonObject = {
        "body": base64.b64encode(entry.body).decode(),
        "integratedTime": entry.time,
        "logID": entry.log.hex(),
        "logIndex": entry.index,
    }
    if not is_signed_by(key, canonical_json(stated), entry.promise):
        raise ArtifactError(
            "the signed timestamp of the transparency log does not verify: the entry or its time was changed"
        )
    if entry.proof is not None:
        _check_proof(entry, entry.proof, key)


def _check_proof(entry: LogEntry, proof: InclusionProof, key: Verifying) -> None:
    root = root_of(entry.body, proof.index, proof.size, proof.hashes)
    if root != proof.root or (proof.size, proof.root) != _checkpoint(proof.checkpoint, key):
        raise ArtifactError("the entry is not in the transparency log: its proof of inclusion does not verify")


def root_of(body: bytes, index: int, size: int, hashes: Sequence[bytes]) -> bytes:
    """Return the root of a tree of ``size`` entries with ``body`` at ``index``, computed from the ``hashes`` of a proof
    (RFC 9162 §2.1.3.2). Return b"" if the proof does not fit such a tree.
    """
    if not index < size:
        return b""
    at, last = index, size - 1
    found = hashlib.sha256(b"\x00" + body).digest()
    for each in hashes:
        if last == 0:
            return b""
        if at & 1 or at == last:
            found = hashlib.sha256(b"\x01" + each + found).digest()
            while not at & 1 and at != 0:
                at, last = at >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\x01" + found + each).digest()
        at, last = at >> 1, last >> 1
    return found if last == 0 else b""


def _checkpoint(note: str, key: Verifying) -> tuple[int, bytes] | None:
    """Return the size and the root of a checkpoint; None unless the log has signed it."""
    text, blank, signatures = note.partition("\n\n")
    lines = text.split("\n")
    if not blank or len(lines) < 3 or not lines[1].isdecimal():
        return None
    signed = f"{text}\n".encode()
    for line in signatures.split("\n")[:MAX_HASHES]:
        try:
            data = decoded(line.rpartition(" ")[2], "signature")
            root = decoded(lines[2], "root")
        except FormatError:
            continue
        if line.startswith("\u2014 ") and is_signed_by(key, signed, data[4:]):  # data[:4] is a hash of the key
            return int(lines[1][:20]), root
    return None
