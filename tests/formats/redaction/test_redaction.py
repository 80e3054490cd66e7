"""Redaction of objects: no planted secret remains, other values are kept, arguments are not changed, and nothing is raised."""

import base64
import copy
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.values import json_objects, json_values
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue
from wharfinger.formats.redaction.redaction import redact_object, redact_value
from wharfinger.formats.redaction.redaction_text import MARK


def test_secrets_are_redacted_except_their_keys() -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "db", "labels": {"app": "x"}},
        "type": "Opaque",
        "data": {"user": "Ym9i", "empty": "", "none": None},
        "stringData": {"config.yaml": "a: 1"},
    }

    assert redact_object(secret) == {
        **secret,
        "data": {"user": MARK, "empty": "", "none": None},
        "stringData": {"config.yaml": MARK},
    }


def test_secrets_in_lists_and_events_are_redacted() -> None:
    secret: JsonObject = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Ym9i"}}
    bare: JsonObject = {"metadata": {"name": "s"}, "data": {"a": "Ym9i"}}
    config: JsonObject = {"kind": "ConfigMap", "data": {"a": "Ym9i"}}
    documents: list[JsonObject] = [
        {"kind": "List", "items": [secret, config]},
        {"type": "ADDED", "object": secret},
        {"kind": "SecretList", "items": [bare, secret]},
    ]

    for document in documents:
        assert json.dumps(redact_object(document)).count("Ym9i") == json.dumps(document).count("ConfigMap")
    assert redact_object({"kind": "ConfigMapList", "items": [bare]}) == {"kind": "ConfigMapList", "items": [bare]}


@pytest.mark.parametrize("data", ["Ym9i", ["Ym9i"], {"a": {"b": ["Ym9i"]}}, 42])
def test_malformed_secrets_are_redacted(data: JsonValue) -> None:
    assert "Ym9i" not in json.dumps(redact_object({"kind": "Secret", "data": data}))


def test_the_last_applied_configuration_is_redacted() -> None:
    key = "kubectl.kubernetes.io/last-applied-configuration"
    annotations: JsonObject = {key: '{"stringData":{"x":"hunter2"}}', "note": "kept"}

    assert redact_object({"metadata": {"annotations": annotations}}) == {
        "metadata": {"annotations": {key: MARK, "note": "kept"}}
    }


def test_values_of_sensitive_keys_are_redacted_at_any_depth() -> None:
    values: JsonObject = {
        "db": {"password": "x1", "port": 5432, "users": [{"name": "a", "apiKey": "k"}]},
        "pin": {"passcode": 1234},
        "tokens": ["a", {"value": "b", "on": True}, None],
        "auth": {"config": {"inner": 1.5}},
        "enabled": {"automountServiceAccountToken": True, "token": None, "password": ""},
    }

    assert redact_object(values) == {
        "db": {"password": MARK, "port": 5432, "users": [{"name": "a", "apiKey": MARK}]},
        "pin": {"passcode": MARK},
        "tokens": [MARK, {"value": MARK, "on": True}, None],
        "auth": {"config": {"inner": MARK}},
        "enabled": {"automountServiceAccountToken": True, "token": None, "password": ""},
    }


