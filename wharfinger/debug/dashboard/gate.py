"""The access control of the dashboard: it decides which requests are admitted.

Pure. The dashboard listens on a port of this machine. Every local program, and every web page in a local browser, can send
requests to this port. Therefore:

* the Host header must name this machine, because an attacker can make another name resolve to its address (DNS rebinding);
* the request must not come from another site's page (Sec-Fetch-Site);
* the first request has the one-time token, and gets a session cookie in exchange; all further requests must have that cookie.
  Scripts cannot read it (HttpOnly), and requests from other sites do not carry it (SameSite);
* the path of each page begins with a folder that has a secret name, and browsers send the cookie only with requests for this
  folder (Path). Without the folder, browsers would also send the cookie to the servers of other users on other ports of this
  machine.
"""

import hmac
import re
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from wharfinger.httpd.messages import Request

TOKEN: Final = "token"  # noqa: S105 - the name of a parameter
TOKEN_S: Final = 600.0
"""The time, in seconds, within which the token of an address must be used."""
METHODS: Final = ("GET", "HEAD")
_OWN_NAMES: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_REMEDY: Final = "start `wharfinger dashboard` again, and open the address that it prints"


@dataclass(frozen=True, slots=True)
class Gate:
    """The secrets that a request needs. ``token`` is valid until ``until_s``, and "" after its use. ``cookie`` is the name of
    the cookie whose value is ``session``. ``folder`` begins and ends with a slash.
    """

    token: str
    session: str
    cookie: str
    until_s: float
    folder: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request has the session cookie. ``path`` is its path below the gate's ``folder``, with a slash at the beginning."""

    path: str


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The request had the token, or already had the session cookie; ``cookie`` is the value of Set-Cookie."""

    cookie: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The request is refused with ``status``; ``why`` explains the refusal to a user who made a mistake."""

    status: int
    why: str


Verdict: TypeAlias = Admitted | Exchanged | Refused


def admit(gate: Gate, request: Request, now_s: float) -> tuple[Gate, Verdict]:
    """Return the new state of the gate, and the verdict on the request."""
    refusal = _refusal(request)
    if refusal is not None:
        return gate, refusal
    if TOKEN in request.query and request.path == gate.folder:
        return _exchange(gate, request, now_s)
    if request.path.startswith(gate.folder) and _has_session(gate, request.headers.get("cookie", "")):
        return gate, Admitted(request.path[len(gate.folder) - 1 :])
    return gate, Refused(403, f"this page is private; {_REMEDY}")


def _refusal(request: Request) -> Refused | None:
    if _OWN_NAMES.fullmatch(request.headers.get("host", "")) is None:
        return Refused(421, "this page is served under the name of this machine only: 127.0.0.1 or localhost")
    if request.method not in METHODS:
        return Refused(405, "this page is read-only: use GET or HEAD")
    if request.headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        return Refused(403, "this page is not for other sites; open its address directly")
    return None


def _exchange(gate: Gate, request: Request, now_s: float) -> tuple[Gate, Verdict]:
    if request.method != "GET":
        return gate, Refused(405, "the token is accepted only in a GET request")
    cookie = f"{gate.cookie}={gate.session}; Path={gate.folder}; HttpOnly; SameSite=Strict"
    if _has_session(gate, request.headers.get("cookie", "")):  # the same browser opens the address again
        return gate, Exchanged(cookie)
    if not gate.token or now_s >= gate.until_s or not _is_equal(gate.token, request.arg(TOKEN)):
        return gate, Refused(403, f"this address was used before, or is wrong or too old; {_REMEDY}")
    return replace(gate, token=""), Exchanged(cookie)


def _has_session(gate: Gate, cookies: str) -> bool:
    pairs = (each.strip().partition("=") for each in cookies.split(";"))
    return any(name == gate.cookie and _is_equal(gate.session, value) for name, _, value in pairs)


def _is_equal(secret: str, given: str) -> bool:
    return hmac.compare_digest(secret.encode(), given.encode("utf-8", "surrogatepass"))
