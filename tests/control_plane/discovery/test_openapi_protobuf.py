"""OpenAPI documents in protobuf. The tests decode the wire format, and check field numbers and contents."""

from collections.abc import Iterator

from wharfinger.control_plane.discovery.openapi_data import document
from wharfinger.control_plane.discovery.openapi_protobuf import version_2_protobuf
from wharfinger.formats.json.value import JsonObject, find_object


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        size, at = (8, at) if tag & 7 == 1 else varint(data, at)
        yield tag >> 3, data[at : at + size]
        at += size


def messages(data: bytes | int, number: int) -> list[bytes]:
    assert isinstance(data, bytes)
    return [value for found, value in fields(data) if found == number and isinstance(value, bytes)]


def test_every_path_and_definition_is_encoded() -> None:
    written = version_2_protobuf(document("v2"))

    paths = messages(messages(written, 8)[0], 2)
    definitions = messages(messages(written, 9)[0], 1)
    assert [messages(item, 1)[0].decode() for item in paths] == list(find_object(document("v2"), "paths"))
    assert len(definitions) == len(find_object(document("v2"), "definitions"))
    assert messages(written, 1) == [b"2.0"]


def test_all_fields_of_a_schema_are_encoded() -> None:
    schema: JsonObject = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string", "enum": ["x", "y z"], "minLength": 3}, "b": {"$ref": "#/definitions/B"}},
        "additionalProperties": {"type": "integer", "minimum": 1.5, "exclusiveMinimum": True},
        "x-kubernetes-list-map-keys": ["name"],
    }

    written = version_2_protobuf({"swagger": "2.0", "definitions": {"A": schema, "C": {"additionalProperties": True}}})

    first, second = (messages(item, 2)[0] for item in messages(messages(written, 9)[0], 1))
    assert messages(first, 19) == [b"a"]
    assert messages(messages(first, 22)[0], 1) == [b"object"]
    a, b = (messages(item, 2)[0] for item in messages(messages(first, 25)[0], 1))
    assert [messages(item, 2)[0] for item in messages(a, 20)] == [b"x\n", b'"y z"\n']
    assert (12, 3) in fields(a)
    assert messages(b, 1) == [b"#/definitions/B"]
    extension = messages(first, 31)[0]
    assert messages(messages(extension, 2)[0], 2) == [b'["name"]\n']
    assert list(fields(messages(second, 21)[0])) == [(2, 1)]
