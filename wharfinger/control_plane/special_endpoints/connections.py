"""The admission of connections: ``exec``, ``attach``, ``portforward``, ``proxy``.

Policies and webhooks are called for the operation ``CONNECT`` before the Pod, the Service or the Node is looked up. They get
the options of the request as the object. If mutating policies and webhooks change the options, the request continues with the
changed options, as in kube-apiserver.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from wharfinger.control_plane.api.common.admission import Admission, Form, Operation
from wharfinger.control_plane.special_endpoints.endpoint import EndpointRequest
from wharfinger.control_plane.special_endpoints.request_admission import mutated
from wharfinger.control_plane.special_endpoints.review_bodies import kind_served
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list

CONNECTED: Final = frozenset({"attach", "exec", "portforward", "proxy"})
"""The subresources that forward a connection."""
_STREAMS: Final = ("stdin", "stdout", "stderr", "tty")
_PORT: Final = re.compile("[0-9]{1,5}")
_FALSE: Final = frozenset({"0", "false"})
_KINDS: Final = {
    ("Pod", "attach"): "PodAttachOptions",
    ("Pod", "exec"): "PodExecOptions",
    ("Pod", "portforward"): "PodPortForwardOptions",
    ("Pod", "proxy"): "PodProxyOptions",
    ("Service", "proxy"): "ServiceProxyOptions",
    ("Node", "proxy"): "NodeProxyOptions",
}


def connected(asked: EndpointRequest) -> EndpointRequest:
    """Return the request with its options as admission has changed them. Raises StatusError if admission refuses the request,
    and VerdictsNeededError if webhooks have to be called first.
    """
    policies = asked.backend.policies
    if policies is None:
        return asked
    subresource, _, path = asked.subresource.partition("/")
    form = _form(asked.served.kind.kind, subresource)

    def admission_of(options: JsonObject) -> Admission:
        return Admission(
            asked.backend, asked.options.user, asked.served.kind, Operation.CONNECT, subresource, asked.namespace, asked.name,
            options, None, warnings=asked.options.warnings, version=asked.served.version.name, policies=policies,
            own=asked.options.own, form=form,
        )  # fmt: skip

    options: JsonObject = {"kind": form.kind.kind, "apiVersion": "v1", **_options(asked, subresource, path)}
    sent, options = options, mutated(policies, admission_of, lambda _, patched: patched, options)
    policies.enforce(admission_of(options))
    return asked if options == sent else replace(asked, query=_query(options))


def _form(kind: str, subresource: str) -> Form:
    served = kind_served("", "v1", _KINDS[kind, subresource])
    return Form(served.kind, served.version)


def _options(asked: EndpointRequest, subresource: str, path: str) -> JsonObject:
    """Return the options given as parameters of a request. Missing options are left out; a missing ``command`` is null."""
    if subresource == "proxy":
        return {"path": f"/{path}"} if path else {}
    if subresource == "portforward":
        given = ",".join(asked.query.get("ports", ())).split(",")
        ports: list[JsonValue] = [int(port) for port in given if _PORT.fullmatch(port)]
        return {"ports": ports} if ports else {}
    found: JsonObject = {name: True for name in _STREAMS if switched_on(asked.query, name)}
    if any(container := asked.query.get("container", ())):
        found["container"] = container[0]
    if subresource == "exec":
        found["command"] = [*asked.query.get("command", ())] or None
    return found


def switched_on(query: Mapping[str, tuple[str, ...]], name: str) -> bool:
    """Return whether a parameter is given, with any value except ``false`` and ``0``."""
    values = query.get(name, ())
    return bool(values) and values[0].lower() not in _FALSE


def _query(options: JsonObject) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a request with these options."""
    query: dict[str, tuple[str, ...]] = {name: ("true",) for name in _STREAMS if options.get(name) is True}
    if container := options.get("container"):
        query["container"] = (str(container),)
    for field, name in (("command", "command"), ("ports", "ports")):
        if values := find_list(options, field):
            query[name] = tuple(str(value) for value in values)
    return query
