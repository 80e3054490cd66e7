from wharfinger.control_plane.api.common.filling import fill, inner, objects
from wharfinger.formats.json.value import JsonObject


def test_only_missing_values_are_added() -> None:
    obj: JsonObject = {"a": 0, "b": "", "c": None, "e": False}
    fill(obj, a=1, b="x", c=2, d=3, e=True)

    assert obj == {"a": 0, "b": "x", "c": 2, "d": 3, "e": False}


def test_members_of_wrong_types_are_replaced_or_skipped() -> None:
    obj: JsonObject = {"a": [], "list": [{}, 1]}

    inner(obj, "a")["b"] = 1
    assert obj["a"] == {"b": 1}
    assert objects(obj, "list") == [{}]
    assert objects(obj, "a", "none") == []
