"""The builder of YAML trees from events of libyaml, and the costs that it counts."""

import pytest
import yaml

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.yaml.tree import Refused, TreeBuilder, TreeLimits


def build(text: str, *, depth: int = 10, nodes: int = 100, characters: int = 1000) -> list[JsonValue]:
    builder = TreeBuilder(TreeLimits(depth, nodes, characters))
    found: list[JsonValue] = []
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.DocumentEndEvent):
            found.append(builder.finish())
        elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            builder.feed(event)
    return found


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("x", 1),
        ("[]", 1),
        ("{}", 1),
        ("[1, 2]", 3),
        ("{a: 1}", 3),
        ("[&a [1, 2], *a]", 1 + 3 + 3),
        ("[&a [1, 2], &b [*a, *a], *b]", 1 + 3 + 7 + 7),
        ("{<<: {a: 1}}", 2 + 3 + 1),
        ("[&a {a: 1}, {<<: *a}]", 1 + 3 + 2 + 3 + 1),
        ("&k x: *k", 3),
        ("1\n---\n2", 2),
    ],
)
def test_nodes_are_counted_with_aliases_written_out(text: str, nodes: int) -> None:
    assert build(text, nodes=nodes)
    with pytest.raises(Refused, match=f"more than {nodes - 1} values"):
        build(text, nodes=nodes - 1)


@pytest.mark.parametrize(
    ("text", "characters"),
    [("abc", 3), ("{ab: cde}", 5), ("[&a abc, *a, *a]", 9), ("&k ab: *k", 4), ("[&a {b: cd}, *a]", 6)],
)
def test_characters_are_counted_with_aliases_written_out(text: str, characters: int) -> None:
    assert build(text, characters=characters)
    with pytest.raises(Refused, match=f"more than {characters - 1} characters"):
        build(text, characters=characters - 1)


@pytest.mark.parametrize(
    ("text", "depth"),
    [("[[]]", 2), ("{a: {b: {}}}", 3), ("[&a [[]], *a]", 3), ("[&a [[]], [*a]]", 4), ("[&a [[]], &b [*a], [[*b]]]", 6)],
)
def test_depth_is_measured_with_aliases_written_out(text: str, depth: int) -> None:
    assert build(text, depth=depth)
    with pytest.raises(Refused, match=f"nested deeper than {depth - 1} levels"):
        build(text, depth=depth - 1)


def test_a_scalar_without_a_json_form_may_be_an_aliased_key() -> None:
    assert build("[{&i .inf : 1}, {*i : 2}]") == [[{".inf": 1}, {".inf": 2}]]
    with pytest.raises(Refused, match=r"\.inf has no JSON form"):
        build("[{&i .inf : 1}, *i]")


@pytest.mark.parametrize("text", ["&a [*a]", "&a {b: *a}", "&a [[*a]]", "&a {<<: *a}", "&a {<<: [*a]}"])
def test_a_value_that_contains_itself_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="inside the value of the anchor"):
        build(text)


def test_an_alias_refers_to_the_latest_anchor_of_its_name() -> None:
    assert build("[&a [&a 1, *a], *a]") == [[[1, 1], 1]]
    assert build("[&a 1, &a [2], *a]") == [[1, [2], [2]]]


def test_only_merged_keys_may_be_overridden() -> None:
    assert build("{<<: {a: 1}, a: 2}") == [{"a": 2}]
    assert build("{a: 1, <<: {a: 2}, b: 3}") == [{"a": 2, "b": 3}]
    for text in ("{a: 1, <<: {b: 2}, a: 3}", "{<<: {a: 1}, a: 2, a: 3}"):
        with pytest.raises(Refused, match="duplicate key 'a'"):
            build(text)


def test_the_tree_builder_can_be_reused_for_the_next_document() -> None:
    assert build("{a: &x 1}\n---\n[2]\n--- 3") == [{"a": 1}, [2], 3]
    with pytest.raises(Refused, match="no anchor"):
        build("&x 1\n--- *x")
