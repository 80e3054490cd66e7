import pytest

from wharfinger.control_plane.discovery.health import CHECKS, health, paths
from wharfinger.httpd.messages import Request


def ask(endpoint: str, check: str = "", **query: tuple[str, ...]) -> str | None:
    found = health(endpoint, check, Request("GET", "/", query, {}, b""))
    return None if found is None else found.body.decode()


def test_health_checks_pass() -> None:
    assert ask("readyz") == "ok"
    assert ask("livez", "ping") == "ok"
    assert ask("livez", "nosuch") is None


@pytest.mark.parametrize("endpoint", sorted(CHECKS))
def test_verbose_answers_name_each_check(endpoint: str) -> None:
    lines = (ask(endpoint, verbose=("",)) or "").splitlines()

    assert lines[0] == "[+]ping ok"
    assert lines[-1] == f"{endpoint} check passed"
    assert len(lines) == len(CHECKS[endpoint]) + 1


def test_excluded_checks_are_reported() -> None:
    shown = ask("readyz", verbose=("",), exclude=("etcd", "nosuch")) or ""

    assert "[+]etcd excluded: ok\n" in shown
    assert 'warn: some health checks cannot be excluded: no matches for "nosuch"\n' in shown


def test_every_health_check_has_a_path() -> None:
    assert {"/healthz", "/readyz/shutdown", "/livez/poststarthook/rbac/bootstrap-roles"} <= set(paths())
