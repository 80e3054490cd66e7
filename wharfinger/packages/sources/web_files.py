"""The download of whole files over HTTP, such as indexes and archives, with the proxies, certificates and limits of registries.

A login is sent only to the server that it is for. It is sent with the first request, because many file servers answer 404 instead
of 401 to a request without a login.
"""

from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from wharfinger.formats.proxies import NO_PROXIES, Proxies
from wharfinger.packages.errors import AddressError
from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.address import RegistryAddress, Scheme, parse_registry
from wharfinger.packages.registry.connection import Answer, RegistryAccess, RegistryRequest, Timeouts, open_connection
from wharfinger.packages.registry.credentials import Credentials

ANSWER_S: Final = 600.0
"""The longest time for a whole file, in seconds."""


@dataclass(frozen=True, slots=True)
class WebServer:
    """The login and the client certificate for the server at ``url``; no other server gets them. ``ca`` is for every server."""

    url: str
    credentials: Credentials | None = field(default=None, repr=False)
    ca: str = field(default="", repr=False)
    client: ClientCertificate | None = None
    proxies: Proxies = NO_PROXIES
    patience: Timeouts = Timeouts()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class WebPlace:
    """The server, the path and the query of a URL."""

    registry: RegistryAddress
    scheme: Scheme
    path: str


def read_url(url: str) -> WebPlace:
    """Read an http(s) URL without a login. Raises AddressError."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise AddressError(f"{url[:200]!r}: expected an http(s) URL, found other text: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.netloc or not url.isprintable() or " " in url:
        raise AddressError(f"{url[:200]!r}: expected an http(s) URL, such as https://charts.example/stable")
    registry, scheme = parse_registry(f"{parts.scheme}://{parts.netloc}")
    return WebPlace(registry, scheme, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


def is_same_server(url: str, other: str) -> bool:
    """Return whether two URLs have the same scheme, host and port, written in the same way."""
    return urlsplit(url)[:2] == urlsplit(other)[:2]


async def get_file(server: WebServer, url: str, *, max_bytes: int, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Read the file at a URL, which may be on another server than ``server``. Status 304 is accepted if ``headers`` make the
    request conditional.

    Raises RegistryError, AddressError.
    """
    place = read_url(url)
    own = is_same_server(server.url, url)
    access = RegistryAccess(server.client if own else None, server.proxies, unasked=True)
    patience = replace(server.patience, answer_s=ANSWER_S)
    async with open_connection(
        place.registry,
        scheme=place.scheme,
        credentials=server.credentials if own else None,
        ca=server.ca,
        patience=patience,
        access=access,
    ) as connection:
        shown = url.partition("?")[0]
        ask = RegistryRequest("GET", place.path, "", shown, accepted=(200, 304) if headers else (200,), headers=headers)
        return await connection.ask(ask, max_bytes=max_bytes)
