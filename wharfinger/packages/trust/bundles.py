"""Sigstore bundles: a signature or a signed statement, with everything that is needed to verify it without a network.

Versions 0.1 to 0.3 are supported. Timestamps of timestamp authorities (RFC 3161) are not used: the time of a signature is the
time that the transparency log has signed.

Source: sigstore's ``protobuf-specs``, ``sigstore_bundle.proto``.
"""

import base64
import re
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find, find_list, find_object, find_str
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.envelopes import MAX_ENVELOPE, read_envelope
from wharfinger.packages.trust.evidence import Signature
from wharfinger.packages.trust.log_entries import LogEntry, decoded, read_entry

MAX_BUNDLE: Final = 2 * MAX_ENVELOPE
BUNDLE_TYPE: Final = re.compile(r"application/vnd\.dev\.sigstore\.bundle(?:\.v0\.3\+json|\+json;version=0\.[123])\Z")
_MOST_ENTRIES: Final = 10


def read_bundle(data: bytes) -> Signature:
    """Read a Sigstore bundle that contains a signed statement, and return its signature. Raises ArtifactError."""
    try:
        document = as_object(decode_json(data, max_bytes=MAX_BUNDLE, what="bundle"), "bundle")
        kind = find_str(document, "mediaType")
        if not BUNDLE_TYPE.match(kind):
            raise ArtifactError(f"the bundle is of the type {kind[:100]!r}; versions 0.1 to 0.3 are read")
        if find(document, "dsseEnvelope") is None:
            raise ArtifactError(
                "the bundle signs plain bytes (messageSignature); expected a signed statement (dsseEnvelope)"
            )
        envelope = read_envelope(find(document, "dsseEnvelope"))
        if len(envelope.signatures) != 1:
            raise ArtifactError(
                f"the envelope of the bundle has {len(envelope.signatures)} signatures; expected one signature"
            )
        material = find_object(document, "verificationMaterial")
        certificate, *others = _certificates(material) or [""]
        entry = _entry(material)
        return Signature(envelope.signed, envelope.signatures[0], certificate, "".join(others), entry, envelope)
    except FormatError as error:
        raise ArtifactError(f"the bundle cannot be read: {error}") from error


def _certificates(material: JsonObject) -> list[str]:
    """Return the certificates in PEM, the signer's certificate first; no certificates if the signature was made with a long-lived
    key.
    """
    if find(material, "certificate") is not None:
        listed = [find(material, "certificate")]
    else:
        listed = find_list(material, "x509CertificateChain", "certificates")[:_MOST_ENTRIES]
    return [_pem(decoded(find_str(each, "rawBytes"), "rawBytes")) for each in listed]


def _pem(der: bytes) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(der).decode()}-----END CERTIFICATE-----\n"


def _entry(material: JsonObject) -> LogEntry | None:
    listed = find_list(material, "tlogEntries")
    if len(listed) > 1:
        raise ArtifactError(f"the bundle has {len(listed)} entries of transparency logs; expected one entry")
    return read_entry(listed[0]) if listed else None
