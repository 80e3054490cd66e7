"""The search for drift without the answer to the last apply: it finds the wanted fields of an object that the daemon does not
own.

The wanted object and the field sets of the live object are walked side by side. The sets themselves show which lists are
keyed, and by which keys, so no schema is needed. In three cases, the result is less exact than with a schema. A list that no
manager owns any more is reported as a whole. A map that no manager owns any more is reported by its members, although its schema
may declare it as atomic (owned only as a whole). An empty map that another manager applied is assumed to be atomic. None of these
cases leads to a false report of drift.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.fields.items import ABSENT, Absent, Maybe, keys_of, match_items, value_at
from wharfinger.cluster.fields.owners import FieldOwners
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.kube.field_sets import FieldPath, FieldSet

_NOT_OWNED: Final = frozenset({"f:apiVersion", "f:kind", "f:status", "f:stringData"})
"""The fields that a manifest may contain, but that an apply never makes its manager own. They are not reported as not owned."""
_NOT_OWNED_METADATA: Final = frozenset(
    f"f:{name}"
    for name in (
        "name", "generateName", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
        "managedFields", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
    )
)  # fmt: skip
_KEY_DEFAULTS: Final[JsonObject] = {"protocol": "TCP"}
"""The default values of item keys, which the server fills in if a key is missing. Only ports of built-in kinds have such keys."""


def uncovered(desired: JsonObject, live: JsonObject, owners: FieldOwners) -> Iterator[FieldPath]:
    """Yield the paths of wanted fields that the daemon does not own. The path of an item comes before the paths inside it.

    An empty value is yielded only if another manager replaced it as a whole. A null is never yielded.
    """
    here = _Owned(owners.own, owners.own_updates, tuple(fields for _, fields in owners.sets_of_others()))
    for path in _walk(desired, live, here, ()):
        metadata = path[0] == "f:metadata" and (len(path) == 1 or path[1] in _NOT_OWNED_METADATA)
        if path[0] not in _NOT_OWNED and not metadata:
            yield path


def has_content(value: Maybe) -> bool:
    """Return whether a value exists, and is neither null nor empty. An empty value does not count, because the server and other
    managers may fill it.
    """
    return not isinstance(value, Absent) and value is not None and value != {} and value != []


@dataclass(frozen=True, slots=True)
class _Owned:
    """The owned fields at one position of an object.

    ``applied`` are the fields that the daemon applied. ``updated`` are the fields that were written in another way under the
    daemon's name. ``others`` has the fields of each other manager.
    """

    applied: FieldSet
    updated: FieldSet
    others: tuple[FieldSet, ...]

    def below(self, element: str) -> "_Owned":
        others = tuple(child for fields in self.others if (child := fields.below(element)))
        return _Owned(self.applied.below(element), self.updated.below(element), others)

    def has(self, element: str) -> bool:
        """Return whether the daemon owns the element itself."""
        return element in self.applied.members or element in self.updated.members

    def is_shared(self, element: str) -> bool:
        """Return whether any manager owns something inside the element, so that it is not owned as a whole."""
        return any(element in fields.children for fields in (self.applied, self.updated, *self.others))

    def is_theirs(self, element: str) -> bool:
        """Return whether another manager owns the element."""
        return any(element in fields.members for fields in self.others)

    def elements(self) -> set[str]:
        """Return the path elements at this level that a manager owns, either themselves or in part."""
        sets = (self.applied, self.updated, *self.others)
        return {element for fields in sets for element in fields.members | fields.children.keys()}


def _walk(wanted: JsonValue, live: Maybe, owned: _Owned, path: FieldPath) -> Iterator[FieldPath]:
    """Yield the paths at and below ``path`` that we do not own."""
    if isinstance(wanted, dict):
        steps = [(f"f:{name}", inner, _member(live, name)) for name, inner in wanted.items()]
    elif isinstance(wanted, list) and not all(element.startswith("f:") for element in owned.elements()):
        steps = list(_items(wanted, live, owned))
    else:
        yield path
        return
    for element, inner, there in steps:
        whole = not owned.is_shared(element)
        if inner is None or (whole and owned.has(element)):
            continue
        here = (*path, element)
        if whole and owned.is_theirs(element) and has_content(there):
            yield here
        elif has_content(inner):
            if not element.startswith("f:") and not owned.has(element):
                yield here
            yield from _walk(inner, there, owned.below(element), here)


def _items(wanted: list[JsonValue], live: Maybe, owned: _Owned) -> Iterator[tuple[str, JsonValue, Maybe]]:
    """Yield each wanted item with its path element and the live item. The element comes from the fields that we own; if we do
    not own the item, the element is computed from the item.
    """
    mine = sorted(owned.applied.members | owned.applied.children.keys())
    names = {index: element for element, index in match_items(mine, wanted).items()}
    keys = {name for element in owned.elements() if element.startswith("k:") for name in keys_of(element)}
    for index, item in enumerate(wanted):
        element = names.get(index) or _element(item, index, keys)
        yield element, item, value_at((element,), live)


def _element(item: JsonValue, index: int, keys: set[str]) -> str:
    """Return the path element of an item of a list. In a list without keys, the element consists of the item's value.

    In a list with keys, it consists of the item's keys, or of its index if a key is missing and has no known default.
    """
    if not isinstance(item, dict) or not keys:
        return f"v:{canonical_json(item).decode()}"
    key = {name: item.get(name, _KEY_DEFAULTS.get(name)) for name in keys}
    return f"i:{index}" if None in key.values() else f"k:{canonical_json(key).decode()}"


def _member(value: Maybe, name: str) -> Maybe:
    return value.get(name, ABSENT) if isinstance(value, dict) else ABSENT
