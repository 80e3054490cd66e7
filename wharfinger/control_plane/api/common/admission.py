"""What an admission plugin is asked, and what it may do."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.storage.interface import Key
from wharfinger.formats.json.value import JsonObject, JsonValue


class Operation(StrEnum):
    """What a request does."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Writer(Protocol):
    """Writes objects beside the one that is admitted."""

    def now(self) -> datetime:
        """Return the time of the server."""
        ...

    def put(self, key: Key, obj: JsonObject) -> JsonObject:
        """Store an object, and return it as it is stored then."""
        ...


class Policies(Protocol):
    """The admission policies that are bound."""

    def enforce(self, admission: "Admission") -> None:
        """Refuse what one refuses. Raises StatusError."""
        ...


class Admission(msgspec.Struct, frozen=True):
    """One write that is about to be made; ``obj`` is None for a delete, ``old`` for a create."""

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
    """What the client is to be told beside."""
    version: str = ""
    """The version of the kind that is written through; "" for the stored one."""
    policies: Policies | None = None
    """Which are asked about it; None where none is bound."""
    asked: tuple[tuple[str, JsonValue], ...] = ()
    """The options of the request that were given."""
    own: bool = False
    """Whether the server itself writes, whom no policy hinders."""

    def of(self, obj: JsonObject) -> "Admission":
        """The same write of another object."""
        return Admission(
            self.view, self.user, self.kind, self.operation, self.subresource, self.namespace, self.name, obj, self.old,
            self.dry_run, self.warnings, self.version, self.policies, self.asked, self.own,
        )  # fmt: skip


Mutate: TypeAlias = Callable[[Admission, JsonObject], JsonObject]
Check: TypeAlias = Callable[[Admission], None]
Charge: TypeAlias = Callable[[Admission, Writer], None]


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin, as kube-apiserver names it; both functions may raise StatusError, and alter nothing they are given.

    ``resources`` are the kinds (``Kind.group_kind``) it looks at; empty for all. ``mutate`` comes after field managers have
    been written, so nobody owns what it adds; ``check`` comes last, once the object is valid. ``charge`` writes what the write
    is counted as, right before it is stored (not in a dry run).
    """

    name: str
    operations: frozenset[Operation]
    resources: frozenset[str] = frozenset()
    mutate: Mutate | None = None
    check: Check | None = None
    charge: Charge | None = None
