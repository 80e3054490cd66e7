"""Impersonation of another user with the ``Impersonate-*`` headers, each of which needs a permission of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from wharfinger.control_plane.access.request_authorization import authorize, authorize_resource, forbidden
from wharfinger.control_plane.access.role_rules import Attributes
from wharfinger.control_plane.access.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    User,
    service_account_groups,
    service_account_of,
)
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.wire import status

_USER: Final = "impersonate-user"
_GROUP: Final = "impersonate-group"
_UID: Final = "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
_NODE: Final = "system:node:"
_GROUP_NAME: Final = "authentication.k8s.io"


def impersonated(view: ClusterView, user: User, headers: Mapping[str, str], asked: Attributes) -> User:
    """Return the user that the request runs as: ``user``, or the user that the headers name.

    ``asked`` is the request itself, with ``user`` as its user. Raises StatusError: 403 if the impersonation is not allowed, and
    400 if the headers contain groups, a UID or extra fields, but no user name.
    """
    if not impersonates(headers):
        return user
    wanted = _requested_user(headers)
    if wanted is None:
        return user
    refused: status.StatusError | None = None
    for mode in _modes(user, wanted):
        try:
            return _impersonated_in(view, asked, wanted, mode)
        except status.StatusError as error:
            refused = refused or error
    raise refused or status.internal("all impersonation modes failed")


def impersonates(headers: Mapping[str, str]) -> bool:
    """Return whether any header requests impersonation."""
    return any([name.startswith("impersonate-") for name in headers])  # noqa: C419 - a list is quicker


def _requested_user(headers: Mapping[str, str]) -> User | None:
    name, uid = headers.get(_USER, ""), headers.get(_UID, "")
    groups = _values(headers[_GROUP]) if _GROUP in headers else ()
    extra = {
        unquote(key.removeprefix(_EXTRA)): _values(value) for key, value in headers.items() if key.startswith(_EXTRA)
    }
    if name:
        return User(name, groups, uid, extra)
    if groups or extra or uid:
        shown = f"Groups:{_go_list(groups)}, Extra:map[string][]string{_go_map(extra)}"
        raise status.bad_request(
            f'requested &user.DefaultInfo{{Name:"", UID:"{uid}", {shown}}} without impersonating a user name'
        )
    return None


def _values(header: str) -> tuple[str, ...]:
    """Return the values of a header that may occur several times; the HTTP server joins such headers with line feeds."""
    return tuple(value.strip() for value in header.split("\n"))


def _go_list(values: tuple[str, ...]) -> str:
    return "[]string{" + ", ".join(f'"{value}"' for value in values) + "}" if values else "[]string(nil)"


def _go_map(extra: Mapping[str, tuple[str, ...]]) -> str:
    members = ", ".join(f'"{key}":{_go_list(values)}' for key, values in extra.items())
    return f"{{{members}}}" if extra else "(nil)"


def _modes(user: User, wanted: User) -> tuple[str, ...]:
    """Return the modes of impersonation to try, in this order (KEP-5284): a narrow mode comes before the original mode.

    "" is the original mode, in which any user may be impersonated.
    """
    if user.administrator:
        return ("",)
    alone = not (wanted.groups or wanted.uid or wanted.extra)
    if wanted.name.startswith(_NODE):
        return ("arbitrary-node", "") if alone else ("",)
    if service_account_of(wanted.name) is not None:
        return ("serviceaccount", "") if alone else ("",)
    return ("user-info", "")


def _impersonated_in(view: ClusterView, asked: Attributes, wanted: User, mode: str) -> User:
    """Return the impersonated user, if this mode allows the impersonation. Raises StatusError."""
    if mode:
        authorize(view, replace(asked, verb=f"impersonate-on:{mode}:{asked.verb}"))
    for part in _needed_permissions(asked.user, wanted, mode):
        authorize_resource(view, part)
    groups = wanted.groups
    account = service_account_of(wanted.name)
    if account is not None and not groups:
        groups = service_account_groups(account[0])
    if mode and wanted.name.startswith(_NODE):
        groups = ("system:nodes",)
    if wanted.name == ANONYMOUS.name:
        groups += () if UNAUTHENTICATED in groups else (UNAUTHENTICATED,)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups += (AUTHENTICATED,)
    return replace(wanted, groups=groups)


def _needed_permissions(user: User, wanted: User, mode: str) -> Iterator[Attributes]:
    """Yield each permission that ``user`` needs to impersonate ``wanted``: for the user name, the UID, each group and each
    extra field.
    """
    group = _GROUP_NAME if mode else ""
    act = Attributes(user=user, verb=f"impersonate:{mode}" if mode else "impersonate", group=group, version="v1")
    account = service_account_of(wanted.name)
    if account is not None:
        yield replace(act, resource="serviceaccounts", namespace=account[0], name=account[1])
    elif mode and wanted.name.startswith(_NODE):
        yield replace(act, resource="nodes", name=wanted.name.removeprefix(_NODE))
    else:
        yield replace(act, resource="users", name=wanted.name)
    if wanted.uid:
        yield replace(act, group=_GROUP_NAME, resource="uids", name=wanted.uid)
    for name in wanted.groups:
        if mode and name == MASTERS:
            raise forbidden(
                replace(act, resource="groups", name=name), "impersonating the system:masters group is not allowed"
            )
        yield replace(act, resource="groups", name=name)
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(act, group=_GROUP_NAME, resource="userextras", subresource=key, name=value)
