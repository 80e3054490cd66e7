"""The authorizations that registries accepted, remembered for later connections to the same registry with the same login.

Without this memory, the first request of each new connection to a protected registry is refused (401), because only the refusal
states which authorization the registry wants. So a scan for versions, which needs two requests, would make three with a
password, and four with a token. For each client, the following is remembered:

* whether the registry asked for user name and password;
* the challenge that names the token realm, for each repository and right;
* tokens, until they expire.

A client is identified by the registry's origin, the login, the client certificate, and the trusted authorities. So a token is
never used for another login; a login with a new password is another login. The number of clients and of tokens is bounded, and
all of this is kept in memory only.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.credentials import BearerChallenge, Credentials

MAX_CLIENTS: Final = 256
MAX_TOKENS: Final = 256
"""The largest number of tokens that are remembered for one client. For the challenges of a client, the limit is the same."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The identity of a client at a registry; ``origin`` is the registry's scheme, host and port."""

    origin: str
    credentials: Credentials | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = field(default=None, repr=False)
    ca: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class TokenScope:
    """The scope of a token: a repository, and whether the token also gives the right to write to it."""

    repository: str
    write: bool


class Authorization:
    """The authorization of one client at one registry. ``basic`` is True after the registry asked for the password."""

    def __init__(self) -> None:
        self.basic = False
        self._challenges: OrderedDict[TokenScope, BearerChallenge] = OrderedDict()
        self._tokens: OrderedDict[TokenScope, tuple[str, float]] = OrderedDict()

    def header(self, purpose: TokenScope, now: float) -> str:
        """Return the Authorization header with the token of this scope; "" if there is no token, or if it has expired."""
        header, until = self._tokens.get(purpose, ("", 0.0))
        return header if now < until else ""

    def challenge(self, purpose: TokenScope) -> BearerChallenge | None:
        """Return the remembered challenge with which the registry answered a request of this scope; None if there is none."""
        return self._challenges.get(purpose)

    def put(self, purpose: TokenScope, challenge: BearerChallenge, header: str, until: float) -> None:
        """Remember a token and its challenge; beyond MAX_TOKENS, the oldest ones are forgotten."""
        self._challenges[purpose] = challenge
        self._tokens[purpose] = (header, until)
        for kept in (self._challenges, self._tokens):
            kept.move_to_end(purpose)
            if len(kept) > MAX_TOKENS:
                kept.popitem(last=False)

    def drop(self, purpose: TokenScope) -> None:
        """Forget the token and the challenge for a scope, because the registry refused them."""
        self._challenges.pop(purpose, None)
        self._tokens.pop(purpose, None)


class Authorizations:
    """The authorizations of all clients; beyond MAX_CLIENTS, the least recently used one is forgotten."""

    def __init__(self) -> None:
        self._clients: OrderedDict[ClientIdentity, Authorization] = OrderedDict()

    def of(self, client: ClientIdentity) -> Authorization:
        """Return the authorization of a client, which is empty at first."""
        found = self._clients.setdefault(client, Authorization())
        self._clients.move_to_end(client)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return found
