"""Strategic merge patches: Kubernetes' own patch format, whose lists merge by key (``kubectl edit``, ``kubectl patch``).

A patch is a partial object. Lists whose field declares a merge key are merged item by item, and directives in the patch
say what a partial object cannot:

* ``$patch: replace | delete`` in an object, or in an item of a list;
* ``$deleteFromPrimitiveList/<field>``: scalars to take out of a merged list;
* ``$setElementOrder/<field>``: the order of a merged list;
* ``$retainKeys``: the only members that stay (unions such as a Deployment's ``strategy``).

Source: the strategic merge patch document of Kubernetes' API conventions, and the design proposals on order and retained
keys. Custom kinds do not offer the format.
"""

from collections.abc import Callable, Sequence
from typing import Final

from wharfinger.cluster.control_plane.go_printing import map_text
from wharfinger.cluster.control_plane.list_types import ListTypes
from wharfinger.cluster.control_plane.validation.field_errors import quoted
from wharfinger.cluster.field_set import same_value
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, canonical_json

PATCH: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList/"
SET_ORDER: Final = "$setElementOrder/"


class PatchError(FormatError):
    """The patch contradicts itself or the kind: an item without its key, an unknown directive, an impossible order."""


class PatchFormatError(PatchError):
    """A directive that is not well formed."""

    def __init__(self, directive: str) -> None:
        super().__init__(f"invalid patch format of {directive}")


class PatchContentError(PatchError):
    """Lists in lists."""


