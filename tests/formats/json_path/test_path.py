import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.json_path.path import JsonPathError, evaluate, parse_json_path

OBJECT: JsonObject = {
    "metadata": {"name": "a", "labels": {"x.y/z": "1"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False", "n": 2}]},
    "on": True,
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("", [OBJECT]),
        (".metadata.name", ["a"]),
        (r".metadata.labels.x\.y/z", ["1"]),
        (".metadata.labels['x.y/z']", ["1"]),
        ('.metadata.labels["x.y/z"]', ["1"]),
        (".status.conditions[0].type", ["Ready"]),
        (".status.conditions[-1].type", ["Old"]),
        (".status.conditions[5].type", []),
        (".status.conditions[*].type", ["Ready", "Old"]),
        (".metadata.labels[*]", ["1"]),
        (".metadata.labels.*", ["1"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type!="Ready")].status', ["False"]),
        (".status.conditions[?(@.n==2)].type", ["Old"]),
        (".metadata.name[0]", []),
        (".metadata[?(@.a=='x')]", []),
        (".absent.deeper", []),
        (".on[*]", []),
    ],
)
def test_paths_select_values(path: str, values: list[JsonValue]) -> None:
    assert evaluate(parse_json_path(path), OBJECT) == values


@pytest.mark.parametrize("path", ["x", ".", ".a[", ".a[?(@.b)]", "..a", ".a[x]", f".a[{'9' * 5000}]"])
def test_invalid_paths_are_refused(path: str) -> None:
    with pytest.raises(JsonPathError, match="cannot be read from character"):
        parse_json_path(path)


def test_booleans_compare_by_the_text_that_kubectl_prints() -> None:
    assert evaluate(parse_json_path(".items[?(@.on==true)].n"), {"items": [{"on": True, "n": 1}, {"n": 2}]}) == [1]


@given(st.text(alphabet=".[]?(@=!'\"*ab01\\ ", max_size=25))
def test_any_text_is_a_path_or_an_error(text: str) -> None:
    try:
        steps = parse_json_path(text)
    except JsonPathError:
        return
    assert isinstance(evaluate(steps, OBJECT), list)
