"""Refused configurations of hooks, with the messages that the hook contract requires."""

import pytest

from tests.hooks.support.configs import kubernetes, kubernetes_refused, read, refused
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import NamespaceSelector
from wharfinger.hooks.config.schema import MAX_BINDINGS, MAX_NAMES


def test_only_on_startup_accepts_a_negative_order() -> None:
    assert read("configVersion: v1\nonStartup: -1").on_startup == -1
    assert read("configVersion: v1\nonStartup: 0").on_startup == 0
    assert read("configVersion: v1\nonStartup: 10.0").on_startup == 10
    assert refused("configVersion: v1\nbeforeHelm: -1") == ("beforeHelm should be from 0 to 4294967295",)


def test_included_snapshot_names_must_match_exactly_one_binding() -> None:
    assert refused("""
        configVersion: v1
        kubernetes: [{kind: a}, {kind: b}, {kind: c, name: c, includeSnapshotsFrom: [gone, c]}]
        schedule: [{crontab: "* * * * *", includeSnapshotsFrom: [kubernetes]}]
        """) == (
        "kubernetes.includeSnapshotsFrom is invalid: 'gone' binding name not found",
        "schedule.includeSnapshotsFrom is invalid: there are 2 'kubernetes' binding names",
    )


def test_name_selector_with_field_selector_on_name_is_refused() -> None:
    terms: JsonObject = {"matchExpressions": [{"field": "metadata.name", "operator": "=", "value": "b"}]}
    assert kubernetes(fieldSelector=terms).field_selector == "metadata.name=b"
    (problem,) = kubernetes_refused(nameSelector={"matchNames": ["a"]}, fieldSelector=terms)
    assert problem.startswith("kubernetes: nameSelector and a fieldSelector on metadata.name exclude each other")


@pytest.mark.parametrize("version", ["a/b/c", "apps/", "/v1", "v1 ", "../v1", "apps/v1?x"])
def test_invalid_api_versions_are_refused(version: str) -> None:
    (problem,) = kubernetes_refused(apiVersion=version)
    assert problem.startswith("kubernetes.apiVersion is invalid: ")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("{executionMinInterval: 5s}", "settings.executionBurst is required"),
        ("{executionBurst: 5}", "settings.executionMinInterval is required"),
        (
            "{executionMinInterval: 5, executionBurst: 1}",
            'settings.executionMinInterval must be of type string: "number"',
        ),
        ("{executionMinInterval: soon, executionBurst: 1}", "settings.executionMinInterval is invalid: "),
        ("{executionMinInterval: -5s, executionBurst: 1}", "settings.executionMinInterval is invalid: "),
        ("{executionMinInterval: 5s, executionBurst: -1}", "settings.executionBurst should be from 0 to "),
    ],
)
def test_invalid_settings_are_refused(settings: str, problem: str) -> None:
    (found,) = refused(f"configVersion: v1\nonStartup: 1\nsettings: {settings}")
    assert found.startswith(problem)


@pytest.mark.parametrize("crontab", ["* * * *", "61 * * * *", "never", "@sometimes", "* * * * * * * *", ""])
def test_invalid_crontabs_are_refused(crontab: str) -> None:
    (problem,) = refused({"configVersion": "v1", "schedule": [{"crontab": crontab}]})
    assert problem.startswith(("schedule.crontab is invalid: ", "schedule.crontab is required"))


def test_all_schema_faults_are_reported_together_in_contract_wording() -> None:
    assert refused("""
        configVersion: v1
        kubernetes:
        - watchEvent: Added
          mode: Incremental
          nameSelector: {matchNames: [1]}
          labelSelector: {matchExpressions: [{key: a, operand: In}]}
        - kind: pods
          labelSelector: {matchExpressions: [{key: a, operator: Is}]}
        schedule: [{}]
        colour: red
        """) == (
        'kubernetes.watchEvent must be of type array: "string"',
        "kubernetes.mode is a forbidden property",
        'kubernetes.nameSelector.matchNames must be of type string: "number"',
        "kubernetes.labelSelector.matchExpressions.operand is a forbidden property",
        "kubernetes.labelSelector.matchExpressions.operator is required",
        "kubernetes.kind is required",
        "kubernetes.labelSelector.matchExpressions.operator should be one of [In NotIn Exists DoesNotExist]",
        "schedule.crontab is required",
        "colour is a forbidden property",
    )


