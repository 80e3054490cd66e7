"""The URLs at which a release can be reached, from its Ingresses, Gateways and Gateway-API routes (spec/runtime §8.9).

Most hosts of a chart are not for users. So an Ingress, a route or a Gateway gives URLs only if the chart's author has marked it
with the annotation :data:`ENDPOINT`. The annotation's value is the description of the URLs. ``"true"`` means that there is no
description, and ``"false"`` removes the mark.

* An Ingress gives a URL for each host and path. The scheme is https if an entry of its ``tls`` names the host, or names no hosts.
* A route gives a URL for each of its hostnames and paths. If its Gateway is among the objects, scheme and port are those of the
  listeners to which the route is attached. Otherwise, the scheme is https.
* A Gateway gives a URL for each of its HTTP, HTTPS and TLS listeners.

If the host is missing or is a wildcard, it is replaced by the address in the status of the Ingress (``loadBalancer.ingress``) or
the Gateway (``addresses``). Without such an address, there is no URL. Rendered objects have no status, so the status comes from
the live objects, as far as they are known.

This module is pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find, find_int, find_list, find_str
from wharfinger.kube.resource import kind_of, name_of, namespace_of, split_api_version

ENDPOINT: Final = "wharfinger.dev/application-endpoint"
MAX_ENDPOINTS: Final = 50
"""The largest number of endpoints of one release. It is limited so that the endpoints fit into a status."""
MAX_CHARS: Final = 500
"""The largest length of a URL, and of a description, in characters."""

_GATEWAY: Final = "gateway.networking.k8s.io"
_ROUTES: Final = frozenset({"HTTPRoute", "GRPCRoute"})
KINDS: Final = frozenset({"Ingress", "Gateway", *_ROUTES})
"""The kinds of objects from which endpoints are read."""
_PORTS: Final = {"http": 80, "https": 443}
_TLS: Final = frozenset({"HTTPS", "TLS"})
_Name: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A URL at which users reach a release. The description is "" if the chart's author gave none."""

    url: str
    description: str = ""


def endpoint_urls(objects: Iterable[JsonObject], live: Iterable[JsonObject] = ()) -> tuple[Endpoint, ...]:
    """Return at most MAX_ENDPOINTS endpoints of a release's objects, in the order of the objects, each URL once.

    ``live`` has the same objects as they are in the cluster, as far as they are known. Objects with an unexpected shape are
    skipped.
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
    """Return the paths that users can open. If a path contains a pattern, only the part before the pattern is returned."""
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
    """A listener of a Gateway. ``host`` is "" if it accepts any host. ``address`` is the Gateway's address, or "" if unknown."""

    scheme: str
    port: int | None
    host: str
    address: str


def _listeners(gateway: JsonObject, live: JsonObject | None, section: str) -> list[_Listener]:
    """Return the listeners for HTTP, HTTPS and TLS. If ``section`` is given, return only the listener of this name."""
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
    """Return whether the pattern, a host name that may begin with ``*.``, matches this host."""
    return pattern == host or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def _address(entries: list[JsonValue]) -> str:
    """Return the first host name or address among the entries of a list in a status; "" if there is none."""
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
    """Return the kind with its group, the namespace and the name. All are "" if the object has an unexpected shape."""
    try:
        api_version, kind = kind_of(obj)
        return f"{kind}.{split_api_version(api_version)[0]}", namespace_of(obj), name_of(obj)
    except ShapeError:
        return "", "", ""
