"""Strategic merge patches: Kubernetes' own patch format, whose lists merge by key (``kubectl edit``, ``kubectl patch``).

A patch is a partial object. Lists whose field declares a merge key are merged item by item, and directives in the patch
say what a partial object cannot:

* ``$patch: replace | delete | merge`` in an object, or in an item of a list;
* ``$deleteFromPrimitiveList/<field>``: scalars to take out of a merged list;
* ``$setElementOrder/<field>``: the order of a merged list;
* ``$retainKeys``: the only members that stay (unions such as a Deployment's ``strategy``).

Source: the strategic merge patch document of Kubernetes' API conventions, and the design proposals on order and retained
keys. Custom kinds do not offer the format.
"""

from collections.abc import Callable, Sequence
from typing import Final

from wharfinger.cluster.control_plane.list_types import ListTypes
from wharfinger.cluster.field_set import same_value
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, canonical_json

PATCH: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList/"
SET_ORDER: Final = "$setElementOrder/"


class PatchError(FormatError):
    """The patch contradicts itself or the kind: an item without its key, an unknown directive, an impossible order."""


def strategic_merge(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    """The target with the patch applied, as a new object; PatchError where the patch is no patch of this kind."""
    return _merge_objects(target, patch, lists)


def _merge_objects(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    match patch.get(PATCH, "merge"):
        case "replace":
            return _without_directives({name: value for name, value in patch.items() if name != PATCH})
        case "delete":
            return {}
        case "merge":
            return _merge_members(target, patch, lists)
        case directive:
            raise PatchError(f"Unknown patch type '{directive}' found")


def _merge_members(target: JsonObject, patch: JsonObject, lists: ListTypes) -> JsonObject:
    merged = _retained(target, patch)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM_LIST):
            field = name.removeprefix(DELETE_FROM_LIST)
            if field in merged:
                merged[field] = _taken_out(merged[field], _list(value, name))
        elif name.startswith("$"):
            continue
        elif value is None:
            merged.pop(name, None)
        elif name in merged or not _is_directed(value):
            merged[name] = _merge_member(merged.get(name), value, lists.field(name), patch.get(SET_ORDER + name), name)
    for name, value in patch.items():
        field = name.removeprefix(SET_ORDER)
        if name.startswith(SET_ORDER) and patch.get(field) is None and isinstance(merged.get(field), list):
            merged[field] = _ordered(_list(merged[field], field), _list(value, name), merged[field], lists.field(field))
    return merged


def _merge_member(target: JsonValue, patch: JsonValue, lists: ListTypes, order: JsonValue, name: str) -> JsonValue:
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            return _without_directives(patch)
        return _without_directives(patch) if "replace" in lists.strategies else _merge_objects(target, patch, lists)
    if isinstance(patch, list) and "merge" in lists.strategies:
        before = target if isinstance(target, list) else []
        merged = _merge_lists(before, patch, lists, name)
        if order is None:
            return merged
        _check_order(patch, _list(order, SET_ORDER + name), lists, name)
        return _ordered(merged, _list(order, SET_ORDER + name), target, lists)
    return patch


def _merge_lists(target: list[JsonValue], patch: list[JsonValue], lists: ListTypes, name: str) -> list[JsonValue]:
    """One list merged into another: patched items by the patch's order, the others where they stood."""
    if not lists.merge_key:
        merged: list[JsonValue] = []
        for item in [*target, *patch]:
            if not any(same_value(item, known) for known in merged):
                merged.append(item)
        return _ordered(merged, patch, target, lists)
    kept = [_object(item, name) for item in target]
    items: list[JsonObject] = []
    for entry in patch:
        item = _object(entry, name)
        match item.get(PATCH):
            case None | "merge":
                items.append({key: value for key, value in item.items() if key != PATCH})
            case "delete":
                gone = _key(item, lists, name)
                kept = [old for old in kept if not same_value(old.get(lists.merge_key), gone)]
            case "replace":
                return [
                    _without_directives(_object(other, name)) for other in patch if PATCH not in _object(other, name)
                ]
            case other:
                raise PatchError(f"Unknown patch type '{other}' found")
    for item in items:
        key = _key(item, lists, name)
        at = next((index for index, old in enumerate(kept) if same_value(old.get(lists.merge_key), key)), None)
        if at is None:
            kept.append(_without_directives(item))
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


def _check_order(patch: list[JsonValue], order: list[JsonValue], lists: ListTypes, name: str) -> None:
    """Each patched item must be in the order list, in the same relative order."""
    identity = _identity(lists)
    wanted = [identity(item) for item in order]
    named = [
        identity(item) for item in patch if not (isinstance(item, dict) and item.get(PATCH) in {"delete", "replace"})
    ]
    places = [wanted.index(key) if key in wanted else -1 for key in named]
    if -1 in places or places != sorted(places):
        raise PatchError(f"The order in patch list:\n{patch}\n doesn't match {SET_ORDER}{name} list:\n{order}\n")


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
    names = _list(retain, RETAIN_KEYS)
    for name, value in patch.items():
        if not name.startswith("$") and value is not None and name not in names:
            raise PatchError(f"{RETAIN_KEYS} list doesn't match the fields: {name!r} is set but not retained")
    return {name: value for name, value in target.items() if name in names}


def _taken_out(target: JsonValue, gone: list[JsonValue]) -> JsonValue:
    if not isinstance(target, list):
        return target
    return [item for item in target if not any(same_value(item, other) for other in gone)]


def _without_directives(patch: JsonObject) -> JsonObject:
    """A patch as a value of its own: without directives and nulls, and without the objects that say ``$patch``."""
    return {
        name: _value(value)
        for name, value in patch.items()
        if not name.startswith("$") and value is not None and not _is_directed(value)
    }


def _value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _without_directives(value)
    if isinstance(value, list):
        return [_value(item) for item in value if not _is_directed(item)]
    return value


def _is_directed(value: JsonValue) -> bool:
    """Whether it is an object that only says what to do with one that is there already."""
    return isinstance(value, dict) and PATCH in value


def _key(item: JsonObject, lists: ListTypes, name: str) -> JsonValue:
    if item.get(lists.merge_key) is None:
        raise PatchError(f"map: {item} does not contain declared merge key: {lists.merge_key} (list {name})")
    return item[lists.merge_key]


def _object(value: JsonValue, name: str) -> JsonObject:
    if not isinstance(value, dict):
        raise PatchError(f"{name}: expected a list of objects")
    return value


def _list(value: JsonValue, name: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise PatchError(f"{name}: expected a list")
    return value
