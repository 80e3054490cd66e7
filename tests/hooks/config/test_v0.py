"""Documents of version 0, rewritten as documents of version 1."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.schema import VERSION_0, VERSION_1
from wharfinger.hooks.config.shapes import problems
from wharfinger.hooks.config.v0 import as_version_1, coerced


def rewritten(**item: JsonValue) -> JsonValue:
    """Return the binding that this item of onKubernetesEvent is rewritten to."""
    document: JsonObject = {"onKubernetesEvent": [{"kind": "pod", **item}]}
    assert list(problems(document, VERSION_0[HookScope.PACKAGE])) == []
    after = as_version_1(document)
    assert list(problems(after, VERSION_1[HookScope.PACKAGE])) == []
    bindings = after["kubernetes"]
    assert isinstance(bindings, list)
    (binding,) = bindings
    return binding


DEFAULT: JsonObject = {"kind": "pod", "name": "onKubernetesEvent", "executeHookOnSynchronization": False}


@pytest.mark.parametrize(
    ("item", "binding"),
    [
        ({}, {}),
        ({"name": ""}, {}),
        ({"name": "x", "allowFailure": True, "jqFilter": "."}, {"name": "x", "allowFailure": True, "jqFilter": "."}),
        ({"event": []}, {}),
        ({"event": ["add", "update", "delete"]}, {"executeHookOnEvent": ["Added", "Modified", "Deleted"]}),
        ({"selector": {}}, {}),
        ({"selector": {"matchLabels": {"a": "b"}}}, {"labelSelector": {"matchLabels": {"a": "b"}}}),
        ({"objectName": "x"}, {"nameSelector": {"matchNames": ["x"]}}),
        ({"objectName": ""}, {}),
        ({"namespaceSelector": {"matchNames": ["n"]}}, {"namespace": {"nameSelector": {"matchNames": ["n"]}}}),
        ({"namespaceSelector": {"matchNames": ["n"], "any": True}}, {}),
        ({"namespaceSelector": {"any": False}}, {}),
        ({"disableDebug": True}, {}),
    ],
)
def test_version_0_kubernetes_bindings_are_rewritten(item: JsonObject, binding: JsonObject) -> None:
    assert rewritten(**item) == {**DEFAULT, **binding}


def test_known_fields_of_version_0_documents_are_retained() -> None:
    assert as_version_1({"onStartup": 1, "afterHelm": 2, "schedule": [{"crontab": "@daily", "more": 1}]}) == {
        "configVersion": "v1",
        "onStartup": 1,
        "afterHelm": 2,
        "schedule": [{"crontab": "@daily"}],
    }


def test_scalars_in_text_fields_are_converted_to_text() -> None:
    document: JsonObject = {
        "onStartup": 1,
        "schedule": [{"name": 1, "crontab": "@daily", "allowFailure": True}, "what"],
        "onKubernetesEvent": [{"kind": "pod", "name": True, "objectName": 1.5, "jqFilter": None}],
    }
    assert coerced(document) == {
        "onStartup": 1,
        "schedule": [{"name": "1", "crontab": "@daily", "allowFailure": True}, "what"],
        "onKubernetesEvent": [{"kind": "pod", "name": "true", "objectName": "1.5", "jqFilter": None}],
    }
    assert coerced({"schedule": "x"}) == {"schedule": "x"}
