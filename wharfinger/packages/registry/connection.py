"""Requests to one registry: connections, redirects and authorization, each with its limits.

The rest of the protocol is in :mod:`~wharfinger.packages.registry.oci_registry`. Requests use the transport of httpx, and not its
client. So there are no cookies, no credentials from the environment, no automatic redirects, and no log lines with whole URLs:
the URLs of redirects to object storage contain signatures. Invariants:

* a login is sent without a challenge only if the origin has asked for it before (``RegistryAccess.known`` remembers that), or
  if ``RegistryAccess.unasked`` is set;
* credentials and tokens are sent only to the registry's own origin (scheme, host, port), and to the token realm that the
  registry names. A realm gets a login only if its host is the registry's host, is named by the user, or is in the registry's
  domain and reached over https;
* https never turns into http, not even by a redirect or an upload location;
* at most ``at_once`` requests run at the same time. The bound is a limiter outside the pool: a bounded httpcore pool loses a slot
  whenever a request is cancelled while it waits for one (encode/httpcore#1093), so the pool itself has no bound;
* every wait for the network is limited: connecting, each read and write, the whole of a small answer, and the transfer of a
  blob, which must not be slower than ``Timeouts.least``.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import httpx
import trio

import wharfinger
from wharfinger.formats.proxies import NO_PROXIES, Proxies
from wharfinger.packages.errors import LoginRefusedError, RegistryError
from wharfinger.packages.network.tls import ClientCertificate, Tls, tls_context
from wharfinger.packages.network.transports import RoutedTransport, origin_of
from wharfinger.packages.registry.address import RegistryAddress, Scheme
from wharfinger.packages.registry.answer import MAX_ERROR_BODY, failure, network_failure
from wharfinger.packages.registry.authorizations import Authorizations, ClientIdentity, TokenScope
from wharfinger.packages.registry.credentials import (
    MAX_TOKEN_ANSWER,
    BasicChallenge,
    BearerChallenge,
    Credentials,
    check_realm,
    read_challenges,
    read_token,
    realm_url,
    token_form,
    token_url,
)
from wharfinger.packages.registry.verified_blob import LeastSpeed

MAX_REDIRECTS: Final = 5
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
CLOSE_S: Final = 5.0
_HOST: Final = re.compile(r"[A-Za-z0-9_.:-]+\Z")
_NEXT: Final = re.compile(r'<([^<>]{1,4096})>\s*;[^,]*?\brel="?next"?')


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds, and the least speed of a blob's transfer."""

    connect_s: float = 10.0
    read_s: float = 30.0
    write_s: float = 30.0
    answer_s: float = 60.0
    least: LeastSpeed = field(default_factory=LeastSpeed)


@dataclass(frozen=True, slots=True)
class RegistryRequest:
    """One request. ``what`` names it in errors. With ``write``, the request needs a token with the right to push."""

    method: str
    url: str | httpx.URL
    repository: str
    what: str
    write: bool = False
    accepted: tuple[int, ...] = (200,)
    content: bytes = field(default=b"", repr=False)
    content_type: str = ""
    accept: str = "*/*"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OpenAnswer:
    """An accepted answer whose body is still being received; read ``chunks`` at most once, inside the block of
    `RegistryConnection.exchange`.
    """

    status: int
    headers: httpx.Headers
    url: httpx.URL
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    """An accepted answer with its whole body; ``next_page`` is the URL of the next page from a Link header."""

    status: int
    headers: httpx.Headers
    body: bytes
    next_page: httpx.URL | None


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """The access to a registry: the proxies, the client's certificate, and a function that returns a newer login.

    ``renew`` is called at most once for a request, after the known login was refused with 401. With ``unasked``, the login is
    sent with each request. Servers that answer 404 instead of asking for a login need this. ``known`` has the authorizations of
    earlier connections.
    """

    client: ClientCertificate | None = None
    proxies: Proxies = NO_PROXIES
    renew: Callable[[], Awaitable[Credentials | None]] | None = field(default=None, repr=False)
    unasked: bool = False
    known: Authorizations | None = field(default=None, repr=False)


