"""The URLs at which a release can be reached, from its Ingresses and Gateway-API routes (spec runtime §8.9).

Only endpoints that the chart's author marked with the annotation :data:`ENDPOINT` on the Ingress, the route, or the Gateway are
reported, because most hosts of a chart are not for users. The annotation's value is the description; ``"true"`` means that there
is no description, ``"false"`` removes the mark.

An Ingress gives a URL for each host and path: https if its ``tls`` names the host (or no hosts at all). A route gives a URL for
each of its hostnames and paths. If its Gateway is among the objects, scheme and port are those of the listeners that the route is
attached to; otherwise the scheme is https. A marked Gateway gives a URL for each listener with a hostname. A missing host or a
wildcard gives no URL, unless the status contains an address (``loadBalancer.ingress``, ``addresses``).

Pure. Rendered objects have no status; the live objects may supply an address for a rendered object without a host.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find, find_int, find_list, find_str
from wharfinger.kube.resource import kind_of, name_of, namespace_of, split_api_version

ENDPOINT: Final = "wharfinger.dev/application-endpoint"
MAX_ENDPOINTS: Final = 50
"""The largest number of endpoints of one release, so that they fit into a status."""
MAX_CHARS: Final = 500
"""The longest URL, and the longest description, in characters."""

_GATEWAY: Final = "gateway.networking.k8s.io"
_ROUTES: Final = frozenset({"HTTPRoute", "GRPCRoute"})
KINDS: Final = frozenset({"Ingress", "Gateway", *_ROUTES})
"""The kinds of the objects that endpoints are found in."""
_PORTS: Final = {"http": 80, "https": 443}
_TLS: Final = frozenset({"HTTPS", "TLS"})
_Name: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A URL for users, and its description; "" if the author gave no description."""

    url: str
    description: str = ""


def endpoint_urls(objects: Iterable[JsonObject], live: Iterable[JsonObject] = ()) -> tuple[Endpoint, ...]:
    """Return the endpoints of the objects of a release, in their order, each URL once; at most MAX_ENDPOINTS.

    ``live`` are the same objects in the cluster, as far as they are known. Parts with an unexpected shape are skipped.
    """
    known = {_name(obj): obj for obj in live}
    own = tuple(objects)
    gateways = {_name(obj): obj for obj in own if _is(obj, _GATEWAY, "Gateway")}
    found: dict[str, Endpoint] = {}
    for obj in own:
        try:
            description = find(obj, "metadata", "annotations", ENDPOINT)
            if not isinstance(description, str) or description.strip().lower() == "false":
                continue
            for url in _urls(obj, known.get(_name(obj)), gateways, known):
                if len(url) <= MAX_CHARS and len(found) < MAX_ENDPOINTS:
                    found.setdefault(url, Endpoint(url, _description(description)))
        except ShapeError:
            continue
    return tuple(found.values())


def _description(text: str) -> str:
    words = " ".join(text.split())
    return "" if words.lower() == "true" else words[:MAX_CHARS]


def _urls(
    obj: JsonObject, live: JsonObject | None, gateways: Mapping[_Name, JsonObject], known: Mapping[_Name, JsonObject]
) -> Iterator[str]:
    group, kind = split_api_version(kind_of(obj)[0])[0], kind_of(obj)[1]
    if group == "networking.k8s.io" and kind == "Ingress":
        yield from _of_ingress(obj, live)
    elif group == _GATEWAY and kind in _ROUTES:
        yield from _of_route(obj, gateways, known)
    elif group == _GATEWAY and kind == "Gateway":
        yield from _of_gateway(obj, live)


def _of_ingress(obj: JsonObject, live: JsonObject | None) -> Iterator[str]:
    address = _address(find_list(live, "status", "loadBalancer", "ingress")) if live is not None else ""
    tls = [str(host) for entry in find_list(obj, "spec", "tls") for host in find_list(entry, "hosts") or [""]]
    rules = find_list(obj, "spec", "rules")
    for rule in rules:
        host = find_str(rule, "host")
        secure = "" in tls or any(_covers(pattern, host) for pattern in tls)
        for path in _paths(find_list(rule, "http", "paths")):
            yield from _url("https" if secure else "http", _reachable(host) or address, None, path)
    if not rules and find(obj, "spec", "defaultBackend") is not None:
        yield from _url("https" if tls else "http", address, None, "/")


