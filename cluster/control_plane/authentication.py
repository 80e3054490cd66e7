"""Who asks, and whether they may.

One token makes an administrator; it comes as a bearer token or as the password of basic authentication (kubectl sends no
token over plain HTTP, but it sends what stands in the server's URL). A wrong token is 401, none is ``system:anonymous``,
who may look at health and version. An administrator may impersonate; whoever is no administrator may see discovery and
nothing else (roles are stored, not yet evaluated).
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.kinds import Kind

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
_PUBLIC: Final = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY: Final = ("/api", "/apis", "/openapi")


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...]

    @property
    def administrator(self) -> bool:
        """Whether everything is allowed."""
        return MASTERS in self.groups


ADMINISTRATOR: Final = User("admin", (MASTERS, AUTHENTICATED))
ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


class Authenticator:
    """Tells users by their token; without a token everybody is an administrator (the in-memory transport)."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def user(self, headers: Mapping[str, str]) -> User:
        """The user of a request, impersonation included. Raises StatusError (401, 403)."""
        user = self._authenticated(headers.get("authorization", ""))
        name = headers.get("impersonate-user", "")
        if not name:
            return user
        if not user.administrator:
            message = (
                f'users "{name}" is forbidden: User "{user.name}" cannot impersonate resource "users" in API group ""'
            )
            raise status.StatusError(
                403, "Forbidden", f"{message} at the cluster scope", {"name": name, "kind": "users"}
            )
        groups = tuple(group.strip() for group in headers.get("impersonate-group", "").split(",") if group.strip())
        return User(name, (*groups, AUTHENTICATED))

    def _authenticated(self, authorization: str) -> User:
        if self._token is None:
            return ADMINISTRATOR
        if not authorization:
            return ANONYMOUS
        if hmac.compare_digest(_secret(authorization).encode(), self._token.encode()):
            return ADMINISTRATOR
        raise status.unauthorized()


def _secret(authorization: str) -> str:
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def authorize_path(user: User, method: str, path: str) -> None:
    """Refuse what is not a resource to those who may not see it. Raises StatusError (403)."""
    public = _PUBLIC if AUTHENTICATED not in user.groups else (*_PUBLIC, *_DISCOVERY)
    allowed = method == "GET" and any(path == prefix or path.startswith(f"{prefix}/") for prefix in public)
    if not user.administrator and not allowed:
        raise status.forbidden_path(user.name, method.lower(), path)


def authorize_resource(user: User, verb: str, kind: Kind, namespace: str, name: str, subresource: str) -> None:
    """Refuse a verb on a resource. Raises StatusError (403)."""
    if user.administrator:
        return
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    why = f'User "{user.name}" cannot {verb} resource "{resource}" in API group "{kind.group}" {where}'
    raise status.forbidden(kind, name, why)
