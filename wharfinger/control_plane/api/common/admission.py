"""The interface of admission plugins: the write that they check, and the actions that they may take."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.kinds.kind import Kind, KindVersion
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.storage.interface import Key
from wharfinger.formats.json.value import JsonObject, JsonValue


class Operation(StrEnum):
    """The operation of a request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"
    """A connection to a Pod, a Service or a node: ``exec``, ``attach``, ``portforward``, ``proxy``."""


@dataclass(frozen=True, slots=True)
class Form:
    """The kind of a request's object if it differs from the kind of the resource, such as an Eviction of a Pod."""

    kind: Kind
    version: KindVersion


class Writer(Protocol):
    """The interface through which ``Plugin.charge`` writes objects other than the admitted one."""

    def now(self) -> datetime:
        """Return the time of the server."""
        ...

    def put(self, key: Key, obj: JsonObject) -> JsonObject:
        """Store an object, and return its stored form."""
        ...


@dataclass(slots=True)
class Mutation:
    """The calls of mutating webhooks or mutating policies for one write; some may be called twice (``reinvocationPolicy``).

    ``called`` are the webhooks or policies that were called and may be called again. ``again`` are those of them that saw the
    object before its latest change; the second pass calls only these. ``output`` is the object after the first pass.
    """

    completed: Callable[[str, JsonObject], JsonObject]
    """A function that takes a version and an object that was patched in that version.

    The function returns the object with its defaults, in the form that the rest of the write needs. This is the stored form;
    for a custom kind, it is the version of the request.
    """
    second: bool = False
    wanted: bool = False
    called: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    output: JsonObject | None = None

    def changed(self) -> None:
        """Record that the object has changed since the webhooks or policies in ``called`` saw it."""
        self.again |= self.called
        self.called.clear()


class Policies(Protocol):
    """The interface for applying the admission policies that have bindings, and the configured webhooks, to writes."""

    def mutate_by_policies(self, admission: "Admission", mutation: Mutation) -> JsonObject | None:
        """Return the object with the changes of the mutating policies; None for a delete. Raises StatusError."""
        ...

    def mutate(self, admission: "Admission", mutation: Mutation) -> JsonObject | None:
        """Return the object with the changes of the mutating webhooks; None for a delete.

        Raises StatusError if one of them refuses the write, and VerdictsNeededError if webhooks have to be called first.
        """
        ...

    def enforce(self, admission: "Admission") -> None:
        """Raise StatusError if a policy or a webhook refuses the write, and VerdictsNeededError if webhooks have to be called
        first.
        """
        ...


class Admission(msgspec.Struct, frozen=True):
    """One write that is about to be made; ``obj`` is None for a delete; ``old`` is None for a create."""

    view: ClusterView
    user: User
    kind: Kind
    operation: Operation
    subresource: str
    namespace: str
    name: str
    obj: JsonObject | None
    old: JsonObject | None
    dry_run: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)
    """Warnings for the client."""
    version: str = ""
    """The API version of the request, such as ``v1``; "" means the storage version of the kind."""
    policies: Policies | None = None
    """The policies and webhooks that may apply to the write; None if there are none."""
    asked: tuple[tuple[str, JsonValue], ...] = ()
    """The options that the request carries."""
    own: bool = False
    """True for a write of the server itself, to which no policy applies."""
    form: Form | None = None
    """The kind of the object; None if the object is of the kind ``kind``, or is a Scale."""

    def of(self, obj: JsonObject) -> "Admission":
        """Return a copy of this write with another object."""
        return Admission(
            self.view, self.user, self.kind, self.operation, self.subresource, self.namespace, self.name, obj, self.old,
            self.dry_run, self.warnings, self.version, self.policies, self.asked, self.own, self.form,
        )  # fmt: skip


Mutate: TypeAlias = Callable[[Admission, JsonObject], JsonObject]
Check: TypeAlias = Callable[[Admission], None]
Charge: TypeAlias = Callable[[Admission, Writer], None]


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin, with its name in kube-apiserver if it exists there. Its functions may raise StatusError, and must not modify
    their arguments.

    ``resources`` are the kinds (``Kind.group_kind``) that it handles; empty for all. ``mutate`` runs after the field managers are
    recorded, so no manager owns the fields that it adds. ``check`` runs last, when the object is known to be valid. ``charge``
    counts the write in the quotas, right before the object is stored; it is not called in a dry run.
    """

    name: str
    operations: frozenset[Operation]
    resources: frozenset[str] = frozenset()
    mutate: Mutate | None = None
    check: Check | None = None
    charge: Charge | None = None
