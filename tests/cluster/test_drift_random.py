"""Random objects, random writes by others, and server defaults. Exactly the changed fields are found, with their writers.

The expected drift is computed only from the documents after each write. The found drift is computed only from the managers that
the server stores.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster.support.drift_bench import MANAGER, yaml_object
from tests.control_plane.support.bench import new_backend, thing, widgets
from tests.scale import scaled
from wharfinger.cluster.drift.comparison import find_drift
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.objects.applied_objects import Applied, applied_of
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.verbs.patching import PatchType, patch
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    encode_json,
    find_list,
    find_object,
    find_str,
)

SCHEMA: Final = """
type: object
properties:
  spec:
    type: object
    properties:
      count: {type: integer}
      mode: {type: string, default: auto}
      inner: {type: object, default: {}, properties: {u: {type: integer}, w: {type: integer, default: 5}}}
      labels: {type: object, additionalProperties: {type: string}}
      names: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      args: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}
      chosen: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      items:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name, protocol]
        items:
          type: object
          required: [name]
          properties:
            name: {type: string}
            protocol: {type: string, default: TCP}
            value: {type: integer}
            extra: {type: string, default: filled}
"""
Leaf: TypeAlias = tuple[str, ...]
"""Names from ``spec`` on; an item of a list is named by its keys."""
Expected: TypeAlias = dict[str, frozenset[str]]

_WORDS: Final = st.sampled_from("abc")
_NUMBERS: Final = st.integers(0, 3)


@st.composite
def items(draw: st.DrawFn) -> list[JsonValue]:
    """Return list items that are identified by two keys. One of the keys may be left to the server's default."""
    found: dict[tuple[str, str], JsonValue] = {}
    for name, proto in draw(st.lists(st.tuples(_WORDS, st.sampled_from(["TCP", "UDP"])), unique=True, max_size=3)):
        item: JsonObject = {"name": name}
        if proto != "TCP" or draw(st.booleans()):
            item["protocol"] = proto
        item |= draw(st.fixed_dictionaries({}, optional={"value": _NUMBERS, "extra": st.sampled_from(["filled", "z"])}))
        found[name, proto] = item
    return list(found.values())


SPECS: Final = st.fixed_dictionaries(
    {},
    optional={
        "count": _NUMBERS,
        "mode": st.sampled_from(["auto", "hand"]),
        "inner": st.dictionaries(st.sampled_from("uw"), _NUMBERS, min_size=1),
        "labels": st.dictionaries(_WORDS, _WORDS, min_size=1),
        "names": st.lists(_WORDS, unique=True, min_size=1),
        "args": st.lists(_WORDS, min_size=1, max_size=2),
        "chosen": st.dictionaries(_WORDS, _WORDS, min_size=1, max_size=2),
        "items": items().filter(bool),
    },
)


@dataclass(frozen=True)
class Write:
    """A write by some manager: an apply of ``spec``, or an update of the live object.

    An update removes the members in ``drops``, and then sets the members in ``spec``. If ``merges`` is true, it merges maps
    instead of replacing them.
    """

    by: str
    applies: bool
    spec: JsonObject
    drops: frozenset[str]
    merges: bool

    @property
    def is_apply(self) -> bool:
        return self.applies and bool(self.spec) and self.by != MANAGER


WRITES: Final = st.builds(
    Write,
    by=st.sampled_from(["ed", "al", MANAGER]),
    applies=st.booleans(),
    spec=SPECS,
    drops=st.frozensets(
        st.sampled_from(["count", "mode", "inner", "labels", "names", "args", "chosen", "items"]), max_size=2
    ),
    merges=st.booleans(),
)


# -- expected drift


def leaves(spec: JsonObject) -> Iterator[tuple[Leaf, JsonValue]]:
    """Return every field of a document with its value. A list item counts as a field, too."""
    for name, value in spec.items():
        if name in {"inner", "labels"}:
            yield from (((name, key), inner) for key, inner in as_object(value, name).items())
        elif name == "names":
            yield from (((name, str(item)), item) for item in find_list(spec, name))
        elif name == "items":
            for item in find_list(spec, name):
                key = key_of(item)
                yield (name, key), True
                yield from (((name, key, field), inner) for field, inner in as_object(item, name).items())
        else:
            yield (name,), value


def key_of(item: JsonValue) -> str:
    return f"{find_str(item, 'name')}/{find_str(item, 'protocol', default='TCP')}"


def pointer(leaf: Leaf, wanted: JsonObject) -> str:
    """Return the pointer of a field in the desired object."""
    if leaf[0] == "names":
        at = find_list(wanted, "names").index(leaf[1])
        return f"/spec/names/{at}"
    if leaf[0] == "items":
        at = [key_of(item) for item in find_list(wanted, "items")].index(leaf[1])
        return "/".join([f"/spec/items/{at}", *leaf[2:]])
    return "/".join(["/spec", *leaf])


