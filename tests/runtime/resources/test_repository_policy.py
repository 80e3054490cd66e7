"""``spec.verify``: its keys, and the mistakes that make a repository unusable."""

from pathlib import Path

import pytest

from tests.packages.support.openpgp import Pgp, pgp
from tests.packages.support.signing import KEY, OTHER
from tests.packages.support.sigstore import AUTHORITY, pem_of
from wharfinger.control_plane.custom.defaulting import defaulted
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.packages.sources.source import LayoutSource, RegistrySource, source_text
from wharfinger.packages.trust.keys import public_pem
from wharfinger.packages.trust.policy import Policy, TrustedKey, TrustRoot
from wharfinger.runtime.resources.custom_resources import own_crds
from wharfinger.runtime.resources.repositories import read_repository
from wharfinger.runtime.resources.repository_policy import policy_for_command, read_policy
from wharfinger.runtime.resources.resources import SpecError

__all__ = ["pgp"]
PEM, SECOND = public_pem(KEY), public_pem(OTHER)
IDENTITY: JsonObject = {"issuer": "https://ci.example", "subject": "https://git.example/*"}
KEYLESS: JsonObject = {"authorities": AUTHORITY.pem, "logKeys": [PEM], "identities": [IDENTITY]}


def obj(verify: JsonValue, **source: JsonObject) -> JsonObject:
    return {"spec": {**(source or {"registry": {"repo": "r.example/p"}}), "verify": verify}}


def test_keys_of_registries_and_layouts_are_read(tmp_path: Path) -> None:
    policy = Policy((TrustedKey("spec.verify.keys[0]", PEM), TrustedKey("spec.verify.keys[1]", SECOND)))
    registry = read_repository(obj({"keys": [PEM, SECOND]})).source
    assert isinstance(registry, RegistrySource)
    assert registry.verify == policy
    found = obj({"keys": [PEM, SECOND], "requireVersion": True}, layout={"path": str(tmp_path)})
    assert read_repository(found, (tmp_path,)).source == LayoutSource(tmp_path, policy)
    assert read_policy({"spec": {}}) is None


def test_keyless_identities_are_read() -> None:
    policy = read_policy(obj({"keyless": KEYLESS, "attestations": ["t"]}))
    assert policy is not None
    log = TrustedKey("spec.verify.keyless.logKeys[0]", PEM)
    assert (policy.keys, policy.predicates, policy.root) == ((), ("t",), TrustRoot(AUTHORITY.pem, (log,)))
    (identity,) = policy.identities
    assert str(identity) == "https://git.example/* (issuer https://ci.example)"
    assert identity.matches("https://git.example/team/web", "https://ci.example")
    assert not identity.matches("https://git.example/team/web", "https://ci.example.evil")
    assert not identity.matches("https://git.example.evil/web", "https://ci.example")
    with pytest.raises(FormatError, match=r"spec\.verify\.keys: expected 1 to 32"):
        policy_for_command(obj({}))


def test_a_keyring_is_read_with_the_defaults_of_the_api_server(pgp: Pgp) -> None:
    keyring = pgp.keyring("ours")
    (crd,) = (each for each in own_crds() if find(each, "spec", "names", "kind") == "PackageRepository")
    stored = defaulted(find_object(crd, "spec", "versions", 0, "schema", "openAPIV3Schema"), obj({"keyring": keyring}))
    assert find(stored, "spec", "verify", "requireVersion") is True
    assert read_policy(stored) == Policy(keyring=keyring)
    with pytest.raises(FormatError, match="keyring: cannot be used together with requireVersion"):
        policy_for_command(obj({"keyring": keyring, "requireVersion": False}))


def test_packages_are_fetched_again_after_a_policy_change() -> None:
    """The daemon fetches a package again if the text that names its source differs from the recorded one. A different
    policy must therefore give a different text.
    """
    policies: list[JsonObject] = [
        {"keys": [PEM]},
        {"keys": [SECOND]},
        {"keys": [PEM, SECOND]},
        {"keys": [PEM], "requireVersion": False},
        {"keys": [PEM], "attestations": ["https://slsa.dev/provenance/v1"]},
        {"keys": [PEM], "keyless": KEYLESS},
        {"keyless": KEYLESS},
        {"keyless": {**KEYLESS, "certificateLogKeys": [PEM]}},
        {"keyless": {**KEYLESS, "identities": [{**IDENTITY, "subject": "*"}]}},
    ]
    names = {source_text(read_repository(obj(policy)).source) for policy in policies}
    plain = read_repository({"spec": {"registry": {"repo": "r.example/p"}}}).source
    assert source_text(plain) == "https://r.example/p"
    assert len(names | {source_text(plain)}) == len(policies) + 1
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
        (
            {"key": [PEM]},
            "spec.verify: unknown field 'key'; use keys, keyless, attestations, keyring and requireVersion",
        ),
        ({"keyring": 3}, "spec.verify.keyring: expected armored public keys of OpenPGP, found another type"),
        ({"keyring": "x"}, "spec.verify.keyring: expected armored public keys of OpenPGP, found none"),
        ({"keyring": "x", "keys": [PEM]}, "spec.verify.keyring: cannot be used together with keys"),
        ({"keyless": 3}, "spec.verify.keyless: expected an object with authorities, found another type"),
        ({"keyless": {}}, "spec.verify.keyless.identities: expected 1 to 32 signers, found 0"),
        ({"keyless": {"root": 1}}, "spec.verify.keyless: unknown field 'root'; use authorities, logKeys"),
        ({"keyless": {**KEYLESS, "authorities": "x"}}, "spec.verify.keyless.authorities cannot be read"),
        ({"keyless": {**KEYLESS, "authorities": 3}}, "spec.verify.keyless.authorities: expected certificates in PEM"),
        (
            {"keyless": {**KEYLESS, "authorities": pem_of(AUTHORITY.between)}},
            "expected a root certificate, found 1 other",
        ),
        ({"keyless": {**KEYLESS, "logKeys": []}}, "spec.verify.keyless.logKeys: expected 1 to 32 public keys"),
        ({"keyless": {**KEYLESS, "certificateLogKeys": ["x"]}}, "certificateLogKeys[0]: expected a public key"),
        (
            {"keyless": {**KEYLESS, "identities": [{"issuer": "i"}]}},
            "identities[0].subject: expected a text of 1 to 500",
        ),
        ({"keyless": {**KEYLESS, "identities": [3]}}, "identities[0]: expected an object with issuer"),
        ({"keys": [PEM], "attestations": [3]}, "spec.verify.attestations: expected at most 32 texts of 1 to 500"),
        ({"keys": [PEM], "requireVersion": "no"}, "spec.verify.requireVersion: expected true or false"),
    ],
)
def test_an_invalid_policy_makes_a_repository_unusable(verify: JsonValue, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_repository(obj(verify))
    assert message in str(caught.value)


def test_a_folder_of_package_folders_has_no_signatures(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="a folder of package folders has no signatures; use a layout, or a registry"):
        read_repository(obj({"keys": [PEM]}, folder={"path": str(tmp_path)}), (tmp_path,))