def _paths(entries: list[JsonValue]) -> list[str]:
    """Return the paths that users can open; if a path contains a pattern, only the part before the pattern."""
    paths = [find_str(entry, "path").split("*")[0].split("(")[0] or "/" for entry in entries]
    return list(dict.fromkeys(path if path.startswith("/") else f"/{path}" for path in paths)) or ["/"]


def _of_route(
    obj: JsonObject, gateways: Mapping[_Name, JsonObject], known: Mapping[_Name, JsonObject]
) -> Iterator[str]:
    hosts = [host for host in find_list(obj, "spec", "hostnames") if isinstance(host, str)]
    paths = _paths(
        [
            {"path": find_str(match, "path", "value")}
            for rule in find_list(obj, "spec", "rules")
            for match in find_list(rule, "matches") or [{}]
            if find_str(match, "path", "type") != "RegularExpression"
        ]
    )
    served = [
        listener
        for parent in find_list(obj, "spec", "parentRefs")
        if (gateway := gateways.get(_parent(parent, namespace_of(obj)))) is not None
        for listener in _listeners(gateway, known.get(_name(gateway)), find_str(parent, "sectionName"))
    ]
    for listener in served or [_Listener("https", None, "", "")]:
        for host in hosts or [listener.host]:
            if not listener.host or _covers(listener.host, host):
                for path in paths:
                    yield from _url(listener.scheme, _reachable(host) or listener.address, listener.port, path)


def _of_gateway(obj: JsonObject, live: JsonObject | None) -> Iterator[str]:
    for one in _listeners(obj, live, ""):
        yield from _url(one.scheme, _reachable(one.host) or one.address, one.port, "/")


@dataclass(frozen=True, slots=True)
class _Listener:
    """A listener of a Gateway. ``host`` is "" for any host; ``address`` is the Gateway's address, "" if it is not known."""

    scheme: str
    port: int | None
    host: str
    address: str


def _listeners(gateway: JsonObject, live: JsonObject | None, section: str) -> list[_Listener]:
    """Return the listeners that speak HTTP; if ``section`` is given, only the listener of that name."""
    address = _address(find_list(live, "status", "addresses")) if live is not None else ""
    return [
        _Listener(
            "https" if find_str(one, "protocol") in _TLS else "http",
            find_int(one, "port") or None,
            find_str(one, "hostname"),
            address,
        )
        for one in find_list(gateway, "spec", "listeners")
        if find_str(one, "protocol") in {"HTTP", *_TLS} and section in ("", find_str(one, "name"))
    ]


def _parent(parent: JsonValue, namespace: str) -> _Name:
    return f"Gateway.{_GATEWAY}", find_str(parent, "namespace") or namespace, find_str(parent, "name")


def _url(scheme: str, host: str, port: int | None, path: str) -> Iterator[str]:
    """Yield the URL, or nothing if no usable host is known."""
    if not host or "*" in host or any(char.isspace() for char in host + path):
        return
    place = f"[{host}]" if ":" in host else host
    shown = "" if port is None or port == _PORTS[scheme] else f":{port}"
    yield f"{scheme}://{place}{shown}{path}"


def _reachable(host: str) -> str:
    return "" if host.startswith("*") else host


def _covers(pattern: str, host: str) -> bool:
    """Return whether a name that may begin with ``*.`` covers this host."""
    return pattern == host or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def _address(entries: list[JsonValue]) -> str:
    """Return the first host name or address in a status."""
    for entry in entries:
        if found := find_str(entry, "hostname") or find_str(entry, "ip") or find_str(entry, "value"):
            return found
    return ""


def _is(obj: JsonObject, group: str, kind: str) -> bool:
    try:
        api_version, found = kind_of(obj)
    except ShapeError:
        return False
    return found == kind and split_api_version(api_version)[0] == group


def _name(obj: JsonObject) -> _Name:
    """Return kind with group, namespace and name; empty if the object has an unexpected shape."""
    try:
        api_version, kind = kind_of(obj)
        return f"{kind}.{split_api_version(api_version)[0]}", namespace_of(obj), name_of(obj)
    except ShapeError:
        return "", "", ""
