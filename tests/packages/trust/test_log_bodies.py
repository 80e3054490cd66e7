"""Entries of the transparency log: the body of an entry must name the signature, whatever the kind of the entry is."""

import base64
import hashlib
from collections.abc import Callable

import pytest

from wharfinger.formats.json.value import JsonObject, canonical_json
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.log_bodies import LoggedSignature, check_body

LOGGED = LoggedSignature(b"payload", b"signature", b"der of a certificate", b"document")
PEM = f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(LOGGED.certificate).decode()}\n-----END CERTIFICATE-----\n"


def coded(data: bytes | str) -> str:
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def hashed(data: bytes) -> JsonObject:
    return {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()}


def hashedrekord(payload: bytes, signature: bytes, pem: str) -> JsonObject:
    signed: JsonObject = {"content": coded(signature), "publicKey": {"content": coded(pem)}}
    return {
        "kind": "hashedrekord",
        "apiVersion": "0.0.1",
        "spec": {"data": {"hash": hashed(payload)}, "signature": signed},
    }


def dsse(payload: bytes, signature: bytes, pem: str) -> JsonObject:
    signed: JsonObject = {"signature": coded(signature), "verifier": coded(pem)}
    return {"kind": "dsse", "apiVersion": "0.0.1", "spec": {"payloadHash": hashed(payload), "signatures": [signed]}}


def intoto(payload: bytes, signature: bytes, pem: str) -> JsonObject:
    signed: JsonObject = {"sig": coded(coded(signature)), "publicKey": coded(pem)}
    content: JsonObject = {"payloadHash": hashed(payload), "envelope": {"signatures": [signed]}}
    return {"kind": "intoto", "apiVersion": "0.0.2", "spec": {"content": content}}


def older_intoto(document: bytes, _signature: bytes, pem: str) -> JsonObject:
    document = LOGGED.document if document == LOGGED.payload else document
    return {
        "kind": "intoto",
        "apiVersion": "0.0.1",
        "spec": {"content": {"hash": hashed(document)}, "publicKey": coded(pem)},
    }


@pytest.mark.parametrize("kind", [hashedrekord, dsse, intoto, older_intoto])
def test_an_entry_about_another_signature_is_refused(kind: Callable[[bytes, bytes, str], JsonObject]) -> None:
    check_body(canonical_json(kind(LOGGED.payload, LOGGED.signature, PEM)), LOGGED)
    others = [(b"other", LOGGED.signature, PEM), (LOGGED.payload, LOGGED.signature, PEM.replace("d", "e"))]
    others.append((LOGGED.payload, LOGGED.signature, "a key"))
    if kind is not older_intoto:  # The document of an older entry contains the signature.
        others.append((LOGGED.payload, b"other", PEM))
    for other in others:
        with pytest.raises(ArtifactError, match="is about another signature"):
            check_body(canonical_json(kind(*other)), LOGGED)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"kind":"rpm","apiVersion":"0.0.1"}', "of the kind 'rpm 0.0.1', which Wharfinger cannot check"),
        (b'{"kind":"dsse","apiVersion":"0.0.1"}', "about another signature"),
        (b'{"kind":"intoto","apiVersion":"0.0.1"}', "about another signature"),
        (b'{"kind":"dsse","apiVersion":"0.0.1","spec":3}', "cannot be read"),
    ],
)
def test_invalid_bodies_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        check_body(body, LOGGED)
