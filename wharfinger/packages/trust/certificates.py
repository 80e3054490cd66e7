"""Certificates of signers without a lasting key. Such a certificate is valid for minutes, and names an identity.

The certificates have the format that Fulcio uses, but the policy may name another authority than Fulcio. No request is sent to
the authority. A certificate must have been valid at the time of the signature. A transparency log states this time
(:mod:`~wharfinger.packages.trust.log_entries`).

Source: Fulcio's ``docs/certificate-specification.md`` and ``docs/oid-info.md``; RFC 6962 §3.2 for the proof of a certificate log.
"""

import hashlib
import struct
from calendar import timegm
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy, PolicyBuilder, Store, VerificationError

from wharfinger.formats.listing import counted
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.keys import KeyFormatError, Verifying, is_signed_by, load_public

MAX_CHAIN: Final = 8
MAX_SUBJECT: Final = 500
_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_OLD_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_CODE_SIGNING: Final = ExtendedKeyUsageOID.CODE_SIGNING
_UTF8_STRING: Final = 0x0C
_UNREADABLE: Final = (x509.DuplicateExtension, x509.UnsupportedGeneralNameType, x509.InvalidVersion, ValueError)
"""The errors that the library ``cryptography`` raises for malformed certificates."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The signer that a certificate names."""

    subject: str
    issuer: str

    def __str__(self) -> str:
        """Return the subject with its issuer."""
        return f"{self.subject} (issuer {self.issuer})"


def read_certificates(pem: str, what: str) -> list[x509.Certificate]:
    """Return the certificates in PEM text. Raises ArtifactError."""
    try:
        found = x509.load_pem_x509_certificates(pem.encode())
    except _UNREADABLE as error:
        raise ArtifactError(f"{what} cannot be read: expected certificates in PEM text") from error
    return found


def public_key(certificate: x509.Certificate) -> Verifying:
    """Return the key of a certificate. Raises ArtifactError."""
    try:
        key = certificate.public_key()
        if isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey):
            pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            return load_public(pem.decode(), "the certificate's key")
    except (ValueError, UnsupportedAlgorithm, KeyFormatError) as error:
        raise ArtifactError(f"the key of the certificate cannot be used: {error}") from error
    raise ArtifactError("expected a certificate with a key for ECDSA, RSA or Ed25519")


def check_chain(
    certificate: x509.Certificate, others: Sequence[x509.Certificate], authorities: str, at: datetime
) -> x509.Certificate:
    """Check that an authority of the policy has issued the certificate, and that the certificate was valid at the time ``at``.
    Return the certificate of the issuer. Raises ArtifactError.
    """
    given = read_certificates(authorities, "the authorities of spec.verify")
    roots = [each for each in given if each.issuer == each.subject]
    between = [*(each for each in given if each.issuer != each.subject), *others[:MAX_CHAIN]]
    builder = PolicyBuilder().store(Store(roots)).time(at).max_chain_depth(MAX_CHAIN)
    verifier = builder.extension_policies(
        ca_policy=_authority_policy(), ee_policy=_signer_policy()
    ).build_client_verifier()
    try:
        chain = verifier.verify(certificate, between).chain
    except (VerificationError, *_UNREADABLE) as error:
        raise ArtifactError(f"{_why_not(certificate, at)}: {error}") from error
    if len(chain) < 2:
        raise ArtifactError("the certificate belongs to an authority, which may sign only certificates")
    return chain[1]


def _why_not(certificate: x509.Certificate, at: datetime) -> str:
    try:
        first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except ValueError:
        return "the times of the certificate cannot be read"
    if not first <= at <= last:
        return (
            f"the certificate was not valid when it was used, at {at:%Y-%m-%d %H:%M:%S} UTC; it was valid from "
            f"{first} to {last}"
        )
    return "the certificate is not issued by an authority of spec.verify"


def _authority_policy() -> ExtensionPolicy:
    policy = ExtensionPolicy.permit_all()
    policy = policy.require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _is_authority)
    policy = policy.require_present(x509.KeyUsage, Criticality.AGNOSTIC, _may_sign_certificates)
    return policy.may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _may_sign_code)


def _signer_policy() -> ExtensionPolicy:
    policy = ExtensionPolicy.permit_all()
    policy = policy.require_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _must_sign_code)
    return policy.require_present(x509.SubjectAlternativeName, Criticality.AGNOSTIC, None)


