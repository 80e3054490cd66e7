"""The interface of the validation rules of a kind, which :mod:`~wharfinger.control_plane.api.by_kind.validation` calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

Create: TypeAlias = Callable[[JsonObject], list[FieldError]]
Update: TypeAlias = Callable[[JsonObject, JsonObject], list[FieldError]]
Warn: TypeAlias = Callable[[JsonObject, "JsonObject | None"], list[str]]


def _no_errors(_obj: JsonObject) -> list[FieldError]:
    return []


def _no_update_errors(_new: JsonObject, _old: JsonObject) -> list[FieldError]:
    return []


def _no_warnings(_new: JsonObject, _old: "JsonObject | None") -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one kind, in addition to the rules of metadata, which all kinds share.

    ``create`` validates a new object, ``update`` (new, old) a changed object, and ``status`` (new, old) a write of its status.
    ``update`` must validate the whole new object if the kind's strategy in kube-apiserver does. ``warnings`` (new, old or None)
    returns the warnings about an accepted object, and ``status_warnings`` the warnings about an accepted status.
    ``subresources`` has the rules for writes through other subresources, by name.
    """

    create: Create = _no_errors
    update: Update = _no_update_errors
    status: Update = _no_update_errors
    warnings: Warn = _no_warnings
    status_warnings: Warn = _no_warnings
    subresources: Mapping[str, Update] = field(default_factory=dict)
