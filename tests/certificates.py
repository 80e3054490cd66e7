"""Certificates that cannot be read, for tests of code that reads certificates."""

import ssl

_VERSION_3 = bytes.fromhex("a003020102")
_VERSION_4 = bytes.fromhex("a003020103")


def with_unknown_version(pem: str) -> str:
    """Return a copy of a PEM certificate with a version unknown to X.509. cryptography raises InvalidVersion for it."""
    der = ssl.PEM_cert_to_DER_cert(pem)
    assert der.count(_VERSION_3) == 1
    return ssl.DER_cert_to_PEM_cert(der.replace(_VERSION_3, _VERSION_4))
