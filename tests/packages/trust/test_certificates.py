"""Certificates of signers: the identities in them, and bytes that only look like a certificate."""

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from hypothesis import given
from hypothesis import strategies as st

from tests.certificates import with_unknown_version
from tests.packages.support.sigstore import AUTHORITY, GOOD, ISSUER, NOW, SIGNER, SUBJECT, certificate_builder, pem_of
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.trust.certificates import (
    check_chain,
    check_logged,
    identity_of,
    public_key,
    read_certificates,
)

DER = GOOD.certificate.public_bytes(serialization.Encoding.DER)


def test_the_identity_of_a_signer_is_read_and_verified() -> None:
    assert str(identity_of(GOOD.certificate)) == f"{SUBJECT} (issuer {ISSUER})"
    assert check_chain(GOOD.certificate, [], AUTHORITY.pem, NOW) == AUTHORITY.between


@pytest.mark.parametrize("length", [1, 127, 128, 255])
def test_issuers_of_any_length_are_read(length: int) -> None:
    issuer = "i" * length
    assert identity_of(GOOD.but(issuer=issuer).certificate).issuer == issuer


@pytest.mark.parametrize(
    "value", [b"", b"\x0c", b"\x13\x01i", b"\x0c\x02i", b"\x0c\x81\x09i", b"\x0c\x82\x00\x01i", b"\x0c\x01\xff"]
)
def test_issuers_that_are_not_text_are_refused(value: bytes) -> None:
    builder = certificate_builder("", "x", SIGNER, NOW, NOW + timedelta(minutes=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.RFC822Name("a@example")]), critical=True)
    oid = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
    builder = builder.add_extension(x509.UnrecognizedExtension(oid, value), critical=False)
    made = builder.sign(AUTHORITY.between_key, hashes.SHA256())
    if value == b"\x0c\x82\x00\x01i":
        assert identity_of(made).issuer == "i"
        return
    with pytest.raises(ArtifactError, match="the issuer of this identity, cannot be read"):
        identity_of(made)


def test_an_overlong_name_is_refused_and_not_truncated() -> None:
    """If an overlong name were truncated, the name of a stranger could equal a trusted name."""
    prefix = "https://evil.example/"
    name = prefix + "x" * (500 - len(prefix) - len("@ours.example")) + "@ours.example"
    assert identity_of(GOOD.but(names=[x509.UniformResourceIdentifier(name)]).certificate).subject == name
    with pytest.raises(ArtifactError, match="more than 500 characters"):
        identity_of(GOOD.but(names=[x509.UniformResourceIdentifier(f"{name}.evil.example")]).certificate)
    with pytest.raises(ArtifactError, match="more than 500 characters"):
        identity_of(GOOD.but(issuer="i" * 501).certificate)


def test_a_certificate_without_an_issuer_or_a_name_is_refused() -> None:
    with pytest.raises(ArtifactError, match="names 1 signer and no issuer"):
        identity_of(GOOD.but(issuer_oid="1.2.3.4").certificate)
    with pytest.raises(ArtifactError, match="names 0 signers"):
        identity_of(GOOD.but(names=[x509.DNSName("web.example")]).certificate)
    with pytest.raises(ArtifactError, match="the issuer of this identity, cannot be read"):
        identity_of(AUTHORITY.root)


def test_the_certificate_of_an_authority_cannot_sign_artifacts() -> None:
    for certificate in (AUTHORITY.root, AUTHORITY.between):
        with pytest.raises(ArtifactError, match="the certificate"):
            check_chain(certificate, [], AUTHORITY.pem, NOW)


def test_a_certificate_chain_that_is_too_deep_is_refused() -> None:
    """The intermediate authority may certify signers, but no further authorities. So a chain with another authority below it is
    refused.
    """
    key = ec.derive_private_key(71, ec.SECP256R1())
    builder = certificate_builder("deeper", f"signing.{AUTHORITY.name}", key, NOW, NOW + timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    deeper = builder.add_extension(usage, critical=True).sign(AUTHORITY.between_key, hashes.SHA256())
    leaf = certificate_builder("", "deeper", SIGNER, NOW, NOW + timedelta(minutes=5))
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.RFC822Name("a@example")]), critical=True)
    with pytest.raises(ArtifactError, match="is not issued by an authority"):
        check_chain(leaf.sign(key, hashes.SHA256()), [deeper], AUTHORITY.pem, NOW)


def test_invalid_certificate_authorities_are_refused() -> None:
    unknown = with_unknown_version(pem_of(GOOD.certificate))
    for text in ("", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", unknown):
        with pytest.raises(ArtifactError, match="expected certificates in PEM text"):
            read_certificates(text, "x")


def test_keys_of_unsupported_kinds_are_refused() -> None:
    key = ed448.Ed448PrivateKey.generate()
    builder = x509.CertificateBuilder(AUTHORITY.root.subject, AUTHORITY.root.subject, key.public_key(), 7, NOW, NOW)
    with pytest.raises(ArtifactError, match="with a key for ECDSA, RSA or Ed25519"):
        public_key(builder.sign(AUTHORITY.between_key, hashes.SHA256()))


@given(st.integers(0, len(DER) - 1), st.integers(1, 255))
@pytest.mark.sampled(60)
def test_a_changed_certificate_is_refused(place: int, difference: int) -> None:
    changed = bytearray(DER)
    changed[place] ^= difference
    try:
        certificate = x509.load_der_x509_certificate(bytes(changed))
    except (ValueError, x509.InvalidVersion):
        return
    with pytest.raises(PackageError):
        check_chain(certificate, [], AUTHORITY.pem, NOW)
    for read in (identity_of, public_key, lambda each: check_logged(each, AUTHORITY.between, [])):
        try:
            read(certificate)
        except PackageError as error:
            assert "certificate" in str(error)


def test_several_certificates_in_one_text_are_read() -> None:
    assert len(read_certificates(AUTHORITY.pem + pem_of(GOOD.certificate), "x")) == 3
