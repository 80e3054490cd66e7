"""The interface of a kind's strategy, and the view of the cluster that strategies get."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject


class ClusterView(Protocol):
    """A read-only view of the stored objects, for one request.

    ``objects`` returns the objects of a kind, given its group and plural name; namespace "" means all namespaces. ``draw(6)``
    returns a random number from 0 to 5. In a dry run, a strategy must not allocate anything.
    """

    @property
    def dry_run(self) -> bool: ...

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]: ...

    def object(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None: ...

    def now(self) -> datetime: ...

    def draw(self, count: int) -> int: ...

    def new_uid(self) -> str: ...


Prepare: TypeAlias = Callable[[JsonObject, ClusterView], JsonObject]
PrepareUpdate: TypeAlias = Callable[[JsonObject, JsonObject, ClusterView], JsonObject]


CreateErrors: TypeAlias = Callable[[JsonObject, ClusterView], list[FieldError]]
StatusErrors: TypeAlias = Callable[[JsonObject, JsonObject, ClusterView], list[FieldError]]


def _unchanged(obj: JsonObject, _view: ClusterView) -> JsonObject:
    return obj


def _new_unchanged(new: JsonObject, _old: JsonObject, _view: ClusterView) -> JsonObject:
    return new


def _no_errors(_obj: JsonObject, _view: ClusterView) -> list[FieldError]:
    return []


def _no_status_errors(_new: JsonObject, _old: JsonObject, _view: ClusterView) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class Strategy:
    """The strategy of one kind, which prepares objects for storage.

    ``create`` (obj, view) and ``update`` (new, old, view) return the object for validation and storage. Both functions leave
    their arguments unchanged, and may raise StatusError, for example for a port that is in use. ``update`` is for the main
    resource, ``status`` for the status subresource, and ``subresources`` for other subresources by name. ``create_errors`` and
    ``status_errors`` return the errors that depend on other objects; these errors are reported before all other errors.
    """

    create: Prepare = _unchanged
    update: PrepareUpdate = _new_unchanged
    status: PrepareUpdate = _new_unchanged
    subresources: Mapping[str, PrepareUpdate] = field(default_factory=dict)
    create_errors: CreateErrors = _no_errors
    status_errors: StatusErrors = _no_status_errors
