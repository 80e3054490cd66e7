"""The authentication of users by token.

The server's own token authenticates an administrator. This token is sent as a bearer token, or as the password of basic
authentication: kubectl sends no token over plain HTTP, but it sends the credentials in the server's URL. A service account's
token authenticates that service account. A wrong token is answered with 401; a request without a token is ``system:anonymous``.
:mod:`~wharfinger.control_plane.access.rbac` decides what a user may do.
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_ACCOUNT: Final = "system:serviceaccount:"
_ACCOUNTS: Final = "system:serviceaccounts"


@dataclass(frozen=True, slots=True)
class User:
    """The user that makes a request."""

    name: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def administrator(self) -> bool:
        """True if the user may do everything."""
        return MASTERS in self.groups


def user_info(user: User) -> JsonObject:
    """Return a user as a UserInfo of ``authentication.k8s.io/v1``, without empty fields."""
    info: JsonObject = {
        "username": user.name,
        "uid": user.uid,
        "groups": [*user.groups],
        "extra": {name: [*values] for name, values in user.extra.items()},
    }
    return {name: value for name, value in info.items() if value}


ADMINISTRATOR: Final = User("admin", (MASTERS, AUTHENTICATED), "admin")
ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
ByToken = Callable[[str], "User | None"]


def service_account_of(name: str) -> tuple[str, str] | None:
    """Return the namespace and the name of the service account with this user name; None for other users."""
    parts = name.removeprefix(_ACCOUNT).split(":") if name.startswith(_ACCOUNT) else []
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups that every service account of a namespace has."""
    return (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}")


def no_account(_token: str) -> User | None:
    """Return None. An Authenticator with this default knows no token of a service account."""
    return None


class Authenticator:
    """An authenticator by token: ``token`` is the administrator's token, and ``accounts`` returns a token's service account.

    If ``token`` is None, every client is the administrator, as the in-memory transport requires.
    """

    def __init__(self, token: str | None, accounts: ByToken = no_account) -> None:
        self._token = token
        self._accounts = accounts

    def user(self, headers: Mapping[str, str]) -> User:
        """Return the user of a request, before any impersonation. Raises StatusError (401)."""
        if self._token is None:
            return ADMINISTRATOR
        secret = _secret(headers.get("authorization", ""))
        if secret is None:
            return ANONYMOUS
        found = self.by_token(secret)
        if found is None:
            raise status.unauthorized()
        return found

    def by_token(self, token: str) -> User | None:
        """Return the user of a token; None for an unknown token."""
        if self._token is not None and hmac.compare_digest(token.encode(), self._token.encode()):
            return ADMINISTRATOR
        return self._accounts(token)


def misplaced_space(authorization: str) -> bool:
    """Return True if a header has several spaces between "Bearer" and the token, so that the token is ignored."""
    parts = authorization.strip().split(" ", 2)
    return len(parts) == 3 and parts[0].lower() == "bearer" and not parts[1]


def _secret(authorization: str) -> str | None:
    """Return the token in an Authorization header; None if the scheme or the token is missing, "" if it cannot be decoded."""
    parts = authorization.strip().split(" ", 2)
    scheme, value = parts[0].lower(), parts[1] if len(parts) > 1 else ""
    if not value or scheme not in _SCHEMES:
        return None
    if scheme == "bearer":
        return value
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


_SCHEMES: Final = frozenset({"bearer", "basic"})
"""The supported schemes; a header with any other scheme is ignored."""
