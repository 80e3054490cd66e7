"""The defaults and the validation of the objects of a custom kind, by the schema of the kind.

The parts are in the other modules of :mod:`wharfinger.control_plane.custom`. This module applies them in kube-apiserver's
order: the schema, the fields that ``scale`` reads, embedded objects, lists that are sets or maps, and finally rules in CEL.
The rules are skipped if earlier errors prevent their evaluation. Errors in parts that a write does not change are tolerated
(KEP-4008, ratcheting).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from wharfinger.control_plane.custom.cel_rules import BUDGET, RuleSet
from wharfinger.control_plane.custom.correlation import Pair
from wharfinger.control_plane.custom.defaulting import defaulted
from wharfinger.control_plane.custom.embedded_objects import embedded_errors, embeds
from wharfinger.control_plane.custom.lists import list_errors
from wharfinger.control_plane.custom.pruning import pruned
from wharfinger.control_plane.custom.replicas import scale_errors
from wharfinger.control_plane.custom.values import ROOT, Checker, TooManyStepsError
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, find

MAX_ERRORS: Final = 1_000
"""The maximum number of errors that are reported for one object."""
_MAX_STATES: Final = 20_000
"""The limit on the remembered states of objects that have all their defaults. The same limit applies separately to the
remembered states of all other objects.
"""
_BLOCKING: Final = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


_States: TypeAlias = "OrderedDict[tuple[JsonValue, JsonValue], None]"
"""Remembered states of objects. Each state is identified by the uid and the resourceVersion of its object."""


def _remember(states: _States, state: tuple[JsonValue, JsonValue]) -> None:
    states[state] = None
    while len(states) > _MAX_STATES:
        states.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The errors of an object, and the warnings for the client that writes the object."""

    errors: list[FieldError]
    warnings: tuple[str, ...] = ()


class CustomSchema:
    """The schema of one version of a custom kind; ``scale`` has the paths of the fields that the subresource ``scale`` reads."""

    def __init__(self, document: JsonObject, *, scale: JsonObject | None = None) -> None:
        self._document = document
        self._embeds = embeds(document)
        self._scale = scale
        self._complete: _States = OrderedDict()
        """Stored objects that have all their defaults, by uid and resourceVersion."""
        self._lacking: _States = OrderedDict()
        """Stored objects that lack defaults or have undeclared fields, by uid and resourceVersion."""

    def defaulted(self, obj: JsonObject) -> JsonObject:
        """Return the object with its defaults and without nulls that the schema does not allow. Raises ShapeError."""
        return defaulted(self._document, obj)

    def completed(self, obj: JsonObject) -> JsonObject:
        """Return a stored object in the form of the current schema: with its defaults, and without undeclared fields."""
        state = (find(obj, "metadata", "uid"), find(obj, "metadata", "resourceVersion"))
        if state in self._complete:  # most objects are read many times without a change
            return obj
        try:
            completed = self.defaulted(as_object(pruned(self._document, obj, root=True)[0], "the object"))
        except ShapeError:
            return obj  # the defaults were small enough at the last write; the next write reports the error
        if completed == obj and state not in self._lacking:
            self.is_complete(obj)  # an object in `_lacking` may be a completed copy of the stored one
        elif completed != obj:
            _remember(self._lacking, state)
        return completed

    def is_complete(self, obj: JsonObject) -> None:
        """Record that the current state of a stored object is complete: it has all defaults, so later reads do not check it
        again.
        """
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
        """Return the errors of an object; ``old`` is the stored object, ``found`` are errors that are already known."""
        return self.judged(obj, old, subresource=subresource, found=found).errors

    def judged(
        self,
        obj: JsonObject,
        old: JsonObject | None = None,
        *,
        subresource: str = "",
        found: Sequence[FieldError] = (),
    ) -> Judgement:
        """Return the errors and the warnings of an object; the parameters are those of :meth:`errors`."""
        pair = None if old is None else Pair(obj, old, self._document)
        try:
            errors = self._status_errors(obj, pair) if subresource == "status" else self._errors(obj, pair)
        except TooManyStepsError as error:
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
        return errors + embedded_errors(self._document, obj) if self._embeds else errors

    def _status_errors(self, obj: JsonObject, pair: Pair | None) -> list[FieldError]:
        """Return the errors of ``status`` alone.

        As in kube-apiserver, the paths in their messages begin inside ``status``, while their ``field`` begins with ``status``.
        """
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
