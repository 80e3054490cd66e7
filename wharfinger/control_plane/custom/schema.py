"""What the schema of a custom resource says of its objects: which defaults they get, and what is wrong with them.

The parts stand in :mod:`wharfinger.control_plane.custom`; here is their order, which is kube-apiserver's: the
schema, the numbers that ``scale`` reads, embedded objects, lists that are sets or maps, and at last rules in CEL, which
are left out where the rest is so wrong that they could not be evaluated. What a write leaves as it was is not held
against it (KEP-4008, ratcheting).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from wharfinger.control_plane.custom.cel_rules import BUDGET, RuleSet
from wharfinger.control_plane.custom.correlation import Pair
from wharfinger.control_plane.custom.defaulting import defaulted
from wharfinger.control_plane.custom.embedded_objects import embedded_errors
from wharfinger.control_plane.custom.lists import list_errors
from wharfinger.control_plane.custom.pruning import pruned
from wharfinger.control_plane.custom.replicas import scale_errors
from wharfinger.control_plane.custom.values import ROOT, Checker, TooMuchError
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, find

MAX_ERRORS: Final = 1_000
"""Errors that are told of one object."""
_MOST_COMPLETE: Final = 20_000
"""States of objects that are known to lack no default."""
_BLOCKING: Final = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


_States: TypeAlias = "OrderedDict[tuple[JsonValue, JsonValue], None]"
"""By uid and resourceVersion."""


def _remember(states: _States, state: tuple[JsonValue, JsonValue]) -> None:
    states[state] = None
    while len(states) > _MOST_COMPLETE:
        states.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with an object, and what its writer is warned of."""

    errors: list[FieldError]
    warnings: tuple[str, ...] = ()


class CustomSchema:
    """The schema of one version of a custom kind, and where ``scale`` finds its numbers."""

    def __init__(self, document: JsonObject, *, scale: JsonObject | None = None) -> None:
        self._document = document
        self._scale = scale
        self._complete: _States = OrderedDict()
        """States of stored objects that lack no default."""
        self._lacking: _States = OrderedDict()
        """States that lack some."""

    def defaulted(self, obj: JsonObject) -> JsonObject:
        """The object with its defaults, and without nulls that the schema does not allow. Raises ShapeError."""
        return defaulted(self._document, obj)

    def completed(self, obj: JsonObject) -> JsonObject:
        """A stored object as the schema now is: with newer defaults, without what is no longer declared."""
        state = (find(obj, "metadata", "uid"), find(obj, "metadata", "resourceVersion"))
        if state in self._complete:  # most objects are read many times as they were written
            return obj
        try:
            completed = self.defaulted(as_object(pruned(self._document, obj, root=True)[0], "the object"))
        except ShapeError:
            return obj  # it was small enough when it was written; the next write says so
        if completed == obj and state not in self._lacking:
            self.is_complete(obj)  # one that was completed already says nothing of the stored one
        elif completed != obj:
            _remember(self._lacking, state)
        return completed

    def is_complete(self, obj: JsonObject) -> None:
        """Told of a stored object that has its defaults: nobody needs to look for them in this state of it."""
        state = (find(obj, "metadata", "uid"), find(obj, "metadata", "resourceVersion"))
        if None not in state:
            _remember(self._complete, state)

    def errors(
        self,
        obj: JsonObject,
        old: JsonObject | None = None,
        *,
        subresource: str = "",
        found: Sequence[FieldError] = (),
    ) -> list[FieldError]:
        """What is wrong with an object; ``old`` is what was stored, ``found`` what else is wrong with it."""
        return self.judged(obj, old, subresource=subresource, found=found).errors

    def judged(
        self,
        obj: JsonObject,
        old: JsonObject | None = None,
        *,
        subresource: str = "",
        found: Sequence[FieldError] = (),
    ) -> Judgement:
        """As ``errors``, with the warnings."""
        pair = None if old is None else Pair(obj, old, self._document)
        try:
            errors = self._status_errors(obj, pair) if subresource == "status" else self._errors(obj, pair)
        except TooMuchError as error:
            return Judgement([invalid(ROOT, "", str(error))])
        before = [] if old is None else list_errors(self._document, old)
        errors += [] if before else list_errors(self._document, obj)
        if not self._rules:
            return Judgement(errors[:MAX_ERRORS])
        if any(error.reason in _BLOCKING for error in (*found, *errors)):
            return Judgement([*errors, invalid(ROOT, None, _NOT_CHECKED)][:MAX_ERRORS])
        outcome = self._rules.errors(obj, old, BUDGET, pair=pair)
        return Judgement((errors + outcome.errors)[:MAX_ERRORS], outcome.warnings)

    def _errors(self, obj: JsonObject, pair: Pair | None) -> list[FieldError]:
        errors = Checker().errors(self._document, obj, pair)
        if self._scale is not None:
            errors += scale_errors(self._scale, obj)
        return errors + embedded_errors(self._document, obj)

    def _status_errors(self, obj: JsonObject, pair: Pair | None) -> list[FieldError]:
        """Of ``status`` alone; messages begin inside it, fields at the object."""
        schema = schemas.child(schemas.child(self._document, "properties") or {}, "status")
        errors: list[FieldError] = []
        if schema is not None and "status" in obj:
            errors = Checker("status").errors(schema, obj["status"], None if pair is None else pair.member("status"))
        if self._scale is not None:
            errors += scale_errors(self._scale, obj, status_only=True)
        return errors

    @cached_property
    def _rules(self) -> RuleSet:
        return RuleSet(self._document, root=True)
