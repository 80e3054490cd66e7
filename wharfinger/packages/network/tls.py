"""TLS of connections to a server: the authorities to trust, and the certificate that identifies this client.

The system's authorities are trusted, and in addition the authorities in `Tls.ca`. The environment variable ``SSL_CERT_FILE``
names a file to use instead of the system's file of authorities, and ``SSL_CERT_DIR`` a folder to use instead of the system's
folder. A client's key is read from memory: it is never written to a disk.
"""

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from wharfinger.packages.errors import RegistryError

MAX_CA: Final = 1024 * 1024
"""The largest number of characters that are read from `Tls.ca`. All authorities of a typical system have a fifth of this size.
"""
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]{1,65536}-----END CERTIFICATE-----", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate (PEM, with its chain) and its private key (PEM, not encrypted)."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """The authorities (PEM) to trust in addition to the system's, and the certificate for servers that demand a client
    certificate.
    """

    ca: str = field(default="", repr=False)
    client: ClientCertificate | None = None


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return a TLS context. Connections share it, because a new context reads the system's authorities, which takes 20 ms.

    Blocking. Raises RegistryError for text that is not PEM.
    """
    paths = ssl.get_default_verify_paths()
    return _context(tls, (_changed_ns(paths.cafile), _changed_ns(paths.capath)))


def _changed_ns(path: str | None) -> int:
    """Return the time of the last change of a file or folder in nanoseconds; 0 if it does not exist."""
    try:
        return Path(path).stat().st_mtime_ns if path else 0
    except OSError:
        return 0


@lru_cache(maxsize=16)
def _context(tls: Tls, _as_of: tuple[int, ...]) -> ssl.SSLContext:
    """Return a context with the system's authorities, those in ``tls.ca`` (text around the certificates is ignored), and the
    client's certificate. ``_as_of`` has the times of the last changes of the system's authorities. It is only part of the
    cache's key: after a change, a new context is made.
    """
    context = ssl.create_default_context()
    if tls.ca:
        try:
            context.load_verify_locations(cadata="\n".join(_CERTIFICATE.findall(tls.ca[:MAX_CA])))
        except (ssl.SSLError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise RegistryError(
                f"the certificate authority: expected PEM text with certificates: {why}", transient=False
            ) from error
    if tls.client is not None:
        try:
            with _in_memory(tls.client.certificate) as certificate, _in_memory(tls.client.key) as key:
                context.load_cert_chain(certificate, key, _no_password)
        except (ssl.SSLError, ValueError, UnicodeError) as error:
            raise RegistryError(
                "the client certificate: expected PEM text of a certificate and of its key, not encrypted, found "
                f"{_reason(error)}; correct tls.crt and tls.key in the Secret",
                transient=False,
            ) from error
    return context


def _no_password() -> str:
    """Return no password, so that OpenSSL does not ask for one on the terminal."""
    return ""


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else ""
    return f"other text ({reason})" if reason else "other text"


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """Yield the path of a file in memory that contains the text, because the ssl module reads keys from files only."""
    file = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        data = text.encode()
        while data:
            data = data[os.write(file, data) :]
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)
