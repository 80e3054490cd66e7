import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.control_plane.support.samples import NOW
from wharfinger.control_plane.api.common import cells as c
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.formats.json.value import JsonObject, JsonValue

NAMES = st.sampled_from(
    ["name", "kind", "conditions", "type", "status", "spec", "ports", "addresses", "items", "phase", "ip"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
FIELDS = "metadata spec status data roleRef involvedObject regarding webhooks subsets ports endpoints subjects series conditions"


@pytest.mark.parametrize(
    ("cell", "obj", "shown"),
    [
        (c.text("a", "b"), {"a": {"b": "x"}}, "x"),
        (c.text("a", "b"), {}, "<none>"),
        (c.text("a", default=""), {"a": ""}, ""),
        (c.text("a"), {"a": True}, "<none>"),
        (c.number("a"), {"a": 3}, 3),
        (c.number("a"), {"a": "3"}, 0),
        (c.flag("a", default=True), {}, True),
        (c.flag("a", default=True), {"a": False}, False),
        (c.count("a", "b.c"), {"a": [1, 2], "b": {"c": {"x": 1}}}, 3),
        (c.ratio(("a",), ("b",)), {"a": 1, "b": 2}, "1/2"),
        (c.since(("t",)), {"t": "2026-11-21T03:58:00Z"}, "2m"),
        (c.since(("t",), ("u",)), {"u": "2026-11-21T03:58:00Z"}, "2m"),
        (c.since(("t",)), {}, "<unknown>"),
        (c.joined("a", default="-"), {"a": ["x", 3, "y"]}, "x,y"),
        (c.joined("a", default="-"), {}, "-"),
        (c.containers("name", "t"), {"t": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}, "a,b"),
        (c.containers("name"), {}, ""),
        (c.selector("s"), {"s": {"matchLabels": {"b": "2", "a": "1"}}}, "a=1,b=2"),
        (c.selector("s"), {}, "<none>"),
        (c.labels("s"), {"s": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (c.labels("s"), {}, "<none>"),
        (c.access_modes("m"), {"m": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"]}, "RWO,RWX"),
    ],
)
def test_cells_are_formatted(cell: c.Cell, obj: JsonObject, shown: JsonValue) -> None:
    assert cell(obj, NOW) == shown


def test_selectors_are_shown_by_key() -> None:
    expressions: JsonValue = [
        {"key": "b", "operator": "In", "values": ["y", "x"]},
        {"key": "a", "operator": "DoesNotExist"},
        {"key": "d", "operator": "NotIn", "values": ["z"]},
        {"key": "e", "operator": "Exists"},
    ]

    shown = c.format_selector({"matchLabels": {"c": "1"}, "matchExpressions": expressions})

    assert shown == "!a,b in (x,y),c=1,d notin (z),e"


def test_items_beyond_the_first_are_counted() -> None:
    assert c.with_more("abc") == "a,b,c"
    assert c.with_more("abcde") == "a,b,c + 2 more..."


@given(st.sampled_from(BUILTIN_KINDS), st.dictionaries(st.sampled_from(FIELDS.split()), VALUES))
def test_arbitrary_objects_do_not_crash_a_cell(kind: object, obj: JsonObject) -> None:
    for known in BUILTIN_KINDS:
        if known is kind:
            for column in known.versions[0].columns:
                column.cell(obj, NOW)
