"""The errors for failed requests to registries, transient or permanent.

The statuses 5xx, 408, 425 and 429 and most network errors are transient. All other statuses, such as 401, 403 and 404, are
permanent: a retry without a change does not help. Errors are also permanent if a proxy demands a login, or if a request cannot
be sent. The registry's own code and message (distribution spec §"Error Codes") are quoted without control characters, at most
MAX_QUOTE characters.
"""

import re
import socket
import ssl
from typing import Final

import httpx

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import decode_json, find
from wharfinger.packages.errors import ArtifactNotFoundError, LoginRefusedError, RegistryError

MAX_ERROR_BODY: Final = 64 * 1024
MAX_QUOTE: Final = 300
_NUMBERED: Final = re.compile(r"\[Errno -?\d+\] ")
"""A pattern for the error number before the text of an operating system's error. It is removed, because it does not help users.
"""

_PROXY_LOGIN: Final = (
    "the proxy demands a login (407); put it into the proxy's address: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
)
_TRANSIENT: Final = frozenset({408, 425, 429})


def failure(what: str, status: int, body: bytes, headers: httpx.Headers) -> RegistryError:
    """Return the error for an unsuccessful answer; ``what`` names the request and the registry."""
    said = quote(body)
    tail = f": {said}" if said else ""
    if status == 404:
        return ArtifactNotFoundError(f"{what}: not found (404){tail}; push it, or correct the name, tag or digest")
    if status == 401:
        return LoginRefusedError(f"{what}: authentication failed (401){tail}; check user name and password")
    if status == 403:
        return RegistryError(
            f"{what}: not allowed (403){tail}; give this user access to the repository, or use another user",
            transient=False,
        )
    if status == 407:
        return RegistryError(f"{what}: {_PROXY_LOGIN}", transient=False)
    if status == 429:
        wait = headers.get("retry-after", "")
        hint = f"; the registry asks to wait {wait} s" if wait.isdecimal() and len(wait) < 8 else ""
        return RegistryError(f"{what}: too many requests (429){hint}{tail}", transient=True)
    if status >= 500 or status in _TRANSIENT:
        return RegistryError(f"{what}: the registry failed ({status}){tail}", transient=True)
    return RegistryError(f"{what}: refused ({status}){tail}", transient=False)


def quote(body: bytes) -> str:
    """Return ``CODE message`` from an error document of the distribution specification, or an empty string."""
    try:
        document = decode_json(body, max_bytes=MAX_ERROR_BODY, what="error")
    except FormatError:
        return ""
    parts: list[str] = []
    for field in ("code", "message"):
        text = find(document, "errors", 0, field)
        if isinstance(text, str) and text:
            parts.append("".join(character if character.isprintable() else " " for character in text[:MAX_QUOTE]))
    return " ".join(parts)[:MAX_QUOTE]


def network_failure(what: str, error: Exception) -> RegistryError:
    """Return the error for a request that got no answer, or an incomplete one."""
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return RegistryError(f"{what}: the request cannot be sent: {_words(error)}", transient=False)
    if isinstance(error, httpx.ProxyError):
        if _words(error).startswith("407"):
            return RegistryError(f"{what}: {_PROXY_LOGIN}", transient=False)
        return RegistryError(
            f"{what}: the proxy refused the connection ({_words(error)}); ask its operator to allow this host, or name the "
            "host in NO_PROXY",
            transient=True,
        )
    certificate = _cause(error, ssl.SSLCertVerificationError)
    if certificate is not None:
        return RegistryError(
            f"{what}: the registry's certificate is not trusted: {_words(certificate)}; give the authority's certificate "
            "(spec.registry.ca in a PackageRepository, --ca on the command line), or correct the address",
            transient=True,
        )
    handshake = _cause(error, ssl.SSLError)
    if handshake is not None and "ALERT" in _words(handshake) and "CERTIFICATE" in _words(handshake):
        return RegistryError(
            f"{what}: the registry refused the client's certificate, or demands one: {_words(handshake)}; give one with "
            "spec.registry.tlsSecret of the PackageRepository",
            transient=True,
        )
    if handshake is not None:
        return RegistryError(
            f"{what}: TLS failed: {_words(error)}; if the registry uses plain HTTP, set "
            "spec.registry.scheme: HTTP in a PackageRepository, or --plain-http on the command line",
            transient=True,
        )
    if isinstance(error, httpx.TimeoutException):
        return RegistryError(f"{what}: no answer in time ({type(error).__name__})", transient=True)
    if (lookup := _cause(error, socket.gaierror)) is not None:
        why = f"its name cannot be looked up: {_words(lookup)}; check the address, and the name server of this machine"
        return RegistryError(f"{what}: {why}", transient=True)
    return RegistryError(f"{what}: {_words(error)}; check the address and that the registry runs", transient=True)


def _cause(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    for _ in range(10):
        if error is None or isinstance(error, kind):
            return error
        error = error.__cause__ or error.__context__
    return None


def _words(error: BaseException) -> str:
    text = "".join(character if character.isprintable() else " " for character in str(error)[:MAX_QUOTE])
    return _NUMBERED.sub("", text).strip() or type(error).__name__
