"""The check that a certificate and a private key are a pair, with the messages of Go's ``tls.X509KeyPair``."""

import re
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

_PEM: Final = re.compile(
    rb"-----BEGIN ([^\r\n-]+)-----\r?\n((?:[^\r\n:]+: [^\r\n]*\r?\n)*[A-Za-z0-9+/=\s]*)-----END \1-----"
)
_BEGIN: Final = re.compile(rb"-----BEGIN [^\r\n-]+-----")
_MAX_BROKEN: Final = 10
"""The number of incomplete PEM blocks after which the search ends. Each such block may require a scan of the whole text."""
_ALGORITHMS: Final = (
    (rsa.RSAPublicKey, rsa.RSAPrivateKey),
    (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey),
    (ed25519.Ed25519PublicKey, ed25519.Ed25519PrivateKey),
)
_TYPES_SKIPPED: Final = "after skipping PEM blocks of the following types: "


def _blocks(data: bytes) -> list[tuple[str, bytes]]:
    """Return the type and the text of every complete PEM block."""
    blocks: list[tuple[str, bytes]] = []
    at = broken = 0
    while broken <= _MAX_BROKEN and (begin := _BEGIN.search(data, at)) is not None:
        found = _PEM.match(data, begin.start())
        if found is None:
            at, broken = begin.end(), broken + 1
        else:
            at = found.end()
            blocks.append((found[1].decode(errors="replace"), found[0] + b"\n"))
    return blocks


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """Return the reason why a certificate and a key (both PEM) are not a pair, or ""."""
    blocks, keys = _blocks(certificate), _blocks(key)
    certificates = [data for kind, data in blocks if kind == "CERTIFICATE"]
    if not certificates:
        return _no_certificate([kind for kind, _ in blocks])
    private = next((data for kind, data in keys if kind == "PRIVATE KEY" or kind.endswith(" PRIVATE KEY")), None)
    if private is None:
        return _no_key([kind for kind, _ in keys])
    try:
        public = x509.load_pem_x509_certificate(certificates[0]).public_key()
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        loaded = load_pem_private_key(private, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    for public_type, private_type in _ALGORITHMS:
        if isinstance(public, public_type):
            if not isinstance(loaded, private_type):
                return "tls: private key type does not match public key type"
            form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            same = loaded.public_key().public_bytes(*form) == public.public_bytes(*form)
            return "" if same else "tls: private key does not match public key"
    return "tls: unknown public key algorithm"


def _no_certificate(kinds: list[str]) -> str:
    if not kinds:
        return "tls: failed to find any PEM data in certificate input"
    if len(kinds) == 1 and kinds[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
            "have been switched"
        )
    what = 'tls: failed to find "CERTIFICATE" PEM block in certificate input '
    return f"{what}{_TYPES_SKIPPED}[{' '.join(kinds)}]"


def _no_key(kinds: list[str]) -> str:
    if not kinds:
        return "tls: failed to find any PEM data in key input"
    if kinds == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    what = 'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input '
    return f"{what}{_TYPES_SKIPPED}[{' '.join(kinds)}]"
