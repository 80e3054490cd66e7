"""The authorizer in expressions, which decides whether a user is allowed to do something (``kubernetes.authz``)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from wharfinger.control_plane.cel.checking.function_table import (
    AUTHORIZER,
    DECISION,
    GROUP_CHECK,
    PATH_CHECK,
    RESOURCE_CHECK,
)
from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.values import CelError, Implementation, Opaque, Value
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of an authorizer, and its reason."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """An authorizer for one user."""

    def account(self, namespace: str, name: str) -> "Authorizer":
        """Return the authorizer for a service account."""
        ...

    def decide(self, check: "Check", verb: str) -> Verdict:
        """Decide whether the user has the permission for a verb."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """A question to an authorizer: the path or the resource that the user wants to access.

    Selectors are left out, because RBAC rules have none.
    """

    authorizer: Authorizer
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


def authorizer_of(authorizer: Authorizer) -> Opaque:
    """Return the value of the variable ``authorizer``."""
    return Opaque(AUTHORIZER, Check(authorizer))


def resource_check(check: Check) -> Opaque:
    """Return the value of the variable ``authorizer.requestResource``."""
    return Opaque(RESOURCE_CHECK, check)


def _checked(value: Value, kind: str) -> Check:
    if not isinstance(value, Opaque) or value.type_name != kind or not isinstance(value.content, Check):
        raise CelError(operations.NO_OVERLOAD)
    return value.content


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise CelError(operations.NO_OVERLOAD)
    return value


def _with(
    kind: str, result: str, with_field: Callable[[Check, str], Check], required: str = ""
) -> Callable[[Value, Value], Value]:
    """Return the implementation of a method that sets one more field of an authorization check. ``required`` is the name of the
    field if the field must not be empty.
    """

    def run(target: Value, value: Value) -> Value:
        check, text = _checked(target, kind), _text(value)
        if required and not text.strip():
            raise CelError(f"{required} must not be empty")
        return Opaque(result, with_field(check, text))

    return run


def _selected(target: Value, selector: Value) -> Value:
    _checked(target, RESOURCE_CHECK)
    _text(selector)
    return target


def _account(target: Value, namespace: Value, name: Value) -> Value:
    check = _checked(target, AUTHORIZER)
    if subdomain_problems(_text(name)):
        raise CelError("Invalid service account name")
    if dns_label_problems(_text(namespace)):
        raise CelError("Invalid service account namespace")
    return authorizer_of(check.authorizer.account(_text(namespace), _text(name)))


def _decided(target: Value, verb: Value) -> Value:
    kind = target.type_name if isinstance(target, Opaque) else ""
    check = _checked(target, kind if kind == PATH_CHECK else RESOURCE_CHECK)
    return Opaque(DECISION, check.authorizer.decide(check, _text(verb)))


def _verdict(value: Value) -> Verdict:
    if not isinstance(value, Opaque) or not isinstance(value.content, Verdict):
        raise CelError(operations.NO_OVERLOAD)
    return value.content


def _errored(value: Value) -> Value:
    _verdict(value)
    return False  # roles are read from memory, which cannot fail


def _error(value: Value) -> Value:
    _verdict(value)
    return ""


AUTHORIZATION: Final[Mapping[str, Implementation]] = {
    "path": _with(AUTHORIZER, PATH_CHECK, lambda check, text: replace(check, path=text), "path"),
    "group": _with(AUTHORIZER, GROUP_CHECK, lambda check, text: replace(check, group=text)),
    "serviceAccount": _account,
    "resource": _with(GROUP_CHECK, RESOURCE_CHECK, lambda check, text: replace(check, resource=text), "resource"),
    "subresource": _with(RESOURCE_CHECK, RESOURCE_CHECK, lambda check, text: replace(check, subresource=text)),
    "namespace": _with(RESOURCE_CHECK, RESOURCE_CHECK, lambda check, text: replace(check, namespace=text)),
    "name": _with(RESOURCE_CHECK, RESOURCE_CHECK, lambda check, text: replace(check, name=text)),
    "fieldSelector": _selected,
    "labelSelector": _selected,
    "check": _decided,
    "errored": _errored,
    "error": _error,
    "allowed": lambda value: _verdict(value).allowed,
    "reason": lambda value: _verdict(value).reason,
}
