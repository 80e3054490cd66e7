"""Documents that show a configuration: the fields that are set, with the field names of the hook's own document."""

from tests.hooks.support.configs import FULL, NOTHING, read
from wharfinger.formats.json.value import JsonObject, as_object, encode_json, find, find_list
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.config.document import config_document


def test_document_of_the_full_example_shows_all_fields() -> None:
    assert config_document(read(FULL)) == {
        "configVersion": "v1",
        "onStartup": 10,
        "settings": {"executionMinInterval": "5s", "executionBurst": 2},
        "schedule": [
            {
                "name": "every-5m",
                "crontab": "*/5 * * * *",
                "allowFailure": False,
                "queue": "cron",
                "includeSnapshotsFrom": ["pods"],
            }
        ],
        "kubernetes": [
            {
                "name": "pods",
                "kind": "Pod",
                "apiVersion": "v1",
                "namespaces": {"labelSelector": "team=a"},
                "jqFilter": "{n: .metadata.name, p: .status.phase}",
                "executeHookOnSynchronization": True,
                "waitForSynchronization": True,
                "keepFullObjectsInMemory": False,
                "executeHookOnEvent": ["Added", "Deleted"],
                "allowFailure": False,
                "queue": "pods",
                "group": "main",
                "includeSnapshotsFrom": ["pods"],
            }
        ],
    }


def test_document_omits_unset_fields_but_shows_zero() -> None:
    assert config_document(NOTHING) == {"configVersion": "v1"}
    assert config_document(read("onStartup: 0")) == {"configVersion": "v0", "onStartup": 0}


def test_document_shows_selectors_and_an_empty_list_of_events() -> None:
    document = config_document(
        read("""
        configVersion: v1
        kubernetes:
        - kind: Pod
          executeHookOnEvent: []
          nameSelector: {matchNames: [a]}
          labelSelector: {matchLabels: {b: c}}
          fieldSelector: {matchExpressions: [{field: d, operator: "!=", value: e}]}
          namespace: {nameSelector: {matchNames: [ns]}}
        """)
    )
    binding = as_object(find(document, "kubernetes", 0), "binding")
    shown = {
        key: binding[key] for key in ("names", "labelSelector", "fieldSelector", "namespaces", "executeHookOnEvent")
    }
    assert shown == {
        "names": ["a"],
        "labelSelector": "b=c",
        "fieldSelector": "d!=e",
        "namespaces": {"names": ["ns"]},
        "executeHookOnEvent": [],
    }


def test_document_shows_webhooks_global_orders_and_periods() -> None:
    document: JsonObject = {
        "configVersion": "v1",
        "beforeAll": 0,
        "afterAll": 2,
        "kubernetesValidating": [
            {
                "name": "a.b.c",
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]}],
                "labelSelector": {"matchLabels": {"a": "b"}},
                "namespace": {"labelSelector": {"matchLabels": {"c": "d"}}},
                "matchConditions": [{"name": "x", "expression": "true"}],
            }
        ],
        "kubernetesMutating": [{"name": "m", "timeoutSeconds": 3}],
        "kubernetesCustomResourceConversion": [
            {"name": "c", "crdName": "x", "conversions": [{"fromVersion": "a", "toVersion": "b"}], "group": "g"}
        ],
        "kubernetes": [{"kind": "Pod", "name": "pods", "group": "g", "resynchronizationPeriod": "1h"}],
    }
    config = read_hook_config(encode_json(document), hook="x", scope=HookScope.GLOBAL)
    shown = config_document(config)
    assert (shown["beforeAll"], shown["afterAll"]) == (0, 2)
    defaults: JsonObject = {"failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 10}
    (validating,) = find_list(document, "kubernetesValidating")
    rule = {**as_object(find(validating, "rules", 0), "rule"), "scope": "*"}
    assert shown["kubernetesValidating"] == [{**as_object(validating, "webhook"), **defaults, "rules": [rule]}]
    assert shown["kubernetesMutating"] == [{"name": "m", **defaults, "timeoutSeconds": 3}]
    assert shown["kubernetesCustomResourceConversion"] == [
        {
            "name": "c",
            "crdName": "x",
            "conversions": [{"fromVersion": "a", "toVersion": "b"}],
            "group": "g",
            "includeSnapshotsFrom": ["pods"],
        }
    ]
    assert find(shown, "kubernetes", 0, "resynchronizationPeriod") == "1h0m0s"
    again = dict(shown)
    again["kubernetes"] = document["kubernetes"]
    assert read_hook_config(encode_json(again), hook="x", scope=HookScope.GLOBAL).validating == config.validating


def test_document_shows_a_pool_only_if_the_hook_names_one() -> None:
    assert "pool" not in config_document(read("configVersion: v1\nonStartup: 1\n"))
    assert config_document(read("configVersion: v1\nonStartup: 1\npool: none\n"))["pool"] == "none"
