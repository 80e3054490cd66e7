"""Objects, as Go's ``fmt`` prints them."""

from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.wire.go_printing import json_text, map_text, struct_order


def test_fields_have_the_order_of_the_struct() -> None:
    obj = struct_order(
        {
            "data": {"b": "<", "a": "1"},
            "metadata": {"labels": {}, "name": "x"},
            "odd": 1,
            "apiVersion": "v1",
            "kind": "C",
        },
        builtin_list_types("", "v1", "ConfigMap"),
    )

    assert json_text(obj) == (
        '{"kind":"C","apiVersion":"v1","metadata":{"name":"x","labels":{}},"data":{"a":"1","b":"\\u003c"},"odd":1}'
    )


def test_values_are_formatted_as_by_fmt() -> None:
    assert map_text({"b": [1, 1.5, 2.0, None, True, "x y"], "a": {}}) == "map[a:map[] b:[1 1.5 2 <nil> true x y]]"
    assert map_text([10**400, 2**63, -(2**63)]) == "[+Inf 9.223372036854776e+18 -9223372036854775808]"