DIRECT: Final = RegistryAccess()


class RegistryConnection:
    """Requests to one registry; made by `open_connection`."""

    def __init__(
        self,
        transport: RoutedTransport,
        base: httpx.URL,
        credentials: Credentials | None,
        patience: Timeouts,
        at_once: int,
        access: RegistryAccess,
        ca: str,
    ) -> None:
        self.base = base
        self.name = base.netloc.decode()
        self.patience = patience
        self._transport = transport
        self._credentials = credentials
        self._access = access
        self._slots = trio.CapacityLimiter(at_once)
        self._client = ClientIdentity(str(base), credentials, access.client, ca)
        self._all_known = access.known or Authorizations()
        self._known = self._all_known.of(self._client)
        self._known.basic = self._known.basic or access.unasked

    async def ask(self, ask: RegistryRequest, *, max_bytes: int) -> Answer:
        """Send a request, and read the whole answer.

        Raises RegistryError if no accepted answer arrives completely and in time, or if it is longer than ``max_bytes``.
        """
        patience = self.patience.answer_s + len(ask.content) / self.patience.least.bytes_per_s
        try:
            with trio.fail_after(patience):
                async with self.exchange(ask) as incoming:
                    body = await _read_all(incoming.chunks, max_bytes)
                    if body is None:
                        raise RegistryError(f"{ask.what}: the answer has more than {max_bytes} bytes", transient=False)
        except trio.TooSlowError as error:
            raise RegistryError(f"{ask.what}: no complete answer within {patience:.0f} s", transient=True) from error
        link = _NEXT.search(incoming.headers.get("link", ""))
        following = self.own_url(link[1], ask.what, incoming.url) if link else None
        return Answer(incoming.status, incoming.headers, body, following)

    @asynccontextmanager
    async def exchange(self, ask: RegistryRequest) -> AsyncIterator[OpenAnswer]:
        """Send a request; the body of the response is read inside the block. Raises RegistryError."""
        # The slot does not belong to the task, because a task may hold one slot while it takes another.
        borrower = object()
        await self._slots.acquire_on_behalf_of(borrower)
        try:
            response, url = await self._send(ask)
            chunks = _chunks(response, ask.what)
            try:
                yield OpenAnswer(response.status_code, response.headers, url, chunks)
            finally:
                await _abandon(response, chunks)
        finally:
            self._slots.release_on_behalf_of(borrower)

    def own_url(self, location: str, what: str, origin: httpx.URL | None = None) -> httpx.URL:
        """Return the URL of a location that the registry named, with the scheme, host and port of this connection.

        A registry behind a proxy may name itself with a wrong scheme or port, so these are replaced. Its host must be right.
        Raises RegistryError for another host.
        """
        try:
            url = (origin or self.base).join(location)
        except (httpx.InvalidURL, ValueError) as error:
            raise RegistryError(f"{what}: the registry's Location is not a URL", transient=False) from error
        if url.host != self.base.host:
            raise RegistryError(
                f"{what}: the registry points at another host ({url.host[:200]}); refused", transient=False
            )
        return self.base.copy_with(raw_path=url.raw_path)

    async def _send(self, ask: RegistryRequest) -> tuple[httpx.Response, httpx.URL]:
        """Send the request until an accepted answer arrives: follow redirects, and authorize if the registry demands it."""
        url = self.base.join(ask.url)
        asked = renewed = False
        for _ in range(MAX_REDIRECTS + 4):
            own = origin_of(url) == origin_of(self.base)
            sent = await self._authorization(ask) if own else ""
            response = await self._once(ask, url, sent)
            status = response.status_code
            if status in ask.accepted:
                return response, url
            if status in REDIRECTS and ask.method in {"GET", "HEAD"}:
                location = response.headers.get("location", "")
                await _abandon(response, None)
                url = self._follow(url, location, ask.what)
                continue
            challenges = read_challenges(response.headers.get_list("www-authenticate"))
            body = await _error_body(response, ask.what)
            refused = failure(ask.what, status, body, response.headers)
            if status == 403 and own:
                # The user may get the right later, but this token never gets it. So the next request needs a new token.
                self._known.drop(TokenScope(ask.repository, ask.write))
            if status != 401 or not own:
                raise refused
            try:
                if not asked and await self._authorize(challenges, ask, sent):
                    asked = True
                    continue
            except LoginRefusedError as error:
                refused = error
            if renewed or not await self._renew():
                raise refused
            asked, renewed = False, True
        raise RegistryError(f"{ask.what}: more than {MAX_REDIRECTS} redirects", transient=False)

    async def _once(self, ask: RegistryRequest, url: httpx.URL, authorization: str) -> httpx.Response:
        headers = {
            "User-Agent": f"wharfinger/{wharfinger.__version__}",
            "Accept": ask.accept,
            "Accept-Encoding": "identity",
            **dict(ask.headers),
        }
        if authorization:
            headers["Authorization"] = authorization
        if ask.content_type:
            headers["Content-Type"] = ask.content_type
        patience = self.patience
        timeout = httpx.Timeout(
            connect=patience.connect_s, read=patience.read_s, write=patience.write_s, pool=patience.connect_s
        )
        try:
            request = httpx.Request(
                ask.method, url, headers=headers, content=ask.content, extensions={"timeout": timeout.as_dict()}
            )
            return await self._transport.handle_async_request(request)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise network_failure(ask.what + self._transport.route(httpx.URL(url)), error) from error

    def _follow(self, url: httpx.URL, location: str, what: str) -> httpx.URL:
        try:
            target = url.join(location)
        except (httpx.InvalidURL, ValueError) as error:
            raise RegistryError(f"{what}: redirected to an invalid URL", transient=False) from error
        if target.scheme not in {"http", "https"} or not _HOST.match(target.host) or not location or target.userinfo:
            raise RegistryError(
                f"{what}: redirected to a URL that is not accepted; expected http(s), a valid host, and no user name or password",
                transient=False,
            )
        if url.scheme == "https" and target.scheme != "https":
            raise RegistryError(
                f"{what}: redirected from https to plain http ({target.host[:200]}); refused, correct the registry's set-up",
                transient=False,
            )
        return target

    async def _authorization(self, ask: RegistryRequest) -> str:
        """Return the Authorization header that the registry requires, as far as earlier answers have shown; "" if none is
        required. An expired token is replaced first.
        """
        purpose = TokenScope(ask.repository, ask.write)
        header = self._known.header(purpose, trio.current_time())
        if not header and (challenge := self._known.challenge(purpose)) is not None:
            try:
                await self._fetch_token(challenge, ask)
            except RegistryError:  # by now, the registry may demand another kind of authorization
                self._known.drop(purpose)
            header = self._known.header(purpose, trio.current_time())
        return header or self._basic

    @property
    def _basic(self) -> str:
        """The Authorization header with user name and password; "" if there is no password, or if the registry has not asked
        for one.
        """
        credentials = self._credentials
        wanted = self._known.basic and credentials is not None and credentials.can_basic
        return credentials.basic() if wanted and credentials is not None else ""

    async def _authorize(
        self, challenges: tuple[BasicChallenge | BearerChallenge, ...], ask: RegistryRequest, sent: str
    ) -> bool:
        """Prepare the answer to one of the challenges.

        Return False if there is no answer, or if the answer is the header ``sent``, which the registry has just refused.
        """
        self._known.drop(TokenScope(ask.repository, ask.write))
        for challenge in challenges:
            if isinstance(challenge, BearerChallenge):
                await self._fetch_token(challenge, ask)
                return True
            if self._credentials is not None and self._credentials.can_basic and sent != self._credentials.basic():
                self._known.basic = True
                return True
        return False

    async def _renew(self) -> bool:
        """Replace a refused login with a newer login; return False if there is no newer login."""
        if self._access.renew is None:
            return False
        newer = await self._access.renew()
        if newer is None or newer == self._credentials:
            return False
        self._credentials, self._client = newer, replace(self._client, credentials=newer)
        self._known = self._all_known.of(self._client)
        return True

    async def _fetch_token(self, challenge: BearerChallenge, ask: RegistryRequest) -> None:
        scope = f"repository:{ask.repository}:{'pull,push' if ask.write else 'pull'}"
        credentials = self._credentials
        identity = credentials.identity_token if credentials else ""
        authorization = credentials.basic() if credentials and credentials.can_basic else ""
        url = token_url(challenge, registry=self.base, scope=scope)
        if identity:
            url = realm_url(challenge, registry=self.base)
        if credentials is not None:
            check_realm(url, registry=self.base, realms=credentials.realms)
        what = f"token for {ask.what} from {url.host}"
        asked_at = trio.current_time()
        request = RegistryRequest("GET", url, ask.repository, what, accept="application/json")
        if identity:
            form = token_form(challenge, scope=scope, identity_token=identity)
            request = replace(request, method="POST", content=form, content_type="application/x-www-form-urlencoded")
        response = await self._once(request, url, authorization)
        if response.status_code != 200:
            body = await _error_body(response, what)
            raise failure(what, response.status_code, body, response.headers)
        chunks = _chunks(response, what)
        try:
            data = await _read_all(chunks, MAX_TOKEN_ANSWER)
        finally:
            await _abandon(response, chunks)
        if data is None:
            raise RegistryError(f"{what}: the answer has more than {MAX_TOKEN_ANSWER} bytes", transient=True)
        token = read_token(data, url.host)
        # A token is used for 90 % of its lifetime, so that it does not expire in transit, and for at least 1 s, because its
        # first use follows immediately.
        until = asked_at + max(token.lifetime * 0.9, 1.0)
        self._known.put(TokenScope(ask.repository, ask.write), challenge, token.header(), until)


