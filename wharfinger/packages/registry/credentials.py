"""Authentication at a registry: Basic, and Bearer tokens from the realm that a challenge names.

The content of a challenge comes from the network, so it cannot be trusted. Four rules protect passwords and tokens:

* credentials are sent only to the registry's own origin, and to the token realm that it names;
* a login goes only to a realm on the registry's own host, on a host that the user named, or, if the realm is reached over
  https, on a host of the registry's domain (`may_get_login`);
* if the registry is reached over https, a password is not sent to a realm over http;
* credentials and tokens have no readable ``repr`` and are in no message.

Sources: RFC 9110 §11 (challenges), RFC 7617 (Basic), RFC 6750 §3 and distribution's token specification (Bearer).
"""

import base64
import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final

import httpx

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import as_object, decode_json, find, find_str
from wharfinger.packages.errors import RegistryError

MAX_TOKEN_ANSWER: Final = 256 * 1024
MAX_CHALLENGE: Final = 8 * 1024
DEFAULT_TOKEN_LIFE: Final = 60.0
"""The lifetime of a token in seconds if the answer has no ``expires_in``; the default of the token specification."""

_TOKEN68: Final = re.compile(r"[\x21-\x7e]{1,131072}\Z")
_PARAMETER: Final = re.compile(r'\s*,?\s*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCHEME: Final = re.compile(r"\s*,?\s*([A-Za-z][A-Za-z0-9_-]*)(?=\s|\Z|,)(?!\s*=)")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and a password (or an access token in place of the password), or an identity token, which a token realm
    exchanges for an access token.
    """

    username: str
    password: str = field(repr=False)
    identity_token: str = field(default="", repr=False)
    """An OAuth2 refresh token; if it is set, a token realm gets it instead of name and password."""

    realms: tuple[str, ...] = ()
    """The hosts outside of the registry's domain to which the login may be sent, to get a token for the registry."""

    @property
    def can_basic(self) -> bool:
        """True if there is a user name and password, not only an identity token."""
        return not self.identity_token

    def basic(self) -> str:
        """Return the value of an Authorization header for Basic authentication."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True)
class BasicChallenge:
    """The challenge of a registry that asks for a user name and a password."""


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """The challenge of a registry that asks for a token from ``realm``."""

    realm: str
    service: str
    scope: str


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, and the number of seconds after its receipt for which it may be used."""

    value: str = field(repr=False)
    lifetime: float

    def header(self) -> str:
        """Return the value of an Authorization header."""
        return "Bearer " + self.value


def read_challenges(headers: list[str]) -> tuple[BasicChallenge | BearerChallenge, ...]:
    """Return the supported challenges of WWW-Authenticate headers, Bearer first."""
    found: list[BasicChallenge | BearerChallenge] = []
    for header in headers:
        found.extend(_read_header(header[:MAX_CHALLENGE]))
    return tuple(sorted(found, key=lambda challenge: isinstance(challenge, BasicChallenge)))


def _read_header(text: str) -> list[BasicChallenge | BearerChallenge]:
    found: list[BasicChallenge | BearerChallenge] = []
    position = 0
    while scheme := _SCHEME.match(text, position):
        position = scheme.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(text, position):
            quoted = parameter[2]
            value = parameter[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters.setdefault(parameter[1].lower(), value)
            position = parameter.end()
        if scheme[1].lower() == "basic":
            found.append(BasicChallenge())
        elif scheme[1].lower() == "bearer" and parameters.get("realm"):
            found.append(
                BearerChallenge(parameters["realm"], parameters.get("service", ""), parameters.get("scope", ""))
            )
    return found


def token_url(challenge: BearerChallenge, *, registry: httpx.URL, scope: str) -> httpx.URL:
    """Return the URL to request the token from. Raises the errors of `realm_url`.

    ``scope`` is used if the challenge does not name a scope.
    """
    query = httpx.QueryParams({"service": challenge.service} if challenge.service else {})
    for one in (challenge.scope or scope).split(" "):
        query = query.add("scope", one) if one else query
    return realm_url(challenge, registry=registry).copy_merge_params(query)


def token_form(challenge: BearerChallenge, *, scope: str, identity_token: str) -> bytes:
    """Return the form to post to the realm to exchange an identity token (distribution's OAuth2 token specification)."""
    form = {
        "grant_type": "refresh_token",
        "client_id": "wharfinger",
        "service": challenge.service,
        "scope": challenge.scope or scope,
        "refresh_token": identity_token,
    }
    return str(httpx.QueryParams(form)).encode()


def realm_url(challenge: BearerChallenge, *, registry: httpx.URL) -> httpx.URL:
    """Return the realm of a challenge. Raises RegistryError if it is not an http(s) URL, or uses http although the registry
    uses https.
    """
    try:
        realm = httpx.URL(challenge.realm)
    except (httpx.InvalidURL, ValueError) as error:
        raise RegistryError(
            f"registry {registry.netloc.decode()}: its token realm is not a URL", transient=False
        ) from error
    if realm.scheme not in {"http", "https"} or not realm.host or realm.userinfo:
        raise RegistryError(
            f"registry {registry.netloc.decode()}: its token realm is not an http(s) URL", transient=False
        )
    if realm.scheme == "http" and registry.scheme != "http":
        raise RegistryError(
            f"registry {registry.netloc.decode()}: it asks for the password to be sent to {realm.host} over plain http, so the "
            f"password was not sent; ask the registry's operator to offer the realm over https",
            transient=False,
        )
    return realm


def check_realm(realm: httpx.URL, *, registry: httpx.URL, realms: tuple[str, ...]) -> None:
    """Raise RegistryError if the login for ``registry`` must not be sent to this realm (:func:`may_get_login`)."""
    if not may_get_login(realm, registry=registry, realms=realms):
        raise RegistryError(
            f"registry {registry.netloc.decode()}: it asks for the login to be sent to another host, "
            f"{realm.host[:200]}, so the login was not sent; if that host issues the tokens of the registry, name it in "
            "spec.registry.tokenRealms of the PackageRepository "
            "(--token-realm on the command line)",
            transient=False,
        )


def may_get_login(realm: httpx.URL, *, registry: httpx.URL, realms: tuple[str, ...]) -> bool:
    """Return whether the login for a registry may be sent to the server at ``realm``, to request a token.

    The realm's host must be the registry's host, a host in ``realms``, or, over https only, a host in the registry's domain.

    The domain of ``registry.example.com`` is ``example.com`` with all its subdomains. The domain of ``example.com`` is this host
    with its subdomains, because ``com`` is a top-level domain. A registry whose host is an IP address has no domain. The hosts
    in ``realms`` must match exactly.
    """
    host, own = realm.host.lower(), registry.host.lower()
    if host == own or host in realms:
        return True
    if realm.scheme != "https" or _is_address(own):
        return False
    parent = own.partition(".")[2]
    domains = (own, parent) if "." in parent else (own,)
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def read_token(data: bytes, realm_host: str) -> Token:
    """Return the token in a realm's answer. Raises RegistryError if the answer has no token."""
    try:
        answer = as_object(decode_json(data, max_bytes=MAX_TOKEN_ANSWER, what="token answer"), "token answer")
        value = find_str(answer, "token") or find_str(answer, "access_token")
    except FormatError as error:
        raise RegistryError(f"token realm {realm_host}: {error}", transient=True) from error
    if not _TOKEN68.match(value):
        raise RegistryError(f"token realm {realm_host}: its answer has no token", transient=True)
    expires = find(answer, "expires_in")
    usable = isinstance(expires, int | float) and not isinstance(expires, bool) and 0 < expires < 10**7
    return Token(value, float(expires) if usable and isinstance(expires, int | float) else DEFAULT_TOKEN_LIFE)
