"""Stand-ins for Secrets that only a cluster has."""

import pytest

from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.offline.building.stand_ins import is_stand_in, stand_in

EXTERNAL, SEALED, CERTIFICATE = (
    ("external-secrets.io/v1", "ExternalSecret"),
    ("bitnami.com/v1alpha1", "SealedSecret"),
    ("cert-manager.io/v1", "Certificate"),
)


def made(maker: tuple[str, str], spec: JsonObject) -> JsonObject | None:
    obj: JsonObject = {"apiVersion": maker[0], "kind": maker[1], "metadata": {"name": "own"}, "spec": spec}
    return stand_in(obj, "apps")


@pytest.mark.parametrize(
    ("maker", "spec", "name", "keys"),
    [
        (EXTERNAL, {"data": [{"secretKey": "b"}, {"secretKey": "a"}, {}]}, "own", ["a", "b"]),
        (EXTERNAL, {"target": {"name": "other"}, "dataFrom": [{"extract": {"key": "x"}}]}, "other", []),
        (EXTERNAL, {"data": [{"secretKey": "b"}], "target": {"template": {"data": {"c": "{{ .b }}"}}}}, "own", ["c"]),
        (
            EXTERNAL,
            {"data": [{"secretKey": "b"}], "target": {"template": {"mergePolicy": "Merge", "data": {"c": ""}}}},
            "own",
            ["b", "c"],
        ),
        (SEALED, {"encryptedData": {"password": "AgB"}}, "own", ["password"]),
        (SEALED, {"encryptedData": {}, "template": {"metadata": {"name": "t"}, "data": {"x": ""}}}, "t", ["x"]),
        (CERTIFICATE, {"secretName": "tls"}, "tls", ["ca.crt", "tls.crt", "tls.key"]),
    ],
)
def test_stand_ins_have_the_names_and_keys_of_their_maker(
    maker: tuple[str, str], spec: JsonObject, name: str, keys: list[str]
) -> None:
    secret = made(maker, spec)
    assert secret is not None
    assert is_stand_in(secret)
    assert (find_str(secret, "metadata", "name"), find_str(secret, "metadata", "namespace")) == (name, "apps")
    assert find(secret, "stringData") == {key: f"..PLACEHOLDER_{key}.." for key in keys}


@pytest.mark.parametrize(
    ("maker", "spec"),
    [
        (CERTIFICATE, {}),
        (CERTIFICATE, {"secretName": ["of another shape"]}),
        (SEALED, {"encryptedData": ["x"]}),
        (("v1", "Secret"), {}),
        (("example.com/v1", "ExternalSecret"), {}),
    ],
)
def test_invalid_or_unknown_makers_have_no_stand_in(maker: tuple[str, str], spec: JsonObject) -> None:
    assert made(maker, spec) is None


def test_a_secret_of_the_tree_is_not_a_stand_in() -> None:
    assert not is_stand_in({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "annotations": {"a": "b"}}})
