"""The interface of requests that are not answered from storage alone: reviews, bindings, evictions, logs, tokens, proxies.

Each type of request is answered by one function (:data:`EndpointFunction`). The module of the function registers it in a table,
under the name of a kind (``SubjectAccessReview.authorization.k8s.io``) or of a subresource (``Pod/eviction``).
:mod:`~wharfinger.control_plane.special_endpoints.table` merges the tables.
:mod:`~wharfinger.control_plane.http.object_requests` handles routes, methods, options, the body and the form of the answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.formats.json.value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """A client's request that a function of this package answers. ``options.user`` is the user of the client."""

    backend: Backend
    served: Served
    namespace: str
    name: str
    subresource: str
    method: str
    body: JsonValue
    """The decoded body; None for a GET, and for an empty body."""
    options: WriteOptions
    query: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PodCommand:
    """A command to run in a Pod once the client has upgraded the connection. ``uid`` and ``pod`` are the Pod's uid and name."""

    uid: str
    pod: str
    argv: tuple[str, ...]
    stdin: bool


Answer: TypeAlias = JsonObject | str | PodCommand
"""A document (an object, a list, a Status), plain text, or a command whose streams are the answer."""
EndpointFunction: TypeAlias = Callable[[EndpointRequest], Answer]
"""A function that returns the answer, or raises StatusError. The answer to a POST has the status code 201. If the answer is a
Status, it contains the code.
"""
EndpointTable: TypeAlias = Mapping[str, EndpointFunction]


def endpoint_name(served: Served, subresource: str) -> str:
    """Return the name under which the function for a kind or a subresource is registered."""
    return f"{served.kind.group_kind}/{subresource}" if subresource else served.kind.group_kind
