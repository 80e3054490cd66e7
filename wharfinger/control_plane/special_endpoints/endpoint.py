"""Requests that storage alone cannot answer: reviews, bindings, evictions, logs, tokens, proxies.

The interface: a module defines ``answer(asked) -> document``, puts it into a table under the kind
(``SubjectAccessReview.authorization.k8s.io`` for a virtual kind, ``Pod/eviction`` for a subresource), and
:mod:`~wharfinger.control_plane.special_endpoints.table` merges the tables. Routes, methods, options, body and the form of
the answer are handled by :mod:`~wharfinger.control_plane.http.object_requests`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.formats.json.value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Asked:
    """A client's request to a virtual resource. ``options.user`` is the client's user."""

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
    """A command to run in a Pod, once the client has upgraded the connection. ``uid`` and ``pod`` are those of the Pod."""

    uid: str
    pod: str
    argv: tuple[str, ...]
    stdin: bool


Answer: TypeAlias = JsonObject | str | PodCommand
"""A document (an object, a list, a Status), plain text, or a command whose streams are the answer."""
Answerer: TypeAlias = Callable[[Asked], Answer]
"""A function that returns the answer, or raises StatusError. An answer to a POST is sent with 201, except a Status, which has a
code."""
Answerers: TypeAlias = Mapping[str, Answerer]


def asked_for(served: Served, subresource: str) -> str:
    """Return the name under which an answerer is registered."""
    return f"{served.kind.group_kind}/{subresource}" if subresource else served.kind.group_kind
