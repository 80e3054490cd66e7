"""Strategic merge patches: Kubernetes' own patch format, in which lists merge by key (``kubectl edit``, ``kubectl patch``).

A patch is a partial object. Lists with a merge key are merged item by item. Directives in the patch express what a partial object
cannot:

* ``$patch: replace | delete`` in an object, or in an item of a list;
* ``$deleteFromPrimitiveList/<field>``: the scalars to remove from a merged list;
* ``$setElementOrder/<field>``: the order of a merged list;
* ``$retainKeys``: the members that are kept; all others are removed (for unions such as a Deployment's ``strategy``).

In each object, ``$retainKeys`` is applied first, then lists with an order, then all other members. Applied directives, and
nulls in added values, are removed from the patch. The rest of the patch is shown in errors, if the result does not fit the
kind.

Source: the strategic merge patch document of Kubernetes' API conventions, the design proposals on order and retained
keys, and apimachinery's ``strategicpatch``. Custom kinds do not support this format.
"""

from typing import Final

from wharfinger.control_plane.kinds.type_shapes import RAW, ListTypes, Relation
from wharfinger.control_plane.merging.merge_keys import (
    PatchError,
    PatchFormatError,
    are_objects,
    as_list,
    as_objects,
    identity_of,
    item_identity,
    key_of,
    ordered,
    split,
)
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.control_plane.wire.go_printing import map_text, string_text
from wharfinger.formats.json.value import JsonObject, JsonValue

PATCH: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"
_LISTS: Final = frozenset({Relation.ATOMIC_LIST, Relation.SET, Relation.KEYED})


