"""Webhooks in a configuration: every field, its default, and values that an API server would refuse."""

import pytest

from tests.hooks.support.configs import read, refused
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import AdmissionBinding, AdmissionRule, ConversionBinding
from wharfinger.hooks.config.webhooks import CONVERSION, MUTATING, VALIDATING

RULE: JsonObject = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
PODS = AdmissionRule(("",), ("v1",), ("pods",), ("CREATE",))
WHOLE: JsonObject = {
    "name": "pods.example.com",
    "rules": [{**RULE, "operations": ["CREATE", "DELETE"], "scope": "Namespaced"}],
    "labelSelector": {"matchLabels": {"a": "b"}},
    "namespace": {"labelSelector": {"matchExpressions": [{"key": "c", "operator": "Exists"}]}},
    "matchConditions": [{"name": "x", "expression": "true", "note": "tolerated"}],
    "failurePolicy": "Ignore",
    "sideEffects": "NoneOnDryRun",
    "timeoutSeconds": 30,
    "group": "g",
    "includeSnapshotsFrom": ["other"],
}
WATCHED: list[JsonValue] = [{"kind": "Pod", "name": "pods", "group": "g"}, {"kind": "Pod", "name": "other"}]


def webhook(key: str, **fields: JsonValue) -> AdmissionBinding:
    config = read({"configVersion": "v1", key: [fields]})
    (binding,) = config.validating or config.mutating
    return binding


def faults(key: str, **fields: JsonValue) -> tuple[str, ...]:
    named: JsonObject = {"name": "a.b.c", **fields}
    return refused({"configVersion": "v1", key: [named]})


@pytest.mark.parametrize("key", [VALIDATING, MUTATING])
def test_all_fields_of_a_webhook_are_read(key: str) -> None:
    config = read({"configVersion": "v1", key: [WHOLE], "kubernetes": WATCHED})
    (binding,) = config.validating if key == VALIDATING else config.mutating
    assert len(config.validating + config.mutating) == 1
    assert binding == AdmissionBinding(
        "pods.example.com",
        (AdmissionRule(("",), ("v1",), ("pods",), ("CREATE", "DELETE"), "Namespaced"),),
        {"matchLabels": {"a": "b"}},
        {"matchExpressions": [{"key": "c", "operator": "Exists"}]},
        (("x", "true"),),
        "Ignore",
        "NoneOnDryRun",
        30,
        "g",
        ("other", "pods"),
    )


@pytest.mark.parametrize("key", [VALIDATING, MUTATING])
def test_omitted_webhook_fields_get_their_defaults(key: str) -> None:
    assert webhook(key, name="a.b.c") == AdmissionBinding("a.b.c", ())
    assert webhook(key, name="a.b.c", rules=[RULE]) == AdmissionBinding("a.b.c", (PODS,))


def test_mutating_webhooks_are_not_validated() -> None:
    rule: JsonObject = {**RULE, "resources": ["*", "pods"], "operations": ["*", "CREATE"]}
    binding = webhook(MUTATING, name="change.crontab resources", rules=[rule], timeoutSeconds=0)
    assert (binding.name, binding.timeout_s) == ("change.crontab resources", 0)
    config = read({"configVersion": "v1", MUTATING: [{"name": "x"}, {"name": "x"}]})
    assert len(config.mutating) == 2


@pytest.mark.parametrize("name", ["a", "a.b", "a.b.", ".a.b.c", "a.B.c", "a..b.c", "a.b.c_d", "a.b." + "c" * 250])
def test_names_of_validating_webhooks_must_be_fully_qualified(name: str) -> None:
    (problem,) = faults(VALIDATING, name=name)
    assert problem.startswith(f"{VALIDATING}.name is invalid: {name[:80]!r} is not fully qualified")


def test_names_of_validating_webhooks_must_be_unique() -> None:
    assert refused({"configVersion": "v1", VALIDATING: [{"name": "a.b.c"}, {"name": "a.b.c"}]}) == (
        f"{VALIDATING}.name is invalid: several bindings are named 'a.b.c'; choose different names",
    )
    assert read({"configVersion": "v1", VALIDATING: [{"name": "a.b.c"}], MUTATING: [{"name": "a.b.c"}]}).mutating


@pytest.mark.parametrize("seconds", [0, 31, -1])
def test_timeout_of_a_validating_webhook_is_limited(seconds: int) -> None:
    assert faults(VALIDATING, timeoutSeconds=seconds) == (
        f"{VALIDATING}.timeoutSeconds is invalid: {seconds} is not from 1 to 30",
    )
    assert webhook(VALIDATING, name="a.b.c", timeoutSeconds=1).timeout_s == 1


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"apiGroups": ["*", "apps"]},
            "rules.apiGroups is invalid: if '*' is present, must not specify other API groups",
        ),
        ({"apiVersions": ["v1", "*"]}, "rules.apiVersions is invalid: if '*' is present, must not specify other API"),
        ({"apiVersions": [""]}, 'rules.apiVersions is invalid: "" is not a version'),
        (
            {"operations": ["*", "CREATE"]},
            "rules.operations is invalid: if '*' is present, must not specify other oper",
        ),
        ({"resources": [""]}, 'rules.resources is invalid: "" is not a resource'),
        (
            {"resources": ["*/*", "a"]},
            "rules.resources is invalid: if '*/*' is present, must not specify other resources",
        ),
        (
            {"resources": ["*", "a"]},
            "rules.resources is invalid: if '*' is present, must not specify other resources without",
        ),
        ({"resources": ["a/*", "a/x"]}, "rules.resources is invalid: if 'a/*' is present, must not specify a/x"),
        ({"resources": ["*/x", "a/x"]}, "rules.resources is invalid: if '*/x' is present, must not specify a/x"),
    ],
)
def test_rules_of_validating_webhooks_are_checked_as_the_api_server_does(changed: JsonObject, problem: str) -> None:
    (found,) = faults(VALIDATING, rules=[{**RULE, **changed}])
    assert found.startswith(f"{VALIDATING}.{problem}")


