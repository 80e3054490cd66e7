"""The control plane's own certificates: a certificate authority for one server, created at the first start and
stored next to the server's data.

Clients trust the authority, because the kubeconfig contains its certificate. Each start creates a new certificate for the
server, with its address and the names of the API server inside a cluster. Keys are P-256, and are only written to files with
mode 0600. The authority's certificate is valid for ten years, the server's certificate for one year.
"""

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from wharfinger.control_plane.access.kubeconfig_file import write_secret_file

AUTHORITY_CERTIFICATE: Final = "ca.crt"
AUTHORITY_KEY: Final = "ca.key"
AUTHORITY_DAYS: Final = 3650
SERVER_DAYS: Final = 365
RENEW_DAYS: Final = 30
"""The remaining validity, in days, below which the authority is replaced."""
SERVICE_ADDRESS: Final = "10.0.0.1"
"""The cluster IP of the Service ``kubernetes``."""
NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class CertificateError(Exception):
    """The stored certificate authority cannot be used. The message names the file, the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate authority that signs the server's certificate."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        """The certificate in PEM, as kubeconfigs and ``kube-root-ca.crt`` contain it."""
        return self.certificate.public_bytes(Encoding.PEM).decode()


def kept_authority(folder: Path, now: datetime) -> Authority:
    """Return the authority in a folder; create it if it is missing or expires within :data:`RENEW_DAYS` days.

    Raises CertificateError if the files are not a certificate and its key, and OSError if they cannot be read or written.
    """
    certificate_path, key_path = folder / AUTHORITY_CERTIFICATE, folder / AUTHORITY_KEY
    if certificate_path.exists() and key_path.exists():
        authority = _read(certificate_path, key_path)
        if authority.certificate.not_valid_after_utc > now + timedelta(days=RENEW_DAYS):
            return authority
    authority = new_authority(now)
    write_secret_file(key_path, _pem_of(authority.key))
    write_secret_file(certificate_path, authority.pem.encode())
    return authority


def _read(certificate_path: Path, key_path: Path) -> Authority:
    try:
        certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
        key = load_pem_private_key(key_path.read_bytes(), password=None)
    except (ValueError, TypeError, x509.InvalidVersion) as error:
        raise CertificateError(
            f"{certificate_path} and {key_path} are not a certificate and its key: {error}; "
            "remove both files, and new ones are created"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise CertificateError(
            f"{key_path} is not the key of {certificate_path}; remove both files, and new ones are created"
        )
    return Authority(certificate, key)


def new_authority(now: datetime) -> Authority:
    """Return a new self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wharfinger control plane")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def server_context(authority: Authority, host: str, now: datetime) -> ssl.SSLContext:
    """Return TLS settings for HTTP/1.1 and TLS 1.2 or newer, with a new certificate for ``host`` (an IP address)."""
    key = ec.generate_private_key(ec.SECP256R1())
    addresses = {ipaddress.ip_address(text) for text in (host, "127.0.0.1", "::1", SERVICE_ADDRESS)}
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in NAMES]
    names += [x509.IPAddress(address) for address in sorted(addresses, key=str) if not address.is_unspecified]
    certificate = (
        _builder(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]),
            authority.certificate.subject,
            key,
            now,
            SERVER_DAYS,
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # OpenSSL reads certificate chains only from files. This file exists only during the call, in a folder with mode 0700.
    with tempfile.TemporaryDirectory(prefix="wharfinger-tls-") as folder:
        path = Path(folder) / "server.pem"
        write_secret_file(path, _pem_of(key) + certificate.public_bytes(Encoding.PEM))
        context.load_cert_chain(path)
    return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - timedelta(hours=1))  # tolerates clients whose clocks are behind
        .not_valid_after(now.astimezone(UTC) + timedelta(days=days))
    )


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