class Changes:
    """The current owners of each field that is no longer ours. Several managers own a field if they applied an equal value."""

    def __init__(self, wanted: JsonObject, answered: JsonObject) -> None:
        self._wanted = wanted
        self._ours = {leaf for leaf, _ in leaves(wanted)}
        self._last = dict(leaves(find_object(answered, "spec")))
        self._by: dict[Leaf, frozenset[str]] = {}

    def note(self, one: Write, after: JsonObject) -> None:
        """Record the result of a write."""
        now = dict(leaves(find_object(after, "spec")))
        said = {leaf for leaf, _ in leaves(one.spec)}
        for leaf in self._ours:
            if leaf in now and now[leaf] != self._last.get(leaf):
                # If the server sets a default during an apply, it has no owner. During an update, it belongs to the writer.
                self._by[leaf] = frozenset({one.by if not one.is_apply or leaf in said else ""})
            elif leaf not in now and leaf in self._last:
                self._by[leaf] = frozenset({""})
            elif one.is_apply and leaf in said and leaf in self._by:
                self._by[leaf] |= {one.by}
            elif one.is_apply and one.by in self._by.get(leaf, ()):
                self._by[leaf] |= {""}  # the writer removed the field, and the server set its default
        self._last = now

    def expected(self) -> Expected:
        """Return the pointer of each field that should be reported as drifted, with the writers that may be named for it."""
        return {pointer(leaf, self._wanted): by for leaf, by in self._by.items() if MANAGER not in by}


def as_without_schema(expected: Expected, wanted: JsonObject, managed: list[JsonValue]) -> Expected:
    """Return the drift that should be reported if the answer to our last apply is not known, as after a restart. Then the
    schema of the object is not known, either.

    If no item of a list has an owner, the list is reported as a whole, because it is unknown how its items are identified. An
    atomic map without an owner is reported member by member, because it is unknown that it is atomic.
    """
    lists = {name for name in ("names", "items") if not any(_has_items(entry, name) for entry in managed)}
    told: Expected = {}
    for place, by in expected.items():
        name = place.split("/")[2]
        if name in lists:
            told[f"/spec/{name}"] = by
        elif name == "chosen" and by == {""}:
            told |= {f"/spec/{name}/{key}": by for key in find_object(wanted, name)}
        else:
            told[place] = by
    return told


def _has_items(entry: JsonValue, name: str) -> bool:
    return bool(find_object(entry, "fieldsV1", "f:spec", f"f:{name}").keys() - {"."})


# -- writes


class Server:
    """A server that consists only of the verbs of the embedded control plane, without its HTTP layers."""

    def __init__(self) -> None:
        self._backend = new_backend()
        self._kind = widgets(self._backend, schema={"openAPIV3Schema": yaml_object(SCHEMA)})

    def begin(self) -> None:
        """Delete the object if it exists."""
        key = self._backend.key(self._kind, "default", "t")
        if self._backend.get(self._kind, "default", "t") is not None:
            self._backend.delete(key)

    def apply(self, manager: str, spec: JsonObject) -> JsonObject:
        body = thing(self._kind, "t", {"namespace": "default", "labels": {f"of-{manager}": "1"}}, spec=spec)
        options = WriteOptions(manager, force=True)
        data = encode_json(body)
        return patch(self._backend, self._kind, "default", "t", "", PatchType.APPLY, data, options).obj

    def replace(self, manager: str, obj: JsonObject) -> JsonObject:
        return replace(self._backend, self._kind, "default", "t", "", obj, WriteOptions(manager)).obj

    def write(self, one: Write, live: JsonObject) -> JsonObject:
        """Carry out one write, and return the object afterwards."""
        if one.is_apply:
            return self.apply(one.by, one.spec)
        spec = {name: value for name, value in find_object(live, "spec").items() if name not in one.drops}
        new: JsonObject = copy.deepcopy(one.spec)
        if one.merges:
            maps = {name: find_object(new, name) for name in ("inner", "labels") if name in new}
            new |= {name: {**find_object(spec, name), **members} for name, members in maps.items()}
        return self.replace(one.by, {**live, "spec": {**spec, **new}})


def found(desired: JsonObject, applied: Applied | None, live: JsonObject) -> dict[str, str]:
    drift = find_drift(desired, applied, live, MANAGER, BUILT_IN)
    fields = drift.fields if drift is not None else ()
    assert len({field.pointer for field in fields}) == len(fields)
    return {field.pointer: field.by for field in fields}


def differences(told: dict[str, str], expected: Expected) -> list[str]:
    """Return the missing and the unexpected reports. A report about a list item counts for all fields of the item."""
    wrong = [f"{place} by {by}" for place, by in told.items() if by not in expected.get(place, ())]
    for place, by in expected.items():
        parts = place.split("/")
        above = {told[said] for length in range(1, len(parts)) if (said := "/".join(parts[:length])) in told}
        if place not in told and not above & by and not ("" in by and above):
            wrong.append(f"{place} is not told")
    return wrong


def check(server: Server, wanted: JsonObject, writes: list[Write]) -> None:
    server.begin()
    live = server.apply(MANAGER, wanted)
    desired: JsonObject = {**live, "spec": wanted}
    desired["metadata"] = {"name": "t", "namespace": "default"}
    applied = applied_of(live, MANAGER)
    assert (found(desired, applied, live), found(desired, None, live)) == ({}, {})
    changes = Changes(wanted, live)
    for one in writes:
        live = server.write(one, live)
        changes.note(one, live)

        expected, managed = changes.expected(), find_list(live, "metadata", "managedFields")
        without = as_without_schema(expected, wanted, managed)
        assert differences(found(desired, applied, live), expected) == []
        assert differences(found(desired, None, live), without) == []


SERVER: Final = Server()


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 100), deadline=None)
@given(wanted=SPECS, writes=st.lists(WRITES, min_size=1, max_size=4))
def test_exactly_the_foreign_changes_are_found(wanted: JsonObject, writes: list[Write]) -> None:
    check(SERVER, wanted, writes)
