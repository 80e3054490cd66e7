"""Certificates that cannot be read, for tests of readers."""

import ssl

_VERSION_3 = bytes.fromhex("a003020102")
_VERSION_4 = bytes.fromhex("a003020103")


def with_unknown_version(pem: str) -> str:
    """Return a certificate in PEM with a version that X.509 does not have. cryptography raises its own error for it."""
    der = ssl.PEM_cert_to_DER_cert(pem)
    assert der.count(_VERSION_3) == 1
    return ssl.DER_cert_to_PEM_cert(der.replace(_VERSION_3, _VERSION_4))
