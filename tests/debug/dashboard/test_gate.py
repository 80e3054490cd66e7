"""Access control of the dashboard: tokens, cookies and host names."""

import pytest

from tests.debug.support.dashboard_samples import request
from wharfinger.debug.dashboard.gate import Admitted, Exchanged, Gate, Refused, Verdict, admit
from wharfinger.httpd.messages import Request

GATE = Gate("tok", "ses", "wharfinger-8080", 100.0, "/f/")
COOKIE = "wharfinger-8080=ses"


def verdict(asked: Request, gate: Gate = GATE, now_s: float = 0.0) -> Verdict:
    return admit(gate, asked, now_s)[1]


def status(found: Verdict) -> int:
    assert isinstance(found, Refused)
    return found.status


def test_the_token_is_exchanged_for_a_cookie_only_once() -> None:
    used, found = admit(GATE, request("/f/?token=tok"), 0.0)
    assert found == Exchanged("wharfinger-8080=ses; Path=/f/; HttpOnly; SameSite=Strict")
    assert status(verdict(request("/f/?token=tok"), used)) == 403
    assert verdict(request("/f/", cookie=COOKIE), used) == Admitted("/")


def test_the_same_browser_may_open_the_address_again() -> None:
    used, _ = admit(GATE, request("/f/?token=tok"), 0.0)
    assert isinstance(verdict(request("/f/?token=tok", cookie=COOKIE), used), Exchanged)


@pytest.mark.parametrize(
    "target",
    [
        "/f/?token=",
        "/f/?token=to",
        "/f/?token=tok2",
        "/f/?token=%C3%A4",
        "/f/?token=ä",
        "/f/queues?token=tok",
        "/?token=tok",
    ],
)
def test_a_wrong_token_is_refused(target: str) -> None:
    assert status(verdict(request(target))) == 403


def test_a_token_expires_and_is_accepted_only_with_get() -> None:
    assert status(verdict(request("/f/?token=tok"), now_s=100.0)) == 403
    assert status(verdict(request("/f/?token=tok", "HEAD"))) == 405


def test_an_empty_token_is_refused() -> None:
    used, _ = admit(GATE, request("/f/?token=tok"), 0.0)
    assert status(verdict(request("/f/?token="), used)) == 403


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "wharfinger-8080=",
        "wharfinger-8080=sess",
        "wharfinger-9=ses",
        "ses",
        "x=wharfinger-8080=ses",
        "wharfinger-8080",
    ],
)
def test_a_wrong_cookie_is_refused(cookie: str) -> None:
    assert status(verdict(request("/f/", cookie=cookie))) == 403


def test_the_cookie_is_found_among_other_cookies() -> None:
    assert verdict(request("/f/", cookie=f"a=b; {COOKIE}; c")) == Admitted("/")
    assert verdict(request("/f/queues", "HEAD", cookie=COOKIE)) == Admitted("/queues")


@pytest.mark.parametrize("path", ["/", "/queues", "/f", "/g/", "/f2/", "//f/", "/./f/"])
def test_the_cookie_is_valid_only_below_its_path(path: str) -> None:
    assert status(verdict(request(path, cookie=COOKIE))) == 403


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1.evil.example:80", "127.0.0.2", "localhost:x", "[::1", "127.0.0.1:123456"]
)
def test_a_foreign_host_name_is_refused(host: str) -> None:
    assert status(verdict(request("/f/", host=host, cookie=COOKIE))) == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "LOCALHOST", "[::1]:8080"])
def test_host_names_of_this_machine_are_accepted(host: str) -> None:
    assert verdict(request("/f/", host=host, cookie=COOKIE)) == Admitted("/")


@pytest.mark.parametrize("site", ["cross-site", "same-site", ""])
def test_other_sites_are_refused_before_the_token_is_used(site: str) -> None:
    gate, found = admit(GATE, request("/f/?token=tok", sec_fetch_site=site), 0.0)
    assert (status(found), gate) == (403, GATE)
    assert status(verdict(request("/f/", sec_fetch_site=site, cookie=COOKIE))) == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_methods_that_write_are_refused(method: str) -> None:
    assert status(verdict(request("/f/", method, cookie=COOKIE))) == 405