def strategic_merge(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    """The target with the patch applied, as a new object; PatchError where the patch is no patch of this kind."""
    return _merge_objects(target, patch, lists)


def _merge_objects(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    if PATCH not in patch:
        return _merge_members(target, patch, lists)
    match patch[PATCH]:
        case "replace":
            return {name: value for name, value in patch.items() if name != PATCH}
        case "delete":
            return {}
        case _:
            raise _bad_directive(patch)


def _merge_members(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    merged = _retained(target, patch)
    for name, value in patch.items():
        if name == RETAIN_KEYS or name.startswith(SET_ORDER):
            continue
        if name.startswith(DELETE_FROM_LIST.rstrip("/")):
            prefix, slash, field = name.partition("/")
            if not slash or prefix != DELETE_FROM_LIST.rstrip("/"):
                raise PatchFormatError("primitive list")
            if isinstance(value, list) and field in merged:
                merged[field] = _taken_out(merged[field], value)
        elif value is None:
            merged.pop(name, None)
        elif name in merged or not _is_directed(value):
            merged[name] = _merge_member(merged.get(name), value, lists.field(name), patch.get(SET_ORDER + name))
    _order_members(merged, patch, lists)
    return merged


def _order_members(merged: JsonObject, patch: JsonObject, lists: ListTypes) -> None:
    """Put the lists in order that the patch has orders for, and no items."""
    for name, value in patch.items():
        if not name.startswith(SET_ORDER.rstrip("/")):
            continue
        order, field = _list(value), name.removeprefix(SET_ORDER)
        if not name.startswith(SET_ORDER):
            raise PatchFormatError("setElementOrder list")
        if lists.closed and field not in lists.fields:
            struct = lists.go_type.rpartition(".")[2]
            raise PatchError(f"unable to find api field in struct {struct} for the json field {quoted(field)}")
        if patch.get(field) is None and isinstance(merged.get(field), list):
            merged[field] = _ordered(_list(merged[field]), order, merged[field], lists.field(field))


def _merge_member(target: JsonValue, patch: JsonValue, lists: ListTypes, order: JsonValue) -> JsonValue:
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            return _without_directives(patch)
        return patch if "replace" in lists.strategies else _merge_objects(target, patch, lists)
    if isinstance(patch, list) and "merge" in lists.strategies:
        if not isinstance(target, list):
            return _value(patch)
        if order is not None:
            _check_order(patch, _list(order), lists)
        merged = _merge_lists(target, patch, lists)
        return merged if order is None else _ordered(merged, _list(order), target, lists)
    return patch if isinstance(target, list) else _value(patch)


def _merge_lists(target: list[JsonValue], patch: list[JsonValue], lists: ListTypes) -> list[JsonValue]:
    """One list merged into another: patched items by the patch's order, the others where they stood."""
    if not lists.merge_key:
        merged: list[JsonValue] = []
        for item in [*target, *patch]:
            if not any(same_value(item, known) for known in merged):
                merged.append(item)
        return _ordered(merged, patch, target, lists)
    kept = _objects(target, [])
    items: list[JsonObject] = []
    replaced = False
    for item in _objects(patch, target):
        if PATCH not in item:
            items.append(item)
            continue
        match item[PATCH]:
            case "delete":
                gone = _key(item, lists)
                kept = [old for old in kept if not same_value(old.get(lists.merge_key), gone)]
            case "replace":
                replaced = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case _:
                raise _bad_directive(item)
    if replaced:
        return list(items)
    for item in items:
        key = _key(item, lists)
        at = next((index for index, old in enumerate(kept) if same_value(old.get(lists.merge_key), key)), None)
        if at is None:
            kept.append(item)
        else:
            kept[at] = _merge_objects(kept[at], item, lists.item)
    return _ordered(list(kept), list(items), list(target), lists)


def _ordered(merged: list[JsonValue], order: Sequence[JsonValue], live: JsonValue, lists: ListTypes) -> list[JsonValue]:
    """Items named in ``order`` in that order; the others keep theirs, each before the named ones it stood before live."""
    identity = _identity(lists)
    wanted = [identity(item) for item in order]
    standing = [identity(item) for item in live] if isinstance(live, list) else []
    named = sorted((item for item in merged if identity(item) in wanted), key=lambda item: wanted.index(identity(item)))
    others = [item for item in merged if identity(item) not in wanted]
    others.sort(key=lambda item: standing.index(identity(item)) if identity(item) in standing else len(standing))
    result: list[JsonValue] = []
    while named and others:
        left, right = identity(others[0]), identity(named[0])
        before = left in standing and right in standing and standing.index(left) < standing.index(right)
        result.append((others if before else named).pop(0))
    return result + others + named


def _check_order(patch: list[JsonValue], order: list[JsonValue], lists: ListTypes) -> None:
    """Each patched item must be in the order list, in the same relative order."""
    if not patch or not order:
        return
    for item in (*patch, *order) if lists.merge_key else ():
        _key(_objects([item], [])[0], lists)
    identity = _identity(lists)
    wanted = iter([identity(item) for item in order])
    named = [
        identity(item) for item in patch if not (isinstance(item, dict) and item.get(PATCH) in {"delete", "replace"})
    ]
    if not all(key in wanted for key in named):
        raise PatchError(
            f"The order in patch list:\n{map_text(patch)}\n doesn't match {SET_ORDER[:-1]} list:\n{map_text(order)}\n"
        )


def _identity(lists: ListTypes) -> Callable[[JsonValue], bytes]:
    """What tells the items of a merged list apart: their merge key, or for scalars themselves."""

    def identity(item: JsonValue) -> bytes:
        return canonical_json(item.get(lists.merge_key) if isinstance(item, dict) and lists.merge_key else item)

    return identity


def _retained(target: JsonObject, patch: JsonObject) -> JsonObject:
    """The target with only the members that ``$retainKeys`` names, where the patch has it."""
    retain = patch.get(RETAIN_KEYS)
    if retain is None:
        return dict(target)
    if not isinstance(retain, list):
        raise PatchFormatError("retainKeys")
    names = {name for name in retain if isinstance(name, str)}
    for name, value in patch.items():
        if value is None or name == RETAIN_KEYS or name.startswith((DELETE_FROM_LIST[:-1], SET_ORDER[:-1])):
            continue
        if name not in names:
            raise PatchFormatError("retainKeys")
    return {name: value for name, value in target.items() if name in names}


def _taken_out(target: JsonValue, gone: list[JsonValue]) -> JsonValue:
    if not isinstance(target, list):
        return target
    return [item for item in target if not any(same_value(item, other) for other in gone)]


def _without_directives(patch: JsonObject) -> JsonObject:
    """A patch as a value of its own: without nulls, and without the objects that say ``$patch``."""
    return {name: _value(value) for name, value in patch.items() if value is not None and not _is_directed(value)}


def _value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _without_directives(value)
    if isinstance(value, list):
        return [_value(item) for item in value if not _is_directed(item)]
    return value


def _is_directed(value: JsonValue) -> bool:
    """Whether it is an object that only says what to do with one that is there already."""
    return isinstance(value, dict) and PATCH in value


def _bad_directive(item: JsonObject) -> PatchError:
    return PatchError(f"unknown patch type: {map_text(item[PATCH])} in map: {map_text(item)}")


def _key(item: JsonObject, lists: ListTypes) -> JsonValue:
    if lists.merge_key not in item:
        raise PatchError(f"map: {map_text(item)} does not contain declared merge key: {lists.merge_key}")
    return item[lists.merge_key]


def _objects(items: list[JsonValue], beside: list[JsonValue]) -> list[JsonObject]:
    """The items of a list whose items have keys. Raises PatchError."""
    found = [item for item in items if isinstance(item, dict)]
    if len(found) == len(items):
        return found
    if any(isinstance(item, list) for item in items):
        raise PatchContentError("lists of lists are not supported")
    shown = map_text([[*beside], items]) if beside else map_text([items])
    raise PatchError(f"list element types are not identical: {shown}")


def _list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise PatchError(f"expected a []interface {{}}, but received a {_go_type(value)}")
    return value


def _go_type(value: JsonValue) -> str:
    """What Go calls the type of a value of no declared type."""
    if isinstance(value, bool | None):
        return "bool" if value is not None else "%!s(<nil>)"
    types: dict[type, str] = {dict: "map[string]interface {}", int: "int64", float: "float64"}
    return next((name for kind, name in types.items() if isinstance(value, kind)), "string")
