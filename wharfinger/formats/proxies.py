"""The proxies of the environment: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, read as programs in Go read them.

helm, kubectl and docker are such programs, so the same environment works for them and for Wharfinger. The upper-case name of a
variable takes precedence over the lower-case one. An entry of ``NO_PROXY`` is ``*``, an address, a network (``10.0.0.0/8``),
``example.com`` (the host and its subdomains) or ``.example.com`` (only subdomains). Addresses and names may have a port. A
request to ``localhost`` or to a loopback address never uses a proxy.

A proxy's address may contain a password, so the messages of this module do not contain the address. Source: the documentation of
``golang.org/x/net/http/httpproxy``.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx

MAX_ENTRIES: Final = 10_000
_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[A-Za-z0-9_.:-]+\Z")
_PORT: Final = re.compile(r"(?P<host>.*?)(?::(?P<port>[0-9]{1,5}))?\Z", re.DOTALL)


class ProxyAddressError(ValueError):
    """A proxy in the environment cannot be used; permanent until the environment changes."""


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxy for each scheme (None if it has none), and the hosts that are reached without a proxy."""

    https: httpx.URL | None = field(default=None, repr=False)
    http: httpx.URL | None = field(default=None, repr=False)
    exceptions: tuple[str, ...] = ()

    def of(self, url: httpx.URL) -> httpx.URL | None:
        """Return the proxy for a request; None if the request is sent directly to its host."""
        proxy = {"https": self.https, "http": self.http}.get(url.scheme)
        if proxy is None or _is_loopback(url.host):
            return None
        port = url.port or _PORTS[url.scheme]
        return None if any(_is_excepted(url.host, port, entry) for entry in self.exceptions) else proxy


NO_PROXIES: Final = Proxies()


def read_proxies(environ: Mapping[str, str]) -> Proxies:
    """Return the proxies that an environment names. Raises ProxyAddressError for a proxy that cannot be used."""
    excepted = [entry.strip().lower() for entry in re.split(r"[,\s]+", _value(environ, "NO_PROXY")) if entry.strip()]
    return Proxies(_proxy(environ, "HTTPS_PROXY"), _proxy(environ, "HTTP_PROXY"), tuple(excepted[:MAX_ENTRIES]))


def _value(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.lower()) or "").strip()


def _proxy(environ: Mapping[str, str], name: str) -> httpx.URL | None:
    text = _value(environ, name)
    if not text:
        return None
    try:
        url = httpx.URL(text if "://" in text else f"http://{text}")
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if not _HOST.match(url.host) or url.scheme not in _PORTS:
        raise ProxyAddressError(
            f"{name}: expected the address of an HTTP proxy, such as http://proxy.example:3128; "
            "correct this environment variable"
        )
    return url


def _is_excepted(host: str, port: int, entry: str) -> bool:
    """Return whether an entry of NO_PROXY names this host and port."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, named_port = _split(entry)
    if named_port and int(named_port) != port:
        return False
    if _same_address(host, name):
        return True
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _split(entry: str) -> tuple[str, str]:
    """Return the host and the port of an entry; an IPv6 address has a port only behind brackets."""
    if entry.startswith("["):
        name, _, port = entry[1:].partition("]")
        return name, port.removeprefix(":") if port.removeprefix(":").isdecimal() else ""
    if entry.count(":") > 1:
        return entry, ""
    match = _PORT.match(entry)
    return (match["host"], match["port"] or "") if match else (entry, "")


def _same_address(host: str, name: str) -> bool:
    try:
        return ipaddress.ip_address(host) == ipaddress.ip_address(name)
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