@asynccontextmanager
async def open_connection(
    address: RegistryAddress,
    *,
    scheme: Scheme,
    credentials: Credentials | None,
    ca: str,
    patience: Timeouts,
    at_once: int = 8,
    access: RegistryAccess = DIRECT,
) -> AsyncIterator[RegistryConnection]:
    """Open connections to one registry; they are closed on exit.

    Raises RegistryError for a ``ca`` without certificates, and for a client certificate that cannot be read.
    """
    others = await trio.to_thread.run_sync(tls_context, Tls(ca))
    own = others if access.client is None else await trio.to_thread.run_sync(tls_context, Tls(ca, access.client))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=at_once, keepalive_expiry=30)
    base = httpx.URL(f"{scheme}://{address}")
    async with RoutedTransport(base, access.proxies, own=own, others=others, limits=limits) as transport:
        yield RegistryConnection(transport, base, credentials, patience, at_once, access, ca)


async def _chunks(response: httpx.Response, what: str) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except httpx.TransportError as error:
        raise network_failure(what, error) from error


async def _read_all(chunks: AsyncIterator[bytes], max_bytes: int) -> bytes | None:
    """Return the whole body, or None if it is longer than ``max_bytes``."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            return None
    return bytes(body)


async def _error_body(response: httpx.Response, what: str) -> bytes:
    """Return the body of an error response, cut to the limit; the status is used even if the body is incomplete."""
    chunks = _chunks(response, what)
    try:
        return await _read_all(chunks, MAX_ERROR_BODY) or b""
    except RegistryError:
        return b""
    finally:
        await _abandon(response, chunks)


async def _abandon(response: httpx.Response, chunks: AsyncIterator[bytes] | None) -> None:
    """Discard a response, read or not.

    The body is a chain of async generators through four libraries. If the body were left half read, the garbage collector would
    end these generators at some later time. Reading on inside a cancelled scope ends the chain here, and httpcore closes the
    connection.
    """
    if chunks is not None:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                async for _ in chunks:
                    pass
            except RegistryError:
                return  # the chain ended by itself
            finally:
                await _close(response)
        return
    await _close(response)


async def _close(response: httpx.Response) -> None:
    with trio.move_on_after(CLOSE_S, shield=True):
        await response.aclose()
