"""Public and private keys, which are read from PEM text, and signatures in the form that cosign makes.

With a key for ECDSA (signature in DER) or RSA (PKCS #1 v1.5), the SHA-256 of the payload is signed. With a key for Ed25519, the
payload itself is signed. The library ``cryptography`` performs all operations.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from wharfinger.packages.errors import PackageError

MAX_PEM: Final = 64 * 1024
MIN_RSA_BITS: Final = 2048
_SHORT: Final = 16

Verifying: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey
Signing: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


class KeyFormatError(PackageError):
    """The text is not a key of a supported kind."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key. ``name`` is its field in a policy, such as ``spec.verify.keys[0]``, for messages."""

    name: str
    pem: str = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """The beginning of the SHA-256 of the key in DER, by which users can compare keys."""
        der = load_public(self.pem, self.name).public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return f"sha256:{hashlib.sha256(der).hexdigest()[:_SHORT]}"

    def __str__(self) -> str:
        """Return the name with the fingerprint."""
        return f"{self.name} ({self.fingerprint})"

    def has_signed(self, payload: bytes, signature: bytes) -> bool:
        """Return whether the signature of the payload is by this key."""
        return is_signed_by(load_public(self.pem, self.name), payload, signature)


def load_public(pem: str, what: str) -> Verifying:
    """Return the public key in PEM text. Raises KeyFormatError."""
    try:
        if len(pem) > MAX_PEM:
            raise ValueError("too long")
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyFormatError(
            f"{what}: expected a public key in PEM text (-----BEGIN PUBLIC KEY-----), found other text; give the file "
            "cosign.pub, or the output of `openssl pkey -pubout`"
        ) from error
    return _supported(key, what)


def _supported(key: object, what: str) -> Verifying:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        raise KeyFormatError(
            f"{what}: expected an RSA key of at least {MIN_RSA_BITS} bits, found {key.key_size}; use a longer key"
        )
    if isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey):
        return key
    raise KeyFormatError(f"{what}: expected a key for ECDSA, RSA or Ed25519; use one of these")


def is_signed_by(key: Verifying, payload: bytes, signature: bytes) -> bool:
    """Return whether the signature of the payload is by this key."""
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, payload, ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, payload, padding.PKCS1v15(), hashes.SHA256())
        else:
            key.verify(signature, payload)
    except InvalidSignature:
        return False
    return True


def load_private(pem: bytes, password: str, what: str) -> Signing:
    """Return the private key that a PEM text contains. The text must be encrypted if, and only if, there is a password.

    Raises KeyFormatError, whose message never quotes the key.
    """
    if b"SIGSTORE PRIVATE KEY" in pem or b"COSIGN PRIVATE KEY" in pem:
        raise KeyFormatError(
            f"{what}: expected a private key in PKCS #8, found one in the format of cosign; make a key pair with "
            "`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`"
        )
    try:
        key = serialization.load_pem_private_key(pem, password.encode() or None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyFormatError(
            f"{what}: expected a private key in PEM text, and its password in WHARFINGER_KEY_PASSWORD if it is encrypted, "
            "found other text, or a password that does not fit; correct the key or the password"
        ) from None
    if isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey):
        _supported(key.public_key(), what)
        return key
    raise KeyFormatError(f"{what}: expected a key for ECDSA, RSA or Ed25519; use one of these")


def sign(key: Signing, payload: bytes) -> bytes:
    """Return the signature of a payload, in the form of cosign."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(payload, ec.ECDSA(hashes.SHA256()))
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(payload, padding.PKCS1v15(), hashes.SHA256())
    return key.sign(payload)


def public_pem(key: Signing) -> str:
    """Return the public half of a key in PEM text."""
    made = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return made.decode()
