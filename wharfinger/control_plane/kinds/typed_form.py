"""The form of a built-in object after an API server written in Go has decoded and encoded it.

Fields that no struct declares are removed. Nulls and empty values of optional fields are left out. Structs held by value are
printed even when empty, and quantities become canonical. Objects are stored in this form, so that a comparison of two objects
finds only differences in meaning.

Sources: ``encoding/json``'s omitempty, ``list_types.json`` (the printed form of an empty struct), and the canonical form of
``resource.Quantity``.
"""

from typing import Final

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation, Scalar, has_texts_only, schema_types
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.quantities import MILLI, canonical_quantity

_AMOUNTS: Final = "v1.ResourceList"
_UNROUNDED: Final = "v1.Overhead"
"""The type whose resource amounts are not rounded, because its kind (RuntimeClass) has no defaulting."""


def typed_form(obj: JsonObject, lists: ListTypes) -> JsonObject:
    """Return a copy of an object in the form in which a Go server would print it; ``lists`` has the rules of its kind."""
    return _struct_form(obj, lists)


def _struct_form(obj: JsonObject, lists: ListTypes) -> JsonObject:
    formed: JsonObject = {}
    plain = lists.plain_fields
    for name, value in obj.items():
        if type(value) is str and name in plain:  # the most frequent type
            if value or plain[name]:
                formed[name] = value
            continue
        if value is None or not lists.declares(name):
            continue
        inner = lists.field(name)
        form = _form(value, inner)
        if inner.go_type == _AMOUNTS and lists.go_type != _UNROUNDED and isinstance(form, dict):
            form = {resource: _in_milli(amount) for resource, amount in form.items()}
        if name in lists.zero or name in lists.pointers or not _is_zero(form, inner):
            formed[name] = form
    for name, value in lists.zero.items():
        if name not in formed:
            formed[name] = _form(value, lists.field(name))
    return formed


def _form(value: JsonValue, lists: ListTypes) -> JsonValue:
    if lists.relation is Relation.UNKNOWN:
        if lists.scalar is not Scalar.ANY and isinstance(value, dict):
            return _struct_form(value, schema_types())
        return value
    if lists.relation is Relation.QUANTITY:
        return canonical_quantity(value)
    if isinstance(value, list):
        return [_form(item, lists.item) for item in value]
    if isinstance(value, dict):
        if lists.fields or lists.zero:
            return _struct_form(value, lists)
        of_texts = lists.element is not None and lists.element.scalar is Scalar.STRING
        if of_texts and has_texts_only(value):
            return dict(value)
        return {
            name: "" if item is None and of_texts else _form(item, lists.field(name)) for name, item in value.items()
        }
    return value


def _is_zero(value: JsonValue, lists: ListTypes) -> bool:
    """Return whether ``omitempty`` leaves the value out. An empty struct is not left out, because Go holds it by a pointer."""
    if isinstance(value, dict):
        return not value and lists.relation in {Relation.MAP, Relation.ATOMIC_MAP} and not lists.fields
    return lists.relation is not Relation.UNKNOWN and not value


def _in_milli(amount: JsonValue) -> JsonValue:
    """Return an amount of a resource in its canonical form, rounded up to thousandths."""
    is_finer = isinstance(amount, str) and (amount.endswith(("n", "u")) or "." in amount or "e-" in amount.lower())
    return canonical_quantity(amount, finest=MILLI) if is_finer else amount
