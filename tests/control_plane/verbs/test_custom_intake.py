"""Checks of request bodies with objects of custom kinds."""

import pytest

from tests.control_plane.support.samples import definition
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.verbs.custom_intake import custom_object
from wharfinger.control_plane.wire.bodies import Body, read_body
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue

KIND = kind_of_definition(definition())
WIDGET = Served(KIND, KIND.versions[0])
HEAD: JsonObject = {"apiVersion": "example.com/v1", "kind": "Widget"}


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (None, 400, "Object 'Kind' is missing in ''"),
        ([], 400, "cannot unmarshal array into Go value of type struct"),
        ({"apiVersion": "example.com/v1"}, 400, "Object 'Kind' is missing in"),
        (
            {"kind": "Widget"},
            400,
            "the API version in the data () does not match the expected API version (example.com/v1)",
        ),
        ({**HEAD, "apiVersion": "a/b/c"}, 400, "unexpected GroupVersion string: a/b/c"),
        (
            {**HEAD, "kind": "Other"},
            422,
            'Other.example.com "" is invalid: kind: Invalid value: "Other": must be Widget',
        ),
        ({**HEAD, "metadata": 5}, 400, "number into Go value of type v1.ObjectMeta"),
        ({**HEAD, "metadata": {"name": 5}}, 400, "number into Go struct field ObjectMeta.name of type string"),
    ],
)
def test_invalid_bodies_are_refused(body: JsonValue, code: int, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        custom_object(WIDGET, Body(body))
    assert caught.value.code == code
    assert words in caught.value.message


def test_unknown_and_duplicate_fields_are_strict_errors() -> None:
    metadata = b'"metadata":{"name":"a","x":1,"managedFields":[]}'
    text = b'{"apiVersion":"example.com/v1","kind":"Widget",' + metadata + b',"kind":"Widget","z":1}'
    found = custom_object(WIDGET, read_body(text, Encoding.JSON))

    assert found.strict[:2] == ('duplicate field "kind"', 'unknown field "metadata.x"')
    assert found.obj["metadata"] == {"name": "a", "managedFields": [{}]}
    twice = custom_object(WIDGET, read_body(b"apiVersion: example.com/v1\nkind: Widget\nkind: Widget\n", Encoding.YAML))
    assert twice.strict == ('yaml: unmarshal errors:\n  line 3: key "kind" already set in map',)


def test_a_patched_api_version_is_validated_as_a_field() -> None:
    with pytest.raises(StatusError, match=r'apiVersion: Invalid value: "v1": must be example\.com/v1'):
        custom_object(WIDGET, Body({**HEAD, "apiVersion": "v1"}), patched=True)
