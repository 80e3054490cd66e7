import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.discovery.endpoint_slices import ENDPOINT_SLICE_RULES, endpoint_slice_errors
from wharfinger.formats.json.value import JsonObject, JsonValue

RULES = ENDPOINT_SLICE_RULES["EndpointSlice.discovery.k8s.io"]


def listing(kind: str, *addresses: str, **fields: JsonValue) -> JsonObject:
    return {"addressType": kind, "endpoints": [{"addresses": [*addresses], **fields}]}


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        (listing("IPv4", "10.0.0.1"), []),
        (listing("IPv4", "fd00::1"), ["endpoints[0].addresses"]),
        (listing("IPv4", "010.0.0.1"), ["endpoints[0].addresses[0]"]),
        (listing("IPv6", "fd00::1"), []),
        (listing("IPv6", "::1"), ["endpoints[0].addresses[0]"]),
        (listing("FQDN", "a.example.", "b"), ["endpoints[0].addresses[1]"]),
        (listing("FQDN", ""), ["endpoints[0].addresses[0]"]),
        (listing("FQDN", "a." + "b" * 64), ["endpoints[0].addresses[0]"]),
        (listing("Odd", "x"), ["addressType"]),
        (listing("IPv4"), ["endpoints[0].addresses"]),
        (listing("IPv4", *["10.0.0.1"] * 101), ["endpoints[0].addresses"] ),
        (listing("IPv4", "10.0.0.1", hostname="A", nodeName="A"),
         ["endpoints[0].nodeName", "endpoints[0].hostname"]),
        (listing("IPv4", "10.0.0.1", hints={"forZones": [{"name": "a"}] * 9}), ["endpoints[0].hints.forZones"]),
        (listing("IPv4", "10.0.0.1", hints={"forNodes": [{"name": "a"}] * 2}), ["endpoints[0].hints.forNodes[1].name"]),
        ({"addressType": "IPv4", "endpoints": [{}] * 1001}, ["endpoints"]),
        ({"addressType": "IPv4", "ports": [{"protocol": "TCP"}] * 20_001}, ["ports"]),
        ({"addressType": "IPv4", "ports": [{"name": "a"}, {"name": "a", "protocol": "X", "appProtocol": " "}]},
         ["ports[0].protocol", "ports[1].name", "ports[1].protocol", "ports[1].appProtocol"]),
    ],
)  # fmt: skip
def test_invalid_endpoint_slice_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in endpoint_slice_errors(one)] == fields


def test_unchanged_endpoints_are_not_checked() -> None:
    old = listing("IPv4", "::1")

    assert RULES.update(old, old) == []
    assert [error.field for error in RULES.update({**old, "addressType": "IPv6"}, old)] == ["addressType"]


@given(shapes("addressType", "endpoints", "addresses", "ports", "hints", "forZones", "name"))
def test_arbitrary_objects_do_not_crash(one: JsonObject) -> None:
    RULES.create(one)
    RULES.update(one, {})
