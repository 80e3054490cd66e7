"""The certificate of the admission server: made by the daemon, kept in a Secret, and replaced before it expires.

Each certificate has an authority of its own. The authority's key is discarded once it has signed the certificate, so nobody can
sign a second certificate with it. The Secret also keeps the authority of the previous certificate, and API servers trust both
authorities. So no request fails during a replacement, whichever of the two certificates the server shows at that moment.
"""

import base64
import binascii
import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from wharfinger.formats.json.value import JsonObject, find_str

VALID: Final = timedelta(days=90)
RENEW: Final = timedelta(days=30)
"""A certificate is replaced when it is valid for less than this time."""
_EARLY: Final = timedelta(hours=1)
"""The backdating of a certificate: its validity starts this long before its creation, so that API servers whose clocks are
behind accept it.
"""
_MAX_COMMON_NAME: Final = 64


@dataclass(frozen=True, slots=True)
class Certificate:
    """A server's certificate with its key, and the authorities that API servers are to trust: first the authority of this
    certificate, then the previous one. All are in PEM form.
    """

    chain: str
    key: str
    authorities: tuple[str, ...]
    not_after: datetime
    names: frozenset[str]

    @property
    def bundle(self) -> str:
        """The ``caBundle`` of a webhook's configuration, in PEM form."""
        return "".join(self.authorities)

    def is_fit(self, names: Sequence[str], now: datetime) -> bool:
        """Return whether the certificate names all of ``names``, and stays valid for longer than RENEW."""
        return self.names >= frozenset(names) and self.not_after - now > RENEW


def new_certificate(names: Sequence[str], now: datetime, before: Certificate | None = None) -> Certificate:
    """Make a certificate for DNS names and IP addresses; ``before`` is the certificate that it replaces."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wharfinger admission")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:_MAX_COMMON_NAME])])
    authority = (
        _builder(issuer, issuer, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(subject, issuer, key, now)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    chain = certificate.public_bytes(Encoding.PEM).decode()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    own = authority.public_bytes(Encoding.PEM).decode()
    earlier = before.authorities[:1] if before is not None else ()
    return Certificate(chain, secret, (own, *earlier), certificate.not_valid_after_utc, frozenset(names))


def read_certificate(secret: JsonObject) -> Certificate | None:
    """Return the certificate in a Secret; None if the Secret has no certificate, or a damaged one."""
    try:
        texts = [
            base64.b64decode(find_str(secret, "data", name), validate=True) for name in ("tls.crt", "tls.key", "ca.crt")
        ]
        certificate = x509.load_pem_x509_certificate(texts[0])
        key = load_pem_private_key(texts[1], password=None)
        authorities = x509.load_pem_x509_certificates(texts[2])
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (
        ValueError,
        TypeError,
        binascii.Error,
        x509.InvalidVersion,
        x509.DuplicateExtension,
        x509.ExtensionNotFound,
        UnsupportedAlgorithm,
    ):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    found = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    trusted = tuple(one.public_bytes(Encoding.PEM).decode() for one in authorities)
    return Certificate(texts[0].decode(), texts[1].decode(), trusted, certificate.not_valid_after_utc, frozenset(found))


def secret_data(certificate: Certificate) -> JsonObject:
    """Return the ``data`` of the Secret that keeps a certificate."""
    texts = {"tls.crt": certificate.chain, "tls.key": certificate.key, "ca.crt": certificate.bundle}
    return {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}


def _new_context() -> ssl.SSLContext:
    """Return a server's TLS context without a certificate. It allows HTTP/1.1 over TLS 1.2 or newer."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class ServedCertificate:
    """The certificate that a server shows, which can be replaced while clients connect.

    ``context`` is for the listener. A context is never changed once connections use it, because OpenSSL loads the certificate
    and the key one after the other, and a handshake in between would fail. Instead, each handshake gets the context of the
    newest certificate.
    """

    def __init__(self) -> None:
        self._newest: ssl.SSLContext | None = None
        self.context = _new_context()
        self.context.sni_callback = self._select

    def use(self, certificate: Certificate) -> None:
        """Use the certificate for all further handshakes. Blocking."""
        context = _new_context()
        # OpenSSL reads keys from files only; this file exists only during the call, in a folder with mode 0700.
        with tempfile.TemporaryDirectory(prefix="wharfinger-tls-") as folder:
            path = Path(folder) / "server.pem"
            path.touch(mode=0o600)
            path.write_text(certificate.key + certificate.chain)
            context.load_cert_chain(path)
        self._newest = context

    def _select(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Let a connection use the newest certificate. Called in each handshake, even if the client sends no server name."""
        if self._newest is not None:
            connection.context = self._newest


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _EARLY)
        .not_valid_after(now.astimezone(UTC) + VALID)
    )
