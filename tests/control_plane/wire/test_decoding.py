"""Decoding of bodies into typed objects. These rare cases must have the same results as in Go's decoder.

The recordings ``recorded_answers/recordings/types-*.jsonl`` cover the other cases.
"""

import pytest

from wharfinger.control_plane.kinds.type_shapes import builtin_list_types, delete_options_types
from wharfinger.control_plane.wire.decoding import Decoded, DecodingError, decoded
from wharfinger.control_plane.wire.go_json import closely_read
from wharfinger.formats.json.value import JsonObject, as_object

POD = builtin_list_types("", "v1", "Pod")
DEFINITION = builtin_list_types("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def read(text: str) -> Decoded:
    return decoded(as_object(closely_read(text.encode()), "body"), POD)


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ('{"spec":{"priority":null,"hostname":null,"volumes":null}}', {"spec": {}}),
        (
            '{"spec":{"containers":[null],"nodeSelector":{"a":null}}}',
            {"spec": {"containers": [{}], "nodeSelector": {"a": ""}}},
        ),
        ('{"spec":{"overhead":{"cpu":null,"memory":1.50}}}', {"spec": {"overhead": {"cpu": "0", "memory": "1500m"}}}),
        ('{"spec":{"hostname":"a","hostname":null}}', {"spec": {"hostname": "a"}}),
        ('{"spec":{"priority":1,"priority":null}}', {"spec": {}}),
        ('{"spec":{"hostname":"a"},"spec":{"nodeName":"b"}}', {"spec": {"hostname": "a", "nodeName": "b"}}),
        ('{"metadata":{"deletionTimestamp":"0001-01-01T00:00:00Z"}}', {"metadata": {}}),
        ('{"metadata":{"managedFields":[{"fieldsV1":1.5}]}}', {"metadata": {"managedFields": [{"fieldsV1": 1.5}]}}),
    ],
)
def test_nulls_and_repeated_members_are_decoded_as_in_go(body: str, result: JsonObject) -> None:
    assert read(body).obj == result


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"spec":{"priority":1e2}}', "number 1e2 into Go struct field PodSpec.spec.priority of type int32"),
        ('{"spec":{"hostname":5,"priority":true}}', "number into Go struct field PodSpec.spec.hostname of type string"),
        ('{"spec":{"hostname":5},"metadata":{"deletionTimestamp":"x"}}', 'parsing time "x"'),
        (
            '{"spec":{"nodeSelector":[]}}',
            "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        ('{"spec":{"overhead":[]}}', "array into Go struct field PodSpec.spec.overhead of type v1.ResourceList"),
        (
            '{"spec":{"volumes":[{"secret":{"items":[5]}}]}}',
            "SecretVolumeSource.spec.volumes.VolumeSource.secret.items of type v1.KeyToPath",
        ),
    ],
)
def test_values_of_a_wrong_type_are_refused(body: str, words: str) -> None:
    with pytest.raises(DecodingError) as caught:
        read(body)
    assert words in str(caught.value)


def test_strict_decoding_lists_unknown_and_duplicate_fields() -> None:
    found = read(
        '{"spec":{"containers":[{"x":1,"x":1,"env":[{"y":1}]}],"nodeSelector":{"a":"","a":""}},"a\\u0000":1}'
    ).strict

    assert found == (
        'unknown field "spec.containers[0].x"',
        'unknown field "spec.containers[0].env[0].y"',
        'duplicate field "spec.nodeSelector.a"',
        'unknown field "a\\x00"',
    )
    assert len(decoded({f"f{index}": 1 for index in range(200)}, POD).strict) == 100


def test_empty_structs_and_arbitrary_values_are_decoded() -> None:
    subresources = DEFINITION.at("spec", "versions", "subresources")

    assert decoded({"status": {"x": 1}}, subresources).strict == ('unknown field "status.x"',)
    props: JsonObject = {"minimum": 1, "default": {"a": [1.5]}}
    assert decoded(props, DEFINITION.at("spec", "versions", "schema", "openAPIV3Schema")).obj == props
    assert decoded({"dryRun": ["All"]}, delete_options_types()).obj == {"dryRun": ["All"]}
