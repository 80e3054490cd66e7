"""The route of a request: directly or through a proxy, and with the client's certificate or without it.

The client's certificate is sent only to the registry itself: after a redirect to another server, neither a login nor a
certificate is sent. Each route has its own connections, which are made when it is first used.
"""

import ssl
from typing import Final

import httpx

from wharfinger.formats.proxies import Proxies

_PORTS: Final = {"http": 80, "https": 443}


class RoutedTransport(httpx.AsyncBaseTransport):
    """Connections to the server at ``base``, and to all servers that it redirects to."""

    def __init__(
        self,
        base: httpx.URL,
        proxies: Proxies,
        *,
        own: ssl.SSLContext,
        others: ssl.SSLContext,
        limits: httpx.Limits,
    ) -> None:
        """``own`` has the client's certificate, and is used only for the server at ``base``; ``others`` is used for all other
        servers.
        """
        self._origin = origin_of(base)
        self._proxies = proxies
        self._own = own
        self._others = others
        self._limits = limits
        self._transports: dict[tuple[bool, httpx.URL | None], httpx.AsyncHTTPTransport] = {}

    def route(self, url: httpx.URL) -> str:
        """Return `` through the proxy HOST:PORT`` if requests to a URL go through a proxy, otherwise "". Messages append this
        text.
        """
        proxy = self._proxies.of(url)
        return "" if proxy is None else f" through the proxy {proxy.host}:{proxy.port or _PORTS[proxy.scheme]}"

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on its route. Raises httpx's errors."""
        route = origin_of(request.url) == self._origin, self._proxies.of(request.url)
        transport = self._transports.get(route)
        if transport is None:
            transport = self._transports[route] = self._open(*route)
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        while self._transports:
            await self._transports.popitem()[1].aclose()

    def _open(self, is_own: bool, proxy: httpx.URL | None) -> httpx.AsyncHTTPTransport:  # noqa: FBT001 - the parts of a key
        return httpx.AsyncHTTPTransport(
            verify=self._own if is_own else self._others,
            trust_env=False,
            limits=self._limits,
            proxy=None if proxy is None else self._proxy(proxy),
        )

    def _proxy(self, url: httpx.URL) -> httpx.Proxy:
        return httpx.Proxy(url, ssl_context=self._others if url.scheme == "https" else None)


def origin_of(url: httpx.URL) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL."""
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme, 0)
