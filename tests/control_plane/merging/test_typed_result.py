"""The conversion of results of strategic merge patches to typed objects. It follows other rules than Go's JSON decoder."""

import pytest

from wharfinger.control_plane.kinds.type_shapes import ListTypes, builtin_list_types
from wharfinger.control_plane.merging.typed_result import restored
from wharfinger.control_plane.wire.decoding import DecodingError
from wharfinger.formats.json.value import JsonObject

POD = builtin_list_types("", "v1", "Pod")
SECRET = builtin_list_types("", "v1", "Secret")
SERVICE = builtin_list_types("", "v1", "Service")
LEASE = builtin_list_types("coordination.k8s.io", "v1", "Lease")


def test_merged_values_are_converted_to_their_types() -> None:
    spec: JsonObject = {"priority": 3_000_000_000, "terminationGracePeriodSeconds": 5.0, "containers": [None], "x": 1}
    found = restored({"spec": spec, "metadata": {"labels": {"a": None}}, "y": 1}, POD)

    assert found.obj["spec"] == {"containers": [{}], "priority": -1_294_967_296, "terminationGracePeriodSeconds": 5}
    assert found.obj["metadata"] == {"labels": {"a": ""}}
    assert found.strict == ('unknown field "spec.x"', 'unknown field "y"')
    ports: JsonObject = {"spec": {"ports": [{"targetPort": 5}, {"targetPort": "x"}]}}
    assert restored(ports, SERVICE).obj == ports


@pytest.mark.parametrize(
    ("obj", "lists", "words"),
    [
        ({"spec": "x"}, POD, "cannot restore struct from: string"),
        ({"spec": {"containers": {}}}, POD, "cannot restore slice from map"),
        ({"spec": {"nodeSelector": [1]}}, POD, "cannot restore map from slice"),
        ({"spec": {"hostname": 5}}, POD, "cannot convert int64 to string"),
        ({"spec": {"hostname": 1.5}}, POD, "unrecognized type: string"),
        ({"spec": {"priority": 1.5}}, POD, "cannot convert float64 to int32"),
        ({"spec": {"priority": True}}, POD, "unrecognized type: int32"),
        ({"data": {"a": 5}}, SECRET, "cannot restore slice from int64"),
        ({"data": {"a": "!"}}, SECRET, "error decoding from json: illegal base64 data at input byte 0"),
        ({"spec": {"ports": [{"targetPort": {}}]}}, SERVICE, "cannot unmarshal object into Go value of type int32"),
        (
            {"spec": {"ports": [{"targetPort": 1.5}]}},
            SERVICE,
            "cannot unmarshal number 1.5 into Go value of type int32",
        ),
        ({"spec": {"renewTime": 5}}, LEASE, "json: cannot unmarshal number into Go value of type string"),
        ({"spec": {"renewTime": "x"}}, LEASE, 'parsing time "x"'),
    ],
)
def test_values_of_a_wrong_type_are_refused(obj: JsonObject, lists: ListTypes, words: str) -> None:
    with pytest.raises(DecodingError) as caught:
        restored(obj, lists)
    assert words in str(caught.value)
