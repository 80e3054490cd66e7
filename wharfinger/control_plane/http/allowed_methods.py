"""The methods that a path allows, by the kind that it names.

Built-in and custom kinds differ, as in the kube-apiserver, where two servers handle them. If a path names no resource, the answer
is a Status (404) in a built-in group, and plain text in a custom group. For built-in kinds, each path has a set of methods, and
other methods are refused with a 405. For custom kinds, the rules differ: for example, a POST may name an object, and a PUT or
PATCH without a name is refused with a 400.
"""

from functools import lru_cache
from typing import Final

from wharfinger.control_plane.catalog.builtin_kinds import GROUP_ORDER
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.routes import ResourceRoute

_OBJECT: Final = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_COLLECTION: Final = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
_CONNECT: Final = {**_OBJECT, "create": "POST"}
_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class NotServedError(Exception):
    """The path names no resource and no document; the answer is a 404 in plain text."""


def unserved_resource_error(group: str) -> Exception:
    """Return the 404 error for a resource that is not served: a Status in a built-in group, plain text in a custom group."""
    return status.no_such_resource() if group in GROUP_ORDER else NotServedError()


def check_method(served: Served, route: ResourceRoute, method: str) -> None:
    """Refuse a method that the path does not allow. Raises StatusError (400, 404, 405), or NotServedError."""
    if served.kind.custom:
        _check_custom(served, route, method)
        return
    allowed = _builtin(served, route)
    if allowed is None:
        raise status.no_such_resource()
    if method not in allowed:
        raise status.method_not_allowed()


def _builtin(served: Served, route: ResourceRoute) -> frozenset[str] | None:
    kind = served.kind
    if route.namespace and not kind.namespaced:
        return None
    elsewhere = kind.namespaced and not route.namespace
    if route.watch:
        at_none = route.subresource or "watch" not in kind.verbs or (route.name and elsewhere)
        return None if at_none else frozenset({"GET"})
    if not route.name:
        return _methods_of(kind.verbs, {"list": "GET"} if elsewhere else _COLLECTION)
    if elsewhere:
        return None
    return _subresource_methods(served, route.subresource) if route.subresource else _methods_of(kind.verbs, _OBJECT)


def _subresource_methods(served: Served, path: str) -> frozenset[str] | None:
    name, _, rest = path.partition("/")
    found = next((item for item in served.version.subresources if item.name == name), None)
    if found is None or (rest and name != "proxy"):
        return None
    allowed = _methods_of(found.verbs, _CONNECT)
    return allowed | {"HEAD", "OPTIONS"} if allowed is not None and name == "proxy" else allowed


@lru_cache(maxsize=256)
def _methods(verbs: tuple[str, ...], table: tuple[tuple[str, str], ...]) -> frozenset[str] | None:
    return frozenset(method for verb, method in table if verb in verbs) or None


def _methods_of(verbs: tuple[str, ...], table: dict[str, str]) -> frozenset[str] | None:
    return _methods(verbs, tuple(table.items()))


def _check_custom(served: Served, route: ResourceRoute, method: str) -> None:
    """Refuse a method that a path of a custom kind does not allow. Raises StatusError (400, 404, 405), or NotServedError.

    A POST may name an object; it creates the object in its body. Only a GET or a HEAD can watch.
    """
    kind = served.kind
    if route.watch and method not in {"GET", "HEAD"}:
        raise status.method_not_allowed()
    if route.namespace and not kind.namespaced:
        raise NotServedError
    verb = "watch" if route.watch else _VERBS.get(method, "")
    reads_all = verb in {"get", "watch"} and not route.name
    if kind.namespaced and not route.namespace and not reads_all:
        raise NotServedError
    if route.subresource:
        if route.subresource not in {item.name for item in served.version.subresources}:
            raise status.not_found(kind, route.name)
        if verb not in {"get", "update", "patch"}:
            raise _not_supported(kind, verb)
    elif not verb:
        raise _not_supported(kind, verb)
    elif not route.name and verb in {"update", "patch"}:
        raise status.bad_request("name must be provided")


def _not_supported(kind: Kind, verb: str) -> status.StatusError:
    message = f'{verb} is not supported on resources of kind "{kind.resource}"'
    return status.StatusError(405, "MethodNotAllowed", message, {"group": kind.group, "kind": kind.plural})
