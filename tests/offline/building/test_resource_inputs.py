"""Inputs of ResourceSets. Their ids and keys are those in the documentation of the Flux Operator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.resource_inputs import (
    InputsError,
    Provider,
    Strategy,
    combined,
    input_id,
    normalized,
)

API = "fluxcd.controlplane.io/v1"


def provider(name: str, *inputs: JsonObject, kind: str = "ResourceSetInputProvider") -> Provider:
    return Provider(API, kind, "default", name, inputs)


def reference(name: str, kind: str = "ResourceSetInputProvider") -> JsonObject:
    return {"apiVersion": API, "kind": kind, "name": name, "namespace": "default"}


def test_flattened_inputs_include_their_provider() -> None:
    own = provider("rset", {"id": "1"}, {"id": "2"}, kind="ResourceSet")
    assert combined([own, provider("rsip", {"id": "3", "provider": "mine"})], Strategy.FLATTEN) == (
        {"id": "1", "provider": reference("rset", "ResourceSet")},
        {"id": "2", "provider": reference("rset", "ResourceSet")},
        {"id": "3", "provider": reference("rsip")},
    )


def test_permutations_have_the_same_ids_as_in_the_operator() -> None:
    own = provider("rset", {"id": input_id("foo")}, {"id": input_id("bar")}, kind="ResourceSet")
    found = combined([own, provider("rsip", {"id": input_id("baz")})], Strategy.PERMUTE)
    assert [each["id"] for each in found] == ["563152006", "563676295"]
    assert found[0]["rset"] == {"id": "42074437", "provider": reference("rset", "ResourceSet")}
    assert found[1]["rsip"] == {"id": "40173886", "provider": reference("rsip")}


def test_a_provider_without_inputs_is_omitted_from_permutations_or_empties_them() -> None:
    some = [provider("a", {"x": 1}), provider("b")]
    assert len(combined(some, Strategy.PERMUTE)) == 1
    assert combined(some, Strategy.PERMUTE, include_empty=True) == ()
    assert combined([], Strategy.PERMUTE) == combined([provider("a")], Strategy.PERMUTE) == ()


def test_too_many_permutations_are_refused_before_they_are_made() -> None:
    many = [provider(f"p{number}", *({} for _ in range(10))) for number in range(5)]
    assert len(combined(many[:4], Strategy.PERMUTE)) == 10_000
    with pytest.raises(InputsError, match="100000 permutations; at most 10000 are built"):
        combined(many, Strategy.PERMUTE)


def test_a_name_without_letters_cannot_be_a_key() -> None:
    with pytest.raises(InputsError, match="has no letter or digit"):
        combined([provider("-.-", {"a": 1})], Strategy.PERMUTE)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("My_ResourceSet", "my_resourceset"),
        ("My-ResourceSet", "my_resourceset"),
        ("My/Resource,Set", "my_resource_set"),
        ("_a---b_-_", "a_b"),
        ("A0..B", "a0_b"),
        ("A  B", "a_b"),
        ("é-x", "x"),
        ("__", ""),
    ],
)
def test_provider_names_are_normalized_to_keys(name: str, key: str) -> None:
    assert normalized(name) == key


@given(st.text())
def test_normalized_keys_are_stable_and_valid_in_templates(name: str) -> None:
    key = normalized(name)
    assert normalized(key) == key
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
