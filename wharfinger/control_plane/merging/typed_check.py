"""The check that a document matches the types of its kind. Server-side apply makes this check before it merges.

The rules and the messages come from the Go library structured-merge-diff, which wraps each value in a struct of its own. Some
messages show a value as Go prints this struct.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Final

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation, Scalar
from wharfinger.control_plane.merging.merge_keys import go_type
from wharfinger.control_plane.merging.typed_fields import item_element
from wharfinger.control_plane.wire.go_printing import map_text
from wharfinger.formats.json.value import JsonValue
from wharfinger.kube.field_sets import FieldPath, path_text

_NUMBERS: Final = frozenset({Scalar.INT32, Scalar.INT64, Scalar.FLOAT})
_STRINGS: Final = frozenset({Scalar.STRING, Scalar.BYTES})
_LISTS: Final = frozenset({Relation.SET, Relation.KEYED, Relation.ATOMIC_LIST})
_KEYED_LISTS: Final = frozenset({Relation.SET, Relation.KEYED})


def type_problems(value: JsonValue, lists: ListTypes, path: FieldPath = ()) -> Iterator[str]:
    """Yield the type errors, such as ``.spec.replicas: expected numeric (int or float), got string``."""
    for where, what in _problems(value, lists, path):
        yield f"{path_text(where)}: {what}" if where else what


def all_type_problems(value: JsonValue, lists: ListTypes) -> str:
    """Return all type errors of a document in one text, as structured-merge-diff joins them; "" if there are none."""
    problems = list(type_problems(value, lists))
    return "\n  ".join(["errors:", *problems]) if len(problems) > 1 else "".join(problems)


def _problems(value: JsonValue, lists: ListTypes, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if value is None or lists.relation is Relation.UNKNOWN:
        return
    if lists.relation in {Relation.SCALAR, Relation.QUANTITY}:
        if what := _scalar_problem(value, lists.scalar):
            yield path, what
    elif lists.relation in _LISTS:
        if isinstance(value, list):
            yield from _list_problems(value, lists, path)
        else:
            yield path, f"expected list, got &{{{map_text(value)}}}"
    elif not isinstance(value, dict):
        yield path, f"expected map, got &{{{map_text(value)}}}"
    else:
        for name in sorted(value):
            here = (*path, f"f:{name}")
            if not lists.declares(name):
                yield here, "field not declared in schema"
                return
            yield from _problems(value[name], lists.field(name), here)


def _list_problems(value: list[JsonValue], lists: ListTypes, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    seen: Counter[str] = Counter()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if lists.relation in _KEYED_LISTS:
            if what := _element_problem(item, lists):
                yield path, f"element {index}: {what}"
                return
            element = item_element(item, lists)
            if seen[element]:
                yield path, f"duplicate entries for key {path_text((element,))}"
            seen[element] += 1
        yield from _problems(item, lists.item, (*path, element))


def _element_problem(item: JsonValue, lists: ListTypes) -> str:
    """Return the reason why an item of a set or keyed list has no key, or "" if it has one."""
    if lists.relation is Relation.KEYED:
        if item is None:
            return "associative list with keys may not have a null element"
        if not isinstance(item, dict):
            return "associative list with keys may not have non-map elements"
        if not any(key in item or key in lists.key_defaults for key in lists.keys):
            keys = " ".join(f'"{key}"' for key in lists.keys)
            return (
                f"associative list with keys has an element that omits all key fields [{keys}] "
                "(and doesn't have default values for any key fields)"
            )
        return ""
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    return "associative list without keys has an element that's an explicit null" if item is None else ""


def _scalar_problem(value: JsonValue, scalar: Scalar) -> str:
    if scalar in _NUMBERS:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return ""
        return f"expected numeric (int or float), got {go_type(value)}"
    if scalar in _STRINGS:
        return (
            ""
            if isinstance(value, str)
            else f"expected string, got &value.valueUnstructured{{Value:{_literal(value)}}}"
        )
    if scalar is Scalar.BOOL:
        return "" if isinstance(value, bool) else f"expected boolean, got &{{{map_text(value)}}}"
    if scalar is Scalar.INT_OR_STRING:
        return ""  # its schema allows several types, so structured-merge-diff does not treat it as a scalar
    return f"expected any scalar, got &{{{map_text(value)}}}" if isinstance(value, dict | list) else ""


def _literal(value: JsonValue) -> str:
    """Return a value as Go's ``%#v`` prints it."""
    if isinstance(value, dict):
        members = ", ".join(f"{json.dumps(name, ensure_ascii=False)}:{_literal(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_literal, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else map_text(value)