def strategic_merge(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    """Return the target with the patch applied, as a new object. Raises PatchError if the patch is not valid for this kind."""
    return merge_and_rest(target, patch, lists)[0]


def merge_and_rest(target: JsonObject, patch: JsonObject, lists: ListTypes) -> tuple[JsonObject, JsonObject]:
    """Return the target with the patch applied, as a new object, and the patch without the directives that were applied. Raises
    PatchError.
    """
    rest = _copy_object(patch)
    return _merge_objects(_copy_object(target), rest, lists), rest


def _merge_objects(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    """Merge in place, and remove applied directives from the patch; both arguments are copies that may be changed."""
    if PATCH in patch:
        match patch[PATCH]:
            case "replace":
                del patch[PATCH]
                return patch
            case "delete":
                return {}
            case _:
                raise _bad_directive(patch)
    _retain(target, patch)
    _merge_ordered(target, patch, lists)
    for name, value in patch.items():
        _merge_member(target, name, value, lists)
    return target


def _retain(target: JsonObject, patch: JsonObject) -> None:
    """Remove the members that ``$retainKeys`` does not name, if the patch has this directive."""
    if RETAIN_KEYS not in patch:
        return
    retain = patch.pop(RETAIN_KEYS)
    if not isinstance(retain, list):
        raise PatchFormatError("retainKeys")
    names = {name for name in retain if isinstance(name, str)}
    for name, value in patch.items():
        if value is not None and not name.startswith((DELETE_FROM_LIST, SET_ORDER)) and name not in names:
            raise PatchFormatError("retainKeys")
    for name in target.keys() - names:
        del target[name]


def _merge_ordered(target: JsonObject, patch: JsonObject, lists: ListTypes) -> None:
    """Merge the lists for which the patch has an order, and remove these lists from the patch."""
    for directive in [name for name in patch if name.startswith(SET_ORDER)]:
        order = as_list(patch.pop(directive))
        field = _directed_field(directive, SET_ORDER, "setElementOrder list")
        live = as_list(target[field]) if field in target else []
        asked = as_list(patch[field]) if field in patch else []
        types = _list_field(lists, field)
        _check_order(asked, order, types)
        if field not in target and field not in patch:
            continue
        merged = live
        if field not in target:
            found = [_without_directives(item) for item in asked]
            merged = [item for item in found if not isinstance(item, _Directed)]
        elif field in patch:
            merged = _merge_list(live, asked, types)
        named, others = split(merged, order, types.merge_key)
        are_objects(live, asked)
        target[field] = ordered(named, others, order, live, types.merge_key)
        patch.pop(field, None)


def _merge_member(target: JsonObject, name: str, value: JsonValue, lists: ListTypes) -> None:
    """Merge one member of a patch: an ordinary value, or a directive that removes items from a list."""
    deleting = name.startswith(DELETE_FROM_LIST)
    if deleting:
        name = _directed_field(name, DELETE_FROM_LIST, "primitive list") or name
    if value is None:
        target.pop(name, None)
        return
    if type(target.get(name)) is not type(value):
        if not deleting:
            _drop_nulls(value)
            _set(target, name, value)
        return
    before = target[name]
    if isinstance(before, dict) and isinstance(value, dict):
        types = _field(lists, name)
        target[name] = value if "replace" in types.strategies else _merge_objects(before, value, types)
    elif isinstance(before, list) and isinstance(value, list):
        types = _list_field(lists, name)
        if deleting or "merge" in types.strategies:
            value = _merge_list(before, value, types, deleting=deleting)
        target[name] = value
    else:
        target[name] = value


def _merge_list(
    live: list[JsonValue], patch: list[JsonValue], types: ListTypes, *, deleting: bool = False
) -> list[JsonValue]:
    """Merge one list into another: patched items follow the order of the patch, all other items keep their places."""
    if not live and not patch:
        return live
    if not are_objects(live, patch):
        if deleting:
            gone = {identity_of(item) for item in patch}
            return [item for item in live if identity_of(item) not in gone]
        merged = list({identity_of(item): item for item in reversed([*live, *patch])}.values())[::-1]
        key = types.merge_key
    else:
        key = types.merge_key
        if not key:
            raise PatchError(f"cannot merge lists without merge key for {_go_kind(types.item)}")
        live, patch = _without_special_items(as_objects(live), as_objects(patch), key)
        merged = _merge_items(live, patch, types)
    named, others = split(merged, patch, key)
    return ordered(named, others, patch, live, key)


def _without_special_items(
    live: list[JsonObject], patch: list[JsonObject], key: str
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return a list and its patch after the items with ``$patch`` have been applied and removed."""
    items: list[JsonValue] = []
    replaced = False
    for item in patch:
        if PATCH not in item:
            items.append(item)
            continue
        match item[PATCH]:
            case "delete":
                gone = key_of(item, key)
                live = [old for old in live if key not in old or key_of(old, key) != gone]
            case "replace":
                replaced = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case _:
                raise _bad_directive(item)
    return (items, []) if replaced else (list(live), items)


def _merge_items(live: list[JsonValue], patch: list[JsonValue], types: ListTypes) -> list[JsonValue]:
    """Return the live items, with each item of the patch merged into the live item that has the same key, or else added."""
    merged, key = as_objects(live), types.merge_key
    places: dict[bytes, int] = {}
    for index, item in enumerate(merged):
        if key in item:
            places.setdefault(key_of(item, key), index)
    for item in as_objects(patch):
        at = places.setdefault(key_of(item, key), len(merged))
        if at == len(merged):
            merged.append(item)
        else:
            merged[at] = _merge_objects(merged[at], item, types.item)
    return list(merged)


def _check_order(patch: list[JsonValue], order: list[JsonValue], types: ListTypes) -> None:
    """Check that each patched item is in the order list, in the same relative order."""
    if not patch or not order:
        return
    key, items = types.merge_key, patch
    if key:
        items = [item for item in as_objects(patch) if item.get(PATCH) != "delete"]
    at = place = 0
    while at < len(items) and place < len(order):
        if isinstance(item := items[at], dict) and PATCH in item:
            at += 1
            continue
        at += item_identity(item, key) == item_identity(order[place], key)
        place += 1
    if at < len(items):
        raise PatchError(
            f"The order in patch list:\n{map_text(patch)}\n doesn't match {SET_ORDER} list:\n{map_text(order)}\n"
        )


def _field(lists: ListTypes, name: str) -> ListTypes:
    """Return the declared type of a member of an object. Raises PatchError if there is no such member."""
    if lists is RAW:
        raise PatchError(f"unable to find api field in struct RawExtension for the json field {quoted(name)}")
    if not lists.closed:
        raise PatchError(f"merging an object in json but data type is not struct, instead is: {_go_kind(lists)}")
    if name not in lists.fields:
        struct = lists.go_type.rpartition(".")[2]
        raise PatchError(f"unable to find api field in struct {struct} for the json field {quoted(name)}")
    return lists.fields[name]


def _list_field(lists: ListTypes, name: str) -> ListTypes:
    """Return the declared type of a member that has to be a list. Raises PatchError."""
    found = _field(lists, name)
    if found.relation not in _LISTS and found is not RAW and name not in lists.pointers:
        raise PatchError("expected slice or array type, but got: struct")
    return found


def _go_kind(types: ListTypes) -> str:
    """Return Go's name for the kind of a type."""
    if types.closed or types is RAW:
        return "struct"
    if types.relation in {Relation.MAP, Relation.ATOMIC_MAP}:
        return "map"
    return "slice" if types.relation in _LISTS else types.go_type.rpartition(".")[2]


def _directed_field(name: str, directive: str, what: str) -> str:
    """Return the field that a directive refers to."""
    prefix, slash, field = name.partition("/")
    if not slash or prefix != directive:
        raise PatchFormatError(what)
    return field


class _Directed:
    """The marker that stands for an object of a patch that contains a directive (``$patch``). Such an object is not a value to
    store.
    """


_DIRECTED: Final = _Directed()


def _set(target: JsonObject, name: str, value: JsonValue) -> None:
    """Set a member of the target to a value of the patch. Objects in the value that contain the directive ``$patch`` are left
    out.
    """
    kept = _without_directives(value)
    if isinstance(kept, _Directed):
        target.pop(name, None)
    else:
        target[name] = kept


def _without_directives(value: JsonValue) -> "JsonValue | _Directed":
    """Return a value of the patch without the objects, at any depth, that contain the directive ``$patch``."""
    if isinstance(value, dict):
        if PATCH in value:
            return _DIRECTED
        for name, inner in list(value.items()):
            _set(value, name, inner)
        return value
    if isinstance(value, list):
        kept = [_without_directives(item) for item in value]
        return [item for item in kept if not isinstance(item, _Directed)]
    return value


def _drop_nulls(value: JsonValue) -> None:
    """Remove the null members, at any depth."""
    if isinstance(value, dict):
        for name in [name for name, inner in value.items() if inner is None]:
            del value[name]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _drop_nulls(inner)


def _bad_directive(item: JsonObject) -> PatchError:
    return PatchError(f"unknown patch type: {string_text(item[PATCH])} in map: {map_text(item)}")


def _copy_object(value: JsonObject) -> JsonObject:
    return {name: _copy(inner) for name, inner in value.items()}


def _copy(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _copy_object(value)
    return [_copy(item) for item in value] if isinstance(value, list) else value
