"""The decoding of protobuf bodies. Some bodies were sent by kubectl 1.37, and smaller ones are built by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.wire.protobuf import MAGIC, ProtobufError, _table, decode_envelope
from wharfinger.formats.json.value import JsonValue, find, find_object

KUBECTL_NAMESPACE = bytes.fromhex(
    "6b3873000a0f0a02763112094e616d657370616365121c0a140a0473686f7012001a0022002a0032003800420012001a020a001a002200"
)


def field(number: int, value: bytes | int) -> bytes:
    """Return one encoded field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, message)


def test_a_protobuf_body_of_kubectl_is_decoded() -> None:
    obj = decode_envelope(KUBECTL_NAMESPACE)

    assert (obj["kind"], obj["apiVersion"]) == ("Namespace", "v1")
    assert find(obj, "metadata", "name") == "shop"
    assert find(obj, "metadata", "creationTimestamp") is None


def test_every_built_in_kind_can_be_read() -> None:
    kinds = find_object(_table(), "kinds")

    assert [
        kind.group_kind
        for kind in BUILTIN_KINDS
        if f"{kind.api_version(kind.versions[0].name)}/{kind.kind}" not in kinds
    ] == []


@pytest.mark.parametrize(
    ("api_version", "kind", "message", "path", "value"),
    [
        ("v1", "ConfigMap", field(2, field(1, b"k") + field(2, b"v")), ("data",), {"k": "v"}),
        ("v1", "ConfigMap", field(3, field(1, b"k") + field(2, b"\x00\x01")), ("binaryData", "k"), "AAE="),
        ("v1", "ConfigMap", field(4, 1), ("immutable",), True),
        ("v1", "ConfigMap", field(1, field(14, b"a") + field(14, b"b")), ("metadata", "finalizers"), ["a", "b"]),
        ("v1", "ConfigMap", field(1, field(7, -2)), ("metadata", "generation"), -2),
        (
            "v1",
            "ConfigMap",
            field(1, field(8, field(1, 1_000_000_000))),
            ("metadata", "creationTimestamp"),
            "2001-09-09T01:46:40Z",
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            field(2, field(4, field(1, 1) + field(2, 5000))),
            ("spec", "renewTime"),
            "1970-01-01T00:00:01.000005Z",
        ),
        ("coordination.k8s.io/v1", "Lease", field(2, field(4, b"")), ("spec", "renewTime"), None),
        (
            "v1",
            "Service",
            field(2, field(1, field(4, field(1, 0) + field(2, 8080)))),
            ("spec", "ports", 0, "targetPort"),
            8080,
        ),
        (
            "v1",
            "Service",
            field(2, field(1, field(4, field(1, 1) + field(3, b"web")))),
            ("spec", "ports", 0, "targetPort"),
            "web",
        ),
        (
            "v1",
            "ResourceQuota",
            field(2, field(1, field(1, b"pods") + field(2, field(1, b"3")))),
            ("spec", "hard", "pods"),
            "3",
        ),
        (
            "v1",
            "Pod",
            field(2, field(1, field(1, b"v") + field(2, field(2, b"")))),
            ("spec", "volumes", 0),
            {"name": "v", "emptyDir": {}},
        ),
        ("v1", "ConfigMap", field(99, b"unknown"), ("data",), None),
        ("meta.k8s.io/v1", "DeleteOptions", field(4, b"Orphan"), ("propagationPolicy",), "Orphan"),
        ("apps/v1", "ControllerRevision", field(2, field(1, b'{"a":1}')), ("data", "a"), 1),
        ("apps/v1", "ControllerRevision", field(2, b""), ("data",), None),
    ],
)
def test_fields_are_decoded_by_kind(
    api_version: str, kind: str, message: bytes, path: tuple[str | int, ...], value: JsonValue
) -> None:
    assert find(decode_envelope(envelope(api_version, kind, message)), *path) == value


def schema(message: bytes) -> JsonValue:
    """Return the decoded schema of a CustomResourceDefinition that contains this encoded schema."""
    versions = field(7, field(1, b"v1") + field(4, field(1, message)))
    obj = decode_envelope(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, versions)))
    return find(obj, "spec", "versions", 0, "schema", "openAPIV3Schema")


def test_schemas_of_definitions_are_decoded() -> None:
    string = field(5, b"string")

    assert find(schema(field(8, field(1, b"1"))), "default") == 1
    with pytest.raises(ProtobufError, match="floating-point"):
        schema(field(11, b""))
    assert schema(field(24, field(1, string)))["items"] == {"type": "string"}  # type: ignore[index, call-overload]
    assert schema(field(24, field(2, string)))["items"] == [{"type": "string"}]  # type: ignore[index, call-overload]
    assert schema(field(30, field(1, 1)))["additionalProperties"] is True  # type: ignore[index, call-overload]
    assert schema(field(30, field(2, string)))["additionalProperties"] == {"type": "string"}  # type: ignore[index, call-overload]
    assert schema(field(32, field(1, b"x") + field(2, field(2, b"y"))))["dependencies"] == {"x": ["y"]}  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        MAGIC,
        envelope("v1", "Unheard", b""),
        envelope("v2", "Pod", b""),
        MAGIC + b"\x0a\x7f",
        MAGIC + b"\x0b",
        MAGIC + b"\xff" * 12,
        MAGIC + b"\x08",
        MAGIC + field(1, 5),
        MAGIC + field(1, field(1, b"\xff\xfe")),
        envelope("v1", "ConfigMap", field(1, 5)),
        envelope("v1", "ConfigMap", field(4, b"x")),
        envelope("v1", "ConfigMap", field(1, field(8, field(1, 1 << 62)))),
        envelope("apps/v1", "ControllerRevision", field(2, field(1, b"{"))),
    ],
)
def test_invalid_protobuf_bodies_are_refused(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_envelope(data)


def test_nesting_is_bounded() -> None:
    message = b""
    for _ in range(200):
        message = field(24, field(1, message))
    versions = field(7, field(4, field(1, message)))
    with pytest.raises(ProtobufError, match="nested deeper"):
        decode_envelope(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, versions)))


@given(st.sampled_from(["Pod", "ConfigMap", "Service", "Namespace"]), st.binary(max_size=80))
def test_any_bytes_are_a_message_or_refused(kind: str, message: bytes) -> None:
    try:
        obj = decode_envelope(envelope("v1", kind, message))
    except ProtobufError:
        return
    assert obj["kind"] == kind


@given(st.integers(0, len(KUBECTL_NAMESPACE) - 1), st.integers(0, 255))
def test_a_damaged_body_is_read_or_refused(position: int, byte: int) -> None:
    data = bytearray(KUBECTL_NAMESPACE)
    data[position] = byte
    try:
        decode_envelope(bytes(data))
    except ProtobufError:
        return
