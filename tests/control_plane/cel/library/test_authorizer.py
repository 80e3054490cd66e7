from dataclasses import dataclass

import pytest

from tests.control_plane.support.cel_evaluating import value_of
from wharfinger.control_plane.cel.library.authorizer import Check, Verdict, authorizer_of, resource_check


@dataclass(frozen=True)
class Authorizer:
    """An authorizer that allows only the verb ``get``, and states in the reason of its verdict what was checked."""

    name: str = "me"

    def account(self, namespace: str, name: str) -> "Authorizer":
        return Authorizer(f"{namespace}/{name}")

    def decide(self, check: Check, verb: str) -> Verdict:
        asked = (check.path, check.group, check.resource, check.subresource, check.namespace, check.name)
        return Verdict(verb == "get", f"{self.name} {' '.join(asked)}")


AUTHORIZER = authorizer_of(Authorizer())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.path('/x').check('get').allowed()", True),
        ("a.path('/x').check('put').allowed()", False),
        ("a.path(' ').check('get').allowed()", "path must not be empty"),
        ("a.group('g').resource('').check('get').allowed()", "resource must not be empty"),
        (
            "a.group('g').resource('r').subresource('s').namespace('ns').name('n').check('get').reason()",
            "me  g r s ns n",
        ),
        ("a.group('g').resource('r').fieldSelector('a=b').labelSelector('[').check('get').allowed()", True),
        ("a.serviceAccount('n', 'b').path('/x').check('get').reason()", "n/b /x     "),
        ("a.serviceAccount('N', 'b')", "Invalid service account namespace"),
        ("a.serviceAccount('n', '-')", "Invalid service account name"),
        ("a.path('/x').check('get').errored()", False),
        ("a.path('/x').check('get').error()", ""),
        ("r.check('get').reason()", "me  g r   "),
        ("a.check('get')", "no such overload: check(kubernetes.authorization.Authorizer, string)"),
        ("a.path(dyn(1))", "no such overload: path(kubernetes.authorization.Authorizer, int)"),
        ("a.allowed()", "no such overload: allowed(kubernetes.authorization.Authorizer)"),
        ("dyn('a').path('b')", "no such overload: path(string, string)"),
    ],
)
def test_authorizer_checks_return_decisions(text: str, found: object) -> None:
    assert value_of(text, a=AUTHORIZER, r=resource_check(Check(Authorizer(), group="g", resource="r"))) == found
