"""The authorization of authenticated requests, which precedes all further checks. Refused requests raise StatusError (403)."""

from typing import Final

from wharfinger.control_plane.access.rbac import decide
from wharfinger.control_plane.access.role_rules import Attributes
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.routes import ResourceRoute
from wharfinger.formats.json.value import JsonObject

_NAME_TERM: Final = "metadata.name="


def attributes_of(user: User, route: ResourceRoute, verb: str, field_selector: str = "") -> Attributes:
    """Return the attributes of a request for a resource.

    If ``field_selector`` restricts a list, a watch or a deletion of a collection to one name, the attributes contain that name.
    """
    namespaces = route.plural == "namespaces" and not route.group
    name = route.name
    if not name and verb in {"list", "watch", "deletecollection"}:
        terms = [term for term in field_selector.split(",") if term.startswith(_NAME_TERM)]
        name = terms[0].removeprefix(_NAME_TERM).lstrip("=") if terms else ""
    return Attributes(
        user=user,
        verb=verb,
        namespace=route.name if namespaces else route.namespace,
        group=route.group,
        version=route.version,
        resource=route.plural,
        subresource=route.subresource.partition("/")[0],
        name=name,
    )


def authorize_resource(view: ClusterView, asked: Attributes) -> None:
    """Refuse a request for a resource if the user may not make it. Raises StatusError (403)."""
    if asked.user.administrator:
        return
    decision = decide(view, asked)
    if decision.allowed:
        return
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    what = f'resource "{asked.combined_resource}" in API group "{asked.group}" {where}'
    why = f'User "{asked.user.name}" cannot {asked.verb} {what}'
    raise forbidden(asked, f"{why}: {decision.reason}" if decision.reason else why)


def authorize_creation(view: ClusterView, user: User, kind: Kind, version: str, namespace: str, name: str) -> None:
    """Refuse an update or an apply that would create an object, unless the user may create it. Raises StatusError (403)."""
    if not user.administrator:
        route = ResourceRoute(kind.group, version, namespace, kind.plural, name)
        authorize_resource(view, attributes_of(user, route, "create"))


def authorize(view: ClusterView, asked: Attributes) -> None:
    """Refuse a request, for a resource or for a path, if the user may not make it. Raises StatusError (403)."""
    if not asked.path:
        authorize_resource(view, asked)
    elif not decide(view, asked).allowed:
        raise status.forbidden_path(asked.user.name, asked.verb, asked.path)


def forbidden(asked: Attributes, why: str) -> status.StatusError:
    """Return a 403 error about a resource, whether that resource is served or not."""
    qualified = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    what = f'{qualified} "{asked.name}"' if asked.name else qualified
    named: JsonObject = {"name": asked.name} if asked.name else {}
    grouped: JsonObject = {"group": asked.group} if asked.group else {}
    return status.StatusError(
        403, "Forbidden", f"{what} is forbidden: {why}", {**named, **grouped, "kind": asked.resource}
    )