def _is_authority(_policy: Policy, _certificate: x509.Certificate, found: x509.BasicConstraints) -> None:
    if not found.ca:
        raise ValueError("the issuer of the certificate is not a certificate authority")


def _may_sign_certificates(_policy: Policy, _certificate: x509.Certificate, found: x509.KeyUsage) -> None:
    if not found.key_cert_sign:
        raise ValueError("the issuer may not sign certificates")


def _may_sign_code(_policy: Policy, _certificate: x509.Certificate, found: x509.ExtendedKeyUsage | None) -> None:
    if found is not None and _CODE_SIGNING not in found and ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE not in found:
        raise ValueError("the issuer may not issue certificates for signing code")


def _must_sign_code(_policy: Policy, _certificate: x509.Certificate, found: x509.ExtendedKeyUsage) -> None:
    if _CODE_SIGNING not in found:
        raise ValueError("the certificate is not for signing code")


def identity_of(certificate: x509.Certificate) -> Identity:
    """Return the signer that a certificate names. Raises ArtifactError unless it names exactly one."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = [
            *names.get_values_for_type(x509.RFC822Name),
            *names.get_values_for_type(x509.UniformResourceIdentifier),
        ]
        issuer = _issuer(certificate)
    except (x509.ExtensionNotFound, *_UNREADABLE) as error:
        raise ArtifactError(
            f"the identity that the certificate names, or the issuer of this identity, cannot be read: {error}"
        ) from error
    if len(found) != 1 or not issuer:
        by = f"the issuer {issuer[:100]!r}" if issuer else "no issuer"
        raise ArtifactError(f"the certificate names {counted(len(found), 'signer')} and {by}; expected one of each")
    if max(len(found[0]), len(issuer)) > MAX_SUBJECT:  # not shortened: a shortened name could be another signer's name
        raise ArtifactError(f"the certificate names a signer or an issuer of more than {MAX_SUBJECT} characters")
    return Identity(found[0], issuer)


def _issuer(certificate: x509.Certificate) -> str:
    for oid in (_ISSUER, _OLD_ISSUER):
        try:
            value = certificate.extensions.get_extension_for_oid(oid).value
        except x509.ExtensionNotFound:
            continue
        if isinstance(value, x509.UnrecognizedExtension):
            data = value.value
            if oid == _ISSUER:
                if len(data) < 2 or data[0] != _UTF8_STRING or data[1] >= 0x80 or len(data) != data[1] + 2:
                    return _long_text(data)
                data = data[2:]
            return data.decode()
    return ""


def _long_text(data: bytes) -> str:
    """Return the text of a UTF8String in DER whose length has the long form, in one or two bytes. Raises ValueError for anything
    else.
    """
    for head, form in ((0x81, ">B"), (0x82, ">H")):
        size = struct.calcsize(form)
        if data[:2] == bytes((_UTF8_STRING, head)) and len(data) > size + 2:
            (length,) = struct.unpack_from(form, data, 2)
            if len(data) == length + size + 2:
                return data[size + 2 :].decode()
    raise ValueError("the issuer is not a text")


def check_logged(certificate: x509.Certificate, issuer: x509.Certificate, keys: Sequence[Verifying]) -> None:
    """Raise ArtifactError unless one of the certificate logs has promised to list the certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.PrecertificateSignedCertificateTimestamps).value
        body = certificate.tbs_precertificate_bytes
    except (x509.ExtensionNotFound, *_UNREADABLE) as error:
        raise ArtifactError(
            "spec.verify requires a proof by a certificate log, but the certificate has none"
        ) from error
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    issuer_hash = hashlib.sha256(issuer.public_key().public_bytes(serialization.Encoding.DER, spki)).digest()
    for each in found:
        head = struct.pack(
            ">BBQH", 0, 0, _milliseconds(each.timestamp), 1
        )  # version 1, certificate timestamp, precertificate
        size = len(body).to_bytes(3, "big")
        extensions = each.extension_bytes
        signed = head + issuer_hash + size + body + struct.pack(">H", len(extensions)) + extensions
        if any(each.log_id == log_id(key) and is_signed_by(key, signed, each.signature) for key in keys):
            return
    raise ArtifactError("the certificate is not in a certificate log of spec.verify")


def log_id(key: Verifying) -> bytes:
    """Return the ID of a log, which is the SHA-256 of the log's public key in DER."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).digest()


def _milliseconds(moment: datetime) -> int:
    return timegm(moment.timetuple()) * 1000 + moment.microsecond // 1000