def test_all_semantic_faults_are_reported_together() -> None:
    problems = refused("""
        configVersion: v1
        settings: {executionMinInterval: x, executionBurst: 1}
        kubernetes:
        - kind: a
          apiVersion: a/b/c
          labelSelector: {matchLabels: {"?": x}}
          namespace: {labelSelector: {matchLabels: {a: "?"}}}
        - {kind: a, fieldSelector: {matchExpressions: [{field: "a b", operator: "=", value: x}]}}
        """)
    assert [problem.partition(" ")[0] for problem in problems] == [
        "settings.executionMinInterval",
        "kubernetes.apiVersion",
        "kubernetes.namespace.labelSelector",
        "kubernetes.labelSelector",
        "kubernetes.fieldSelector",
    ]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("", "it printed nothing for --config"),
        ("# only words\n", "it printed nothing for --config"),
        ("[]", "expected a mapping with at least one binding, found a list"),
        ("hello", "expected a mapping with at least one binding, found a string"),
        ("{", "its output for --config: line 2, column 1: "),
        ("{}", "it should have at least 1 properties"),
        ("configVersion: v1", "it should have at least 2 properties: it has no binding"),
        ("configVersion: v2\nonStartup: 1", "'configVersion' value 'v2' is unsupported"),
        ("configVersion: ''\nonStartup: 1", "'configVersion' value '' is unsupported"),
        ("configVersion: 1\nonStartup: 1", "'configVersion' must be a string, is an integer"),
        ("configVersion:\nonStartup: 1", "'configVersion' must be a string, is null"),
        ("configVersion: v1\nkubernetes: []", "kubernetes should have at least 1 items"),
        ("configVersion: v1\nonStartup: true", 'onStartup must be of type integer: "boolean"'),
        ("configVersion: v1\nonStartup: 9223372036854775808", "onStartup should be from -9223372036854775808 to"),
        ("configVersion: v1\nbeforeAll: 1", "beforeAll is a forbidden property: only global hooks may have it"),
        ("afterAll: 1", "afterAll is a forbidden property: only global hooks may have it"),
        ("kubernetes: [{kind: pod}]", "kubernetes is a forbidden property"),
        (
            "onKubernetesEvent: [{event: [added], kind: pod}]",
            "onKubernetesEvent.event should be one of [add update delete]",
        ),
    ],
)
def test_invalid_documents_are_refused(document: str, problem: str) -> None:
    (found,) = refused(document)
    assert found.startswith(problem)


def test_reported_faults_are_limited_and_the_rest_counted() -> None:
    problems = refused({"configVersion": "v1", **{f"key{number}": 1 for number in range(30)}})
    assert len(problems) == 21
    assert problems[-1] == "and 10 more"


def test_long_fault_is_truncated() -> None:
    (problem,) = refused("configVersion: " + "x" * 10_000 + "\nonStartup: 1")
    assert len(problem) == 301


def test_more_bindings_than_the_limit_are_refused() -> None:
    document: JsonObject = {"configVersion": "v1", "kubernetes": [{"kind": "a", "group": "g"}] * MAX_BINDINGS}
    assert len(read(document).kubernetes) == MAX_BINDINGS
    document["kubernetes"] = [{"kind": "a"}] * (MAX_BINDINGS + 1)
    assert refused(document) == (f"kubernetes should have at most {MAX_BINDINGS} items, has {MAX_BINDINGS + 1}",)


def test_faults_of_version_0_documents_use_its_field_names() -> None:
    (problem,) = refused("onKubernetesEvent: [{kind: pod, selector: {matchLabels: {a: '?'}}}]")
    assert problem.startswith("onKubernetesEvent.labelSelector is invalid: '?' is not a label value")
    assert refused("onKubernetesEvent: [{name: x}]") == ("onKubernetesEvent.kind is required",)


@pytest.mark.parametrize("name", ["", "a,metadata.namespace=x", "../x?y", "a b"])
def test_invalid_names_in_name_selectors_are_refused(name: str) -> None:
    (problem,) = kubernetes_refused(nameSelector={"matchNames": ["a", name]})
    assert problem.startswith(f"kubernetes.nameSelector.matchNames: {name!r} is not a valid name of an object")
    (problem,) = kubernetes_refused(namespace={"nameSelector": {"matchNames": ["a", name]}})
    assert problem.startswith(
        f"kubernetes.namespace.nameSelector.matchNames: {name!r} is not a valid name of a namespace"
    )


def test_names_in_selectors_are_limited() -> None:
    names: list[JsonValue] = [f"n{number}" for number in range(MAX_NAMES + 1)]
    for wanted in ({"nameSelector": {"matchNames": names}}, {"namespace": {"nameSelector": {"matchNames": names}}}):
        (problem,) = kubernetes_refused(**wanted)
        assert problem.endswith("matchNames should have at most 100 items, has 101")
    binding = kubernetes(
        nameSelector={"matchNames": names[:16]}, namespace={"nameSelector": {"matchNames": names[:16]}}
    )
    assert (len(binding.names or ()), binding.namespaces) == (16, NamespaceSelector(tuple(map(str, names[:16])), ""))
    (problem,) = kubernetes_refused(
        nameSelector={"matchNames": names[:16]}, namespace={"nameSelector": {"matchNames": names[:17]}}
    )
    assert problem == (
        "kubernetes: it needs 272 watches, one for each name in each namespace; the limit is 256; select with labels instead"
    )
