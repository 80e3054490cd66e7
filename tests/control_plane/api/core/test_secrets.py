import pytest

from wharfinger.control_plane.api.core.secrets import CONFIG_MAP_RULES, SECRET_RULES, decoded, json_object_problem
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{}", ""),
        (b"null", ""),
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b'"a"', "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (b"5", "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (b"true", "json: cannot unmarshal bool into Go value of type map[string]interface {}"),
        (b"nope", "invalid character 'o' in literal null (expecting 'u')"),
    ],
)
def test_invalid_json_in_secrets_is_reported(data: bytes, said: str) -> None:
    assert json_object_problem(data) == said


@pytest.mark.parametrize(
    ("kind", "data", "fields"),
    [
        ("Opaque", {}, []),
        ("example.com/own", {}, []),
        ("kubernetes.io/basic-auth", {"password": ""}, []),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": "eA=="}, []),
        ("kubernetes.io/tls", {}, ["data[tls.crt]", "data[tls.key]"]),
        ("kubernetes.io/dockercfg", {}, ["data[.dockercfg]"]),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]"],
        ),
    ],
)
def test_typed_secrets_must_have_required_keys(kind: str, data: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in SECRET_RULES.create({"type": kind, "data": data})] == fields


def test_sizes_are_counted_in_bytes() -> None:
    whole = "QUFB" * (1024 * 1024 // 3) + "QQ=="
    assert SECRET_RULES.create({"data": {"a": whole}}) == []
    assert (
        SECRET_RULES.create({"data": {"a": whole + "QQ=="}})[0].message
        == "Too long: may not be more than 1048576 bytes"
    )
    assert CONFIG_MAP_RULES.create({"data": {"a": "ü" * 524_288}}) == []
    assert len(CONFIG_MAP_RULES.create({"data": {"a": "ü" * 524_288}, "binaryData": {"b": "QQ=="}})) == 1


def test_invalid_base64_counts_as_empty() -> None:
    assert decoded("?") == decoded(None) == b""
    assert decoded("eA==") == b"x"


def test_only_tls_secrets_cause_warnings() -> None:
    assert SECRET_RULES.warnings({"type": "Opaque"}, None) == []
    assert SECRET_RULES.warnings({"type": "kubernetes.io/tls"}, None) == [
        "tls: failed to find any PEM data in certificate input"
    ]
