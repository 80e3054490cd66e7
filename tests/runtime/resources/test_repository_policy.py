"""``spec.verify``: keys that are read, and mistakes that make a repository unusable."""

from pathlib import Path

import pytest

from tests.packages.support.signing import KEY, OTHER
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.sources.source import LayoutSource, RegistrySource, source_text
from wharfinger.packages.trust.keys import public_pem
from wharfinger.packages.trust.policy import Policy, TrustedKey
from wharfinger.runtime.resources.repositories import read_repository
from wharfinger.runtime.resources.repository_policy import read_policy
from wharfinger.runtime.resources.resources import SpecError

PEM, SECOND = public_pem(KEY), public_pem(OTHER)


def obj(verify: JsonValue, **source: JsonObject) -> JsonObject:
    return {"spec": {**(source or {"registry": {"repo": "r.example/p"}}), "verify": verify}}


def test_the_keys_of_a_registry_and_of_a_layout(tmp_path: Path) -> None:
    policy = Policy((TrustedKey("spec.verify.keys[0]", PEM), TrustedKey("spec.verify.keys[1]", SECOND)))
    registry = read_repository(obj({"keys": [PEM, SECOND]})).source
    assert isinstance(registry, RegistrySource)
    assert registry.verify == policy
    found = obj({"keys": [PEM, SECOND], "requireVersion": True}, layout={"path": str(tmp_path)})
    assert read_repository(found, (tmp_path,)).source == LayoutSource(tmp_path, policy)
    assert read_policy({"spec": {}}) is None


def test_what_was_fetched_under_another_policy_is_fetched_again() -> None:
    """The name of the source is part of what the daemon has recorded for a package."""
    policies: list[JsonObject] = [
        {"keys": [PEM]},
        {"keys": [SECOND]},
        {"keys": [PEM, SECOND]},
        {"keys": [PEM], "requireVersion": False},
    ]
    names = {source_text(read_repository(obj(policy)).source) for policy in policies}
    plain = read_repository({"spec": {"registry": {"repo": "r.example/p"}}}).source
    assert source_text(plain) == "https://r.example/p"
    assert len(names | {source_text(plain)}) == 5
    assert source_text(read_repository(obj(policies[0])).source) in names


@pytest.mark.parametrize(
    ("verify", "message"),
    [
        ([], "spec.verify: expected an object with keys, found another type; list the public keys"),
        ({}, "spec.verify.keys: expected 1 to 32 public keys in PEM text, found 0"),
        ({"keys": []}, "spec.verify.keys: expected 1 to 32 public keys in PEM text, found 0"),
        ({"keys": [PEM] * 33}, "spec.verify.keys: expected 1 to 32 public keys in PEM text, found 33"),
        ({"keys": [3]}, "spec.verify.keys[0]: expected a public key in PEM text, found another type; correct it"),
        (
            {"keys": [PEM, "hello"]},
            "spec.verify.keys[1]: expected a public key in PEM text (-----BEGIN PUBLIC KEY-----)",
        ),
        ({"key": [PEM]}, "spec.verify: 'key' is not known; use keys, keyless, attestations and requireVersion"),
        ({"keys": [PEM], "requireVersion": "no"}, "spec.verify.requireVersion: expected true or false"),
    ],
)
def test_a_policy_with_a_mistake_lets_nothing_through(verify: JsonValue, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_repository(obj(verify))
    assert message in str(caught.value)


def test_a_folder_of_package_folders_has_no_signatures(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="a folder of package folders has no signatures; use a layout, or a registry"):
        read_repository(obj({"keys": [PEM]}, folder={"path": str(tmp_path)}), (tmp_path,))