def test_references_to_secrets_are_not_redacted() -> None:
    pod: JsonObject = {
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [
            {
                "name": "tls",
                "secret": {"secretName": "web-tls", "defaultMode": 420, "items": [{"key": "a", "path": "b"}]},
            },
            {"projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}},
        ],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
        "secretName": "web-tls",
    }

    assert redact_object(pod) == pod
    assert redact_object({"secret": {"name": "n", "value": "x"}}) == {"secret": {"name": MARK, "value": MARK}}
    assert redact_object({"password": {"name": "hunter2"}}) == {"password": {"name": MARK}}
    assert redact_object({"secrets": ["a"], "token": [], "secret": {}}) == {
        "secrets": [MARK],
        "token": [],
        "secret": {},
    }


def test_values_of_pairs_with_a_sensitive_name_are_redacted() -> None:
    env: JsonObject = {
        "env": [
            {"name": "DB_PASSWORD", "value": "x1"},
            {"name": "HOME", "value": "/root"},
            {"key": "apiKey", "value": [1]},
        ]
    }

    assert redact_object(env) == {
        "env": [
            {"name": "DB_PASSWORD", "value": MARK},
            {"name": "HOME", "value": "/root"},
            {"key": "apiKey", "value": [MARK]},
        ]
    }


def test_arguments_after_a_sensitive_flag_are_redacted() -> None:
    args: JsonObject = {"args": ["run", "--token", "abc", "--password=def", "--password", "--name", "x", "--secret", 1]}

    assert redact_object(args) == {
        "args": ["run", "--token", MARK, f"--password={MARK}", "--password", "--name", "x", "--secret", 1]
    }


def test_credentials_in_strings_and_keys_are_redacted() -> None:
    value: JsonObject = {"url": "https://u:p@h/", "https://u:p@h/": 1, "https://x:y@h/": 2, "note": "Bearer abcdefghij"}

    once = redact_object(value)
    assert once == {"url": "https://***@h/", "https://***@h/": 1, "https://***@h/ (2)": 2, "note": "Bearer ***"}
    assert redact_object(once) == once


def test_values_at_given_paths_are_redacted() -> None:
    value: JsonObject = {"a": {"b": [{"c": "x", "d": "y"}, {"c": "z"}], "n": None}, "e": "f"}

    assert redact_object(value, paths=[("a", "b", 0, "c")]) == {
        "a": {"b": [{"c": MARK, "d": "y"}, {"c": "z"}], "n": None},
        "e": "f",
    }
    assert redact_object(value, paths=[("a", "b", "*", "c"), ("e",)]) == {
        "a": {"b": [{"c": MARK, "d": "y"}, {"c": MARK}], "n": None},
        "e": MARK,
    }
    assert redact_object(value, paths=[("*", "b")]) == {"a": {"b": MARK, "n": None}, "e": "f"}
    assert redact_object(value, paths=[("a", "n"), ("zz", "b"), ("a", "b", "0")]) == value
    assert redact_value("x", paths=[()]) == MARK


def test_known_secrets_are_redacted_in_values_and_keys() -> None:
    value: JsonObject = {
        "log": ["said hunter2!", base64.b64encode(b"hunter2!").decode()],
        "hunter2!": {"x": "hunter2!"},
    }

    assert redact_object(value, secrets=["hunter2!"]) == {"log": ["said ***", MARK], MARK: {"x": MARK}}
    assert redact_value({"password": {"hunter2!": 1}}, secrets=["hunter2!"]) == {"password": {MARK: MARK}}


def test_numbers_of_sensitive_keys_are_redacted_but_booleans_are_not() -> None:
    scalars: list[JsonValue] = [None, True, 1, 1.5, math.inf, 10**5000, "a", "\ud800", [], {}]

    assert redact_value(scalars) == scalars
    assert redact_object({"password": scalars}) == {
        "password": [None, True, MARK, MARK, MARK, MARK, MARK, MARK, [], {}],
    }
    assert redact_value(math.nan) is not None


def test_values_nested_too_deep_are_redacted() -> None:
    endless: JsonObject = {}
    endless["a"] = [endless]
    hidden: list[JsonValue] = []
    hidden.append(hidden)

    for value in (redact_object(endless), redact_object({"password": hidden})):
        assert MARK in json.dumps(value)
    deep: JsonValue = "https://u:p@h/"
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    assert "https://***@h/" in json.dumps(redact_object({"x": deep}))


PLANTED = st.text(st.characters(categories=["L", "N"]), min_size=6, max_size=20).map("S3cr".__add__)


def _plant_in(inner: JsonValue, secret: str, how: int) -> JsonObject:
    """Return an object that contains ``inner``, and the secret at one of the places where secrets are known to be."""
    encoded = base64.b64encode(secret.encode()).decode()
    places: list[JsonObject] = [
        {"kind": "Secret", "data": {"k": encoded}, "x": inner},
        {"kind": "Secret", "stringData": {"k": secret}, "x": inner},
        {"kind": "SecretList", "items": [{"data": {"k": encoded}}], "x": inner},
        {"password": secret, "x": inner},
        {"credentials": {"a": [{"b": secret}]}, "x": inner},
        {"x": [inner, {"env": [{"name": "API_TOKEN", "value": secret}]}]},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"k": secret})}}},
        {"args": ["--client-secret", secret], "x": inner},
        {"command": f"run --password={secret}", "x": inner},
        {"config": f"user: x\npassword: {secret}\n", "x": inner},
        {"header": f"Authorization: Bearer {secret}", "x": inner},
        {".dockerconfigjson": json.dumps({"auths": {"r": {"auth": secret}}}), "x": inner},
        {"config.json": json.dumps({"auths": {"r": {"auth": secret}}}), "x": inner},
        {"tls.key": f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----", "x": inner},
    ]
    return places[how % len(places)]


@given(PLANTED, st.integers(0, 13), st.lists(st.integers(0, 2), max_size=4), json_values(5))
def test_a_planted_secret_never_survives(secret: str, how: int, wraps: list[int], inner: JsonValue) -> None:
    value = _plant_in(inner, secret, how)
    for wrap in wraps:
        wrapped: list[JsonObject] = [{"spec": value}, {"items": [inner, value]}, {"data": {"object": value}}]
        value = wrapped[wrap]

    printed = json.dumps(redact_object(value), ensure_ascii=False)

    assert secret not in printed
    assert base64.b64encode(secret.encode()).decode() not in printed


@given(json_objects(), PLANTED, json_objects())
def test_a_known_secret_never_survives(before: JsonObject, secret: str, after: JsonObject) -> None:
    value: JsonObject = {**before, secret: after, "log": [f"x{secret}y", {secret: secret}]}

    assert secret not in json.dumps(redact_object(value, secrets=[secret]), ensure_ascii=False)


@given(json_objects(), st.lists(PLANTED, max_size=2))
def test_redaction_is_idempotent_and_leaves_its_argument_unchanged(value: JsonObject, secrets: list[str]) -> None:
    untouched = copy.deepcopy(value)

    once = redact_object(value, secrets=secrets)

    assert value == untouched
    assert redact_object(once, secrets=secrets) == once


@given(json_values())
def test_an_object_without_secrets_is_unchanged(value: JsonValue) -> None:
    def shape(item: JsonValue) -> object:
        if isinstance(item, dict):
            return [shape(inner) for inner in item.values()]
        return [shape(inner) for inner in item] if isinstance(item, list) else "scalar"

    assert shape(redact_value(value)) == shape(value)
