"""Paths into lists: items that are identified by keys, keys that are omitted because they have a default, and JSON pointers."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.fields.items import ABSENT, keys_of, leaf_values, match_items, segments_at, value_at
from wharfinger.formats.json.pointers import pointer_of
from wharfinger.formats.json.value import JsonValue
from wharfinger.kube.field_sets import FieldPath, FieldSet

TCP: Final = 'k:{"port":80,"protocol":"TCP"}'
UDP: Final = 'k:{"port":80,"protocol":"UDP"}'


@pytest.mark.parametrize(
    ("elements", "items", "found"),
    [
        (['k:{"name":"b"}', 'k:{"name":"c"}'], [{"name": "a"}, {"name": "b"}], {'k:{"name":"b"}': 1}),
        ([TCP, UDP], [{"port": 80}, {"port": 80, "protocol": "UDP"}], {TCP: 0, UDP: 1}),
        ([UDP], [{"port": 80}, {"port": 80, "protocol": "UDP"}], {UDP: 1}),
        ([TCP], [{"protocol": "TCP"}, {"port": 80}], {TCP: 0}),
        ([TCP], [{"other": 1}, 5, None], {}),
        (['k:{"port":1}', 'k:{"port":true}'], [{"port": True}, {"port": 1}], {'k:{"port":1}': 1, 'k:{"port":true}': 0}),
        (['k:{"x":[1]}'], [{"x": [1.0]}], {'k:{"x":[1]}': 0}),
        (['k:{"name":"a"}', 'k:{"name":"a","b":1}'], [{"name": "a", "b": 1}], {'k:{"name":"a","b":1}': 0}),
        (['v:"a"', "v:1"], ["b", 1.0, "a", "a"], {'v:"a"': 2, "v:1": 1}),
        (["i:0", "i:3"], ["x"], {"i:0": 0}),
        (["k:[", "f:a"], [{"a": 1}], {}),
    ],
)
def test_elements_are_matched_to_items(elements: list[str], items: list[JsonValue], found: dict[str, int]) -> None:
    assert match_items(elements, items) == found


def test_keys_of_an_element_are_read() -> None:
    assert (keys_of(UDP), keys_of("k:1"), keys_of("k:{")) == ({"port": 80, "protocol": "UDP"}, {}, {})


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["TCP", "UDP"])), unique=True))
def test_every_item_is_matched_by_its_element(named: list[tuple[str, str]]) -> None:
    """An item also matches if it omits a key whose value is the default."""
    elements = [f'k:{{"name":"{name}","protocol":"{protocol}"}}' for name, protocol in named]
    items: list[JsonValue] = [
        {"name": name} if protocol == "TCP" else {"name": name, "protocol": protocol} for name, protocol in named
    ]

    assert match_items(elements, items) == {element: at for at, element in enumerate(elements)}


def test_values_are_found_by_their_paths() -> None:
    document: JsonValue = {"a": {"b": 1, "c": {}}, "ports": [{"port": 80, "x": None}], "set": ["p"]}
    paths: list[FieldPath] = [
        ("f:a", "f:b"),
        ("f:a", "f:c"),
        ("f:a", "f:d"),
        ("f:a", "f:b", "f:deeper"),
        ("f:ports", TCP, "f:x"),
        ("f:ports", 'k:{"port":81}'),
        ("f:set", 'v:"p"'),
        ("f:a", 'v:"p"'),
    ]
    values = {path: value_at(path, document) for path in paths}

    assert list(values.values()) == [1, {}, ABSENT, ABSENT, None, ABSENT, "p", ABSENT]
    assert dict(leaf_values(FieldSet.of_paths(paths[1:]), document)) == {
        path: value for path, value in values.items() if path != ("f:a", "f:b")
    }


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ((), ""),
        (("f:a/b", "f:c~d"), "/a~1b/c~0d"),
        (("f:ports", TCP, "f:name"), "/ports/1/name"),
        (("f:ports", UDP), "/ports/0"),
        (("f:ports", 'k:{"port":9}'), "/ports/2"),
        (("f:ports", 'k:{"port":7}', "f:x"), '/ports/k:{"port":7}/x'),
    ],
)
def test_pointers_use_the_indexes_of_the_desired_list(path: FieldPath, pointer: str) -> None:
    wanted: JsonValue = {"ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "name": "x"}]}
    live: JsonValue = {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 1}, {"port": 9}]}

    assert pointer_of(segments_at(path, wanted, live)) == pointer