@pytest.mark.parametrize(
    "resources",
    [["*"], ["*/*"], ["*", "*/scale"], ["*", "pods/log"], ["pods", "pods/*"], ["*/x", "a/y"], ["a/x", "a/*"]],
)
def test_rules_that_the_api_server_accepts_are_read(resources: list[JsonValue]) -> None:
    assert webhook(VALIDATING, name="a.b.c", rules=[{**RULE, "resources": resources}]).rules[0].resources


@pytest.mark.parametrize("key", [VALIDATING, MUTATING])
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"rules": []}, "rules should have at least 1 items"),
        ({"rules": [{}]}, "rules.apiGroups is required"),
        (
            {"rules": [{**RULE, "operations": ["PATCH"]}]},
            "rules.operations should be one of [CREATE UPDATE DELETE CONNECT *]",
        ),
        ({"rules": [{**RULE, "scope": "Any"}]}, "rules.scope should be one of [Cluster Namespaced *]"),
        ({"rules": [{**RULE, "resources": []}]}, "rules.resources should have at least 1 items"),
        ({"namespace": {}}, "namespace.labelSelector is required"),
        ({"namespace": {"nameSelector": {}}}, "namespace.nameSelector is a forbidden property"),
        ({"matchConditions": [{"name": "x"}]}, "matchConditions.expression is required"),
        ({"failurePolicy": "Open"}, "failurePolicy should be one of [Ignore Fail]"),
        ({"sideEffects": "Some"}, "sideEffects should be one of [None NoneOnDryRun]"),
        ({"timeoutSeconds": 1.5}, 'timeoutSeconds must be of type integer: "number"'),
        ({"queue": "q"}, "queue is a forbidden property"),
        ({"labelSelector": {"matchLabels": {"?": "x"}}}, "labelSelector is invalid: '?' is not a label key"),
        (
            {"namespace": {"labelSelector": {"matchLabels": {"a": "?"}}}},
            "namespace.labelSelector is invalid: '?' is no",
        ),
        ({"includeSnapshotsFrom": ["x"]}, "includeSnapshotsFrom is invalid: 'x' binding name not found"),
    ],
)
def test_webhooks_of_the_wrong_shape_are_refused(key: str, fields: JsonObject, problem: str) -> None:
    assert faults(key, **fields)[0].startswith(f"{key}.{problem}")


def test_conversions_are_read() -> None:
    item: JsonObject = {
        "name": "c",
        "crdName": "crontabs.example.com",
        "conversions": [{"fromVersion": "v1alpha1", "toVersion": "example.com/v1"}],
        "group": "g",
        "includeSnapshotsFrom": ["other"],
    }
    config = read({"configVersion": "v1", CONVERSION: [item], "kubernetes": WATCHED})
    assert config.conversions == (
        ConversionBinding("c", "crontabs.example.com", (("v1alpha1", "example.com/v1"),), "g", ("other", "pods")),
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": ""}, "name is required"),
        ({"conversions": []}, "conversions should have at least 1 items"),
        ({"conversions": [{"fromVersion": "a"}]}, "conversions.toVersion is required"),
        (
            {"conversions": [{"fromVersion": "a", "toVersion": "b", "via": "c"}]},
            "conversions.via is a forbidden property",
        ),
        ({"conversions": [{"fromVersion": "a/b/c", "toVersion": "b"}]}, "conversions is invalid: 'a/b/c' is neither"),
        ({"queue": "q"}, "queue is a forbidden property"),
        ({"includeSnapshotsFrom": []}, "includeSnapshotsFrom should have at least 1 items"),
    ],
)
def test_invalid_conversions_are_refused(fields: JsonObject, problem: str) -> None:
    item: JsonObject = {"name": "c", "crdName": "x", "conversions": [{"fromVersion": "a", "toVersion": "b"}], **fields}
    assert refused({"configVersion": "v1", CONVERSION: [item]})[0].startswith(f"{CONVERSION}.{problem}")


@pytest.mark.parametrize("missing", ["name", "crdName", "conversions"])
def test_conversion_without_a_required_field_is_refused(missing: str) -> None:
    item: JsonObject = {"name": "c", "crdName": "x", "conversions": [{"fromVersion": "a", "toVersion": "b"}]}
    del item[missing]
    assert refused({"configVersion": "v1", CONVERSION: [item]}) == (f"{CONVERSION}.{missing} is required",)
