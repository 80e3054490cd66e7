"""What an admission plugin is asked, and what it may do."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from wharfinger.cluster.control_plane.authentication import User
from wharfinger.cluster.control_plane.kinds import Kind
from wharfinger.cluster.control_plane.strategies.strategy import ClusterView
from wharfinger.formats.json_value import JsonObject


class Operation(StrEnum):
    """What a request does."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Admission:
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


Mutate: TypeAlias = Callable[[Admission, JsonObject], JsonObject]
Check: TypeAlias = Callable[[Admission], None]


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin, as kube-apiserver names it; both functions may raise StatusError, and alter nothing they are given.

    ``resources`` are the kinds (``Kind.group_kind``) it looks at; empty for all. ``mutate`` comes after field managers have
    been written, so nobody owns what it adds; ``check`` comes last, once the object is valid.
    """

    name: str
    operations: frozenset[Operation]
    resources: frozenset[str] = frozenset()
    mutate: Mutate | None = None
    check: Check | None = None
