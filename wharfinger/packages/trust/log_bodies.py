"""The content of an entry of the transparency log: the signature, its certificate and its payload.

An entry must name the signature that it is stored with. Otherwise, the entry of another signature could be used in its place, and
the time in that entry could make an expired certificate look valid.

Source: Rekor's ``pkg/types``: ``hashedrekord`` 0.0.1, ``dsse`` 0.0.1, ``intoto`` 0.0.1 and 0.0.2.
"""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find_list, find_object, find_str
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.log_entries import MAX_ENTRY, decoded


@dataclass(frozen=True, slots=True)
class LoggedSignature:
    """The signature that an entry of the transparency log must name.

    ``payload`` is the payload of the envelope, or the signed bytes if there is no envelope. ``document`` contains the envelope as
    it was stored; it is empty if there is no envelope, or if the envelope is part of a bundle. ``certificate`` is in DER.
    """

    payload: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    document: bytes = field(default=b"", repr=False)


def check_body(body: bytes, logged: LoggedSignature) -> None:
    """Raise ArtifactError unless ``body``, the content of an entry, names the signature ``logged``."""
    try:
        entry = as_object(decode_json(body, max_bytes=MAX_ENTRY, what="entry"), "entry")
        kind = f"{find_str(entry, 'kind')} {find_str(entry, 'apiVersion')}"
        check = _KINDS.get(kind)
        if check is None:
            raise ArtifactError(
                f"the entry of the transparency log is of the kind {kind[:60]!r}, which Wharfinger cannot check"
            )
        if not check(find_object(entry, "spec"), logged):
            raise ArtifactError("the entry of the transparency log is about another signature")
    except FormatError as error:
        raise ArtifactError(f"the entry of the transparency log cannot be read: {error}") from error


def _hashedrekord(spec: JsonObject, logged: LoggedSignature) -> bool:
    signature = find_object(spec, "signature")
    return (
        find_str(spec, "data", "hash", "algorithm") == "sha256"
        and find_str(spec, "data", "hash", "value") == _hash(logged.payload)
        and decoded(find_str(signature, "content"), "signature") == logged.signature
        and _is_certificate(find_str(signature, "publicKey", "content"), logged)
    )


def _dsse(spec: JsonObject, logged: LoggedSignature) -> bool:
    return find_str(spec, "payloadHash", "value") == _hash(logged.payload) and any(
        decoded(find_str(each, "signature"), "signature") == logged.signature
        and _is_certificate(find_str(each, "verifier"), logged)
        for each in find_list(spec, "signatures")
    )


def _intoto_1(spec: JsonObject, logged: LoggedSignature) -> bool:
    return (
        bool(logged.document)
        and find_str(spec, "content", "hash", "value") == _hash(logged.document)
        and _is_certificate(find_str(spec, "publicKey"), logged)
    )


def _intoto_2(spec: JsonObject, logged: LoggedSignature) -> bool:
    return find_str(spec, "content", "payloadHash", "value") == _hash(logged.payload) and any(
        decoded(decoded(find_str(each, "sig"), "sig").decode("ascii", "replace"), "sig") == logged.signature
        and _is_certificate(find_str(each, "publicKey"), logged)
        for each in find_list(spec, "content", "envelope", "signatures")
    )


_KINDS: Final[dict[str, Callable[[JsonObject, LoggedSignature], bool]]] = {
    "hashedrekord 0.0.1": _hashedrekord,
    "dsse 0.0.1": _dsse,
    "intoto 0.0.1": _intoto_1,
    "intoto 0.0.2": _intoto_2,
}


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_certificate(text: str, logged: LoggedSignature) -> bool:
    """Return whether ``text`` is the base64 form of the certificate's PEM text."""
    lines = decoded(text, "certificate").decode("ascii", "replace").strip().splitlines()
    if not lines or lines[0] != "-----BEGIN CERTIFICATE-----" or lines[-1] != "-----END CERTIFICATE-----":
        return False
    return "".join(lines[1:-1]) == base64.b64encode(logged.certificate).decode()
