"""What is wanted and not owned, judged without a baseline. What a real server makes of it: test_drift, test_drift_random."""

import pytest

from wharfinger.cluster.fields.coverage import has_content, uncovered
from wharfinger.cluster.fields.items import ABSENT, Maybe
from wharfinger.cluster.fields.owners import read_owners
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.field_sets import path_text

WANTED: JsonObject = {
    "apiVersion": "v1",
    "kind": "T",
    "metadata": {"name": "t", "creationTimestamp": None, "labels": {"l": "1"}},
    "status": {"phase": "Old"},
    "spec": {
        "a": 1,
        "none": None,
        "nothing": [],
        "map": {"b": 2},
        "ports": [{"port": 80}, {"port": 81, "protocol": "UDP"}],
    },
}
LABELS: JsonObject = {"f:labels": {"f:l": {}}}
PORTS: JsonObject = {
    'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}},
    'k:{"port":81,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
}
SPEC: JsonObject = {"f:a": {}, "f:map": {}, "f:ports": PORTS}


def paths(own: JsonObject, theirs: JsonObject | None = None, live: JsonObject | None = None) -> list[str]:
    entries: list[JsonObject] = [{"manager": "us", "operation": "Apply", "fieldsV1": own}]
    if theirs is not None:
        entries.append({"manager": "ed", "operation": "Update", "fieldsV1": theirs})
    obj: JsonObject = {**(live or {}), "metadata": {"managedFields": [*entries]}}
    owners = read_owners(obj, "us")
    assert owners is not None
    return [path_text(path) for path in uncovered(WANTED, obj, owners)]


def without(*names: str) -> JsonObject:
    return {"f:metadata": LABELS, "f:spec": {name: value for name, value in SPEC.items() if name not in names}}


def test_what_is_all_ours() -> None:
    assert paths(without()) == []
    assert paths(without("f:map") | {"f:spec": {**SPEC, "f:map": {"f:b": {}}}}) == []


def test_what_no_one_has() -> None:
    assert paths(without("f:a", "f:map")) == [".spec.a", ".spec.map.b"]
    assert paths(without("f:ports")) == [".spec.ports"]
    assert ".metadata.labels.l" in paths({})


@pytest.mark.parametrize(
    ("spec", "live", "told"),
    [
        ({"f:a": {}}, {"a": 2}, [".spec.a"]),
        ({"f:map": {}}, {"map": {"b": 3}}, [".spec.map"]),
        ({"f:map": {}}, {"map": {}}, [".spec.map.b"]),
        ({"f:map": {"f:c": {}}}, {"map": {"c": 3}}, [".spec.map.b"]),
    ],
)
def test_what_others_have(spec: JsonObject, live: JsonObject, told: list[str]) -> None:
    mine = without(*spec)

    assert paths(mine, {"f:spec": spec}, {"spec": live}) == told


def test_what_we_left_empty_and_others_filled() -> None:
    assert paths(without(), {"f:spec": {"f:nothing": {}}}, {"spec": {"nothing": [1]}}) == [".spec.nothing"]
    inside: JsonObject = {"f:nothing": {".": {}, 'k:{"name":"x"}': {".": {}}}}
    assert paths(without(), {"f:spec": inside}, {"spec": {"nothing": [{"name": "x"}]}}) == []
    assert paths(without(), {"f:spec": {"f:none": {}}}, {"spec": {"none": 1}}) == []


def test_an_item_that_lost_a_key_with_a_default_is_found_among_others() -> None:
    mine = without("f:ports") | {
        "f:spec": {"f:a": {}, "f:map": {}, "f:ports": {key: PORTS[key] for key in list(PORTS)[1:]}}
    }

    assert paths(mine) == ['.spec.ports[port=80,protocol="TCP"]', '.spec.ports[port=80,protocol="TCP"].port']


def test_an_item_of_which_a_key_is_unknown_is_told_by_its_place() -> None:
    zoned: JsonObject = {'k:{"port":82,"zone":"z"}': {".": {}}}

    assert paths(without("f:ports") | {"f:spec": {"f:a": {}, "f:map": {}, "f:ports": zoned}})[0] == ".spec.ports[0]"


def test_all_metadata_in_one() -> None:
    own: JsonObject = {"f:spec": SPEC}

    assert paths(own, {"f:metadata": {}}) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [(ABSENT, False), (None, False), ({}, False), ([], False), (0, True), ("", True), (False, True), ([None], True)],
)
def test_what_says_something(value: Maybe, *, says: bool) -> None:
    assert has_content(value) is says
