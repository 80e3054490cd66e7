"""The search for desired fields that our manager does not own. It needs no baseline. test_comparison and test_drift_random use
real objects.
"""

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


def test_fields_that_are_all_ours_are_not_listed() -> None:
    assert paths(without()) == []
    assert paths(without("f:map") | {"f:spec": {**SPEC, "f:map": {"f:b": {}}}}) == []


def test_fields_without_an_owner_are_listed() -> None:
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
def test_fields_owned_by_others_are_listed_if_they_differ(spec: JsonObject, live: JsonObject, told: list[str]) -> None:
    mine = without(*spec)

    assert paths(mine, {"f:spec": spec}, {"spec": live}) == told


def test_fields_left_empty_by_us_and_set_by_others_are_listed() -> None:
    assert paths(without(), {"f:spec": {"f:nothing": {}}}, {"spec": {"nothing": [1]}}) == [".spec.nothing"]
    inside: JsonObject = {"f:nothing": {".": {}, 'k:{"name":"x"}': {".": {}}}}
    assert paths(without(), {"f:spec": inside}, {"spec": {"nothing": [{"name": "x"}]}}) == []
    assert paths(without(), {"f:spec": {"f:none": {}}}, {"spec": {"none": 1}}) == []


def test_an_item_with_an_omitted_default_key_is_identified() -> None:
    mine = without("f:ports") | {
        "f:spec": {"f:a": {}, "f:map": {}, "f:ports": {key: PORTS[key] for key in list(PORTS)[1:]}}
    }

    assert paths(mine) == ['.spec.ports[port=80,protocol="TCP"]', '.spec.ports[port=80,protocol="TCP"].port']


def test_an_item_with_an_unknown_key_is_identified_by_its_index() -> None:
    zoned: JsonObject = {'k:{"port":82,"zone":"z"}': {".": {}}}

    assert paths(without("f:ports") | {"f:spec": {"f:a": {}, "f:map": {}, "f:ports": zoned}})[0] == ".spec.ports[0]"


def test_metadata_owned_as_a_whole_by_others_is_not_listed() -> None:
    own: JsonObject = {"f:spec": SPEC}

    assert paths(own, {"f:metadata": {}}) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [(ABSENT, False), (None, False), ({}, False), ([], False), (0, True), ("", True), (False, True), ([None], True)],
)
def test_values_with_content_are_recognized(value: Maybe, *, says: bool) -> None:
    assert has_content(value) is says
