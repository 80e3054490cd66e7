"""Conformance case 1 (spec hook-protocol §6.5): valid and refused configurations of hooks.

There are as many rows as in the tables of the contract: 29 valid documents with the expected result, and 10 documents that the
schema refuses, with the beginning of the error message. The rows are built from the facts of §1.4, §1.5 and §6.4a.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.config.batch_hooks import read_batch
from wharfinger.hooks.config.bindings import HookConfig, HookScope, WatchVerb
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.config.problems import HookConfigError


@dataclass(frozen=True, slots=True)
class Load:
    """A valid document, and a part of its configuration with the expected value."""

    document: str
    look: Callable[[HookConfig], object]
    expected: object
    scope: HookScope = HookScope.PACKAGE


def shown_snapshots(config: HookConfig) -> object:
    of_objects = [binding.include_snapshots_from for binding in config.kubernetes]
    return of_objects + [binding.include_snapshots_from for binding in config.schedules]


LOADS: Final[dict[str, Load]] = {
    "v0 onStartup": Load('{"onStartup": 10}', lambda c: (c.version, c.on_startup), ("v0", 10)),
    "v0 schedule": Load(
        '{"schedule": [{"name": "each 1 min", "crontab": "0 */1 * * * *", "allowFailure": true}, {"crontab": "1 0 */1 * *"}]}',
        lambda c: [(s.name, s.crontab, s.allow_failure, s.queue) for s in c.schedules],
        [("each 1 min", "0 */1 * * * *", True, "main"), ("schedule", "1 0 */1 * *", False, "main")],
    ),
    "v0 onKubernetesEvent": Load(
        '{"onKubernetesEvent": [{"kind": "pod", "event": ["add", "delete"], "selector": {"matchLabels": {"app": "x"}}, '
        '"objectName": "one", "namespaceSelector": {"matchNames": ["default"]}, "jqFilter": ".metadata.labels"}]}',
        lambda c: [
            (k.name, k.verbs, k.label_selector, k.names, k.namespaces and k.namespaces.names, k.on_synchronization)
            for k in c.kubernetes
        ],
        [("onKubernetesEvent", {WatchVerb.ADDED, WatchVerb.DELETED}, "app=x", ("one",), ("default",), False)],
    ),
    "v0 any namespace": Load(
        '{"onKubernetesEvent": [{"kind": "pod", "namespaceSelector": {"any": true}}]}',
        lambda c: c.kubernetes[0].namespaces,
        None,
    ),
    "v0 before and after helm": Load("afterHelm: 3\nbeforeHelm: 1", lambda c: (c.before_helm, c.after_helm), (1, 3)),
    "v0 before and after all": Load(
        "beforeAll: 1\nafterAll: 4", lambda c: (c.version, c.before_all, c.after_all), ("v0", 1, 4), HookScope.GLOBAL
    ),
    "v1 JSON on one line": Load('{"configVersion":"v1","onStartup":1}', lambda c: (c.version, c.on_startup), ("v1", 1)),
    "v1 YAML": Load("configVersion: v1\nonStartup: 10\n", lambda c: (c.version, c.on_startup), ("v1", 10)),
    "v1 an order below zero": Load("configVersion: v1\nonStartup: -5", lambda c: c.on_startup, -5),
    "v1 around the chart": Load(
        "configVersion: v1\nbeforeHelm: 1\nafterHelm: 2\nbeforeDeleteHelm: 3\nafterDeleteHelm: 4",
        lambda c: (c.before_helm, c.after_helm, c.before_delete_helm, c.after_delete_helm),
        (1, 2, 3, 4),
    ),
    "v1 around all": Load(
        "configVersion: v1\nbeforeAll: 1\nafterAll: 2",
        lambda c: (c.before_all, c.after_all),
        (1, 2),
        HookScope.GLOBAL,
    ),
    "v1 schedule": Load(
        "configVersion: v1\nschedule: [{crontab: '*/5 * * * *', name: five, queue: q, group: g, allowFailure: true}]",
        lambda c: [(s.name, s.crontab, s.queue, s.group, s.allow_failure) for s in c.schedules],
        [("five", "*/5 * * * *", "q", "g", True)],
    ),
    "v1 schedule by default": Load(
        "configVersion: v1\nschedule: [{crontab: '*/10 * * * * *'}, {crontab: '@every 1h30m'}]",
        lambda c: [(s.name, s.queue, s.group, s.allow_failure, s.include_snapshots_from) for s in c.schedules],
        [("schedule", "main", "", False, ())] * 2,
    ),
    "v1 kubernetes by default": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod}]",
        lambda c: [
            (k.name, k.verbs, k.on_synchronization, k.wait_for_synchronization, k.keep_full_objects, k.queue, k.group)
            for k in c.kubernetes
        ],
        [("kubernetes", set(WatchVerb), True, True, True, "main", "")],
    ),
    "v1 apiVersion": Load(
        "configVersion: v1\nkubernetes: [{apiVersion: stable.example.com/v1, kind: ct}]",
        lambda c: (c.kubernetes[0].api_version, c.kubernetes[0].kind),
        ("stable.example.com/v1", "ct"),
    ),
    "v1 watchEvent": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, watchEvent: [Modified]}]",
        lambda c: c.kubernetes[0].verbs,
        {WatchVerb.MODIFIED},
    ),
    "v1 executeHookOnEvent wins": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, watchEvent: [Added], executeHookOnEvent: []}]",
        lambda c: c.kubernetes[0].verbs,
        set(),
    ),
    "v1 snapshots only": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, executeHookOnEvent: [], executeHookOnSynchronization: false}]",
        lambda c: (c.kubernetes[0].verbs, c.kubernetes[0].on_synchronization),
        (set(), False),
    ),
    "v1 waitForSynchronization in another queue": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, waitForSynchronization: false, queue: q},"
        " {kind: Pod, waitForSynchronization: false}]",
        lambda c: [k.wait_for_synchronization for k in c.kubernetes],
        [False, True],
    ),
    "v1 nameSelector": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, nameSelector: {matchNames: [a, b]}}, "
        "{kind: Pod, nameSelector: {matchNames: []}}]",
        lambda c: [k.names for k in c.kubernetes],
        [("a", "b"), None],
    ),
    "v1 labelSelector": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, labelSelector: {matchLabels: {a: '', b: c}, matchExpressions: "
        "[{key: d, operator: In, values: [e, f]}, {key: g, operator: DoesNotExist}]}}]",
        lambda c: c.kubernetes[0].label_selector,
        "a=,b=c,d in (e,f),!g",
    ),
    "v1 fieldSelector": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, fieldSelector: {matchExpressions: "
        "[{field: metadata.name, operator: Equals, value: a}, {field: status.phase, operator: '!=', value: Running}]}}]",
        lambda c: c.kubernetes[0].field_selector,
        "metadata.name=a,status.phase!=Running",
    ),
    "v1 labels of namespaces decide": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, namespace: {nameSelector: {matchNames: [a]}, "
        "labelSelector: {matchLabels: {team: x}}}}]",
        lambda c: c.kubernetes[0].namespaces and (c.kubernetes[0].namespaces.names, c.kubernetes[0].namespaces.labels),
        (None, "team=x"),
    ),
    "v1 includeSnapshotsFrom": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, name: pods, includeSnapshotsFrom: [pods, maps]}, "
        "{kind: ConfigMap, name: maps}]\nschedule: [{crontab: '@hourly', includeSnapshotsFrom: [maps]}]",
        shown_snapshots,
        [("pods", "maps"), (), ("maps",)],
    ),
    "v1 groups are merged behind the own list": Load(
        "configVersion: v1\nkubernetes: [{kind: a, name: a, group: g}, {kind: b, name: b, group: g, "
        "includeSnapshotsFrom: [c, b]}, {kind: c, name: c}]\nschedule: [{crontab: '@hourly', group: g}]",
        shown_snapshots,
        [("a", "b"), ("c", "b", "a"), (), ("a", "b")],
    ),
    "v1 settings": Load(
        "configVersion: v1\nonStartup: 1\nsettings: {executionMinInterval: 3s, executionBurst: 1}",
        lambda c: (c.min_interval, c.burst),
        (timedelta(seconds=3), 1),
    ),
    "v1 kubernetesValidating": Load(
        "configVersion: v1\nkubernetes: [{kind: Pod, name: pods, group: g}]\nkubernetesValidating: [{name: a.example.com, "
        "group: g, rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [DELETE]}]}]",
        lambda c: [
            (v.name, v.failure_policy, v.side_effects, v.timeout_s, v.rules[0].operations, v.include_snapshots_from)
            for v in c.validating
        ],
        [("a.example.com", "Fail", "None", 10, ("DELETE",), ("pods",))],
    ),
    "v1 kubernetesMutating": Load(
        "configVersion: v1\nkubernetesMutating: [{name: change.crontab.resources, namespace: {labelSelector: "
        "{matchLabels: {name: x}}}, timeoutSeconds: 30, failurePolicy: Ignore}]",
        lambda c: [(m.name, m.timeout_s, m.failure_policy, m.namespace_selector) for m in c.mutating],
        [("change.crontab.resources", 30, "Ignore", {"matchLabels": {"name": "x"}})],
    ),
    "v1 kubernetesCustomResourceConversion": Load(
        "configVersion: v1\nkubernetesCustomResourceConversion: [{name: alpha, crdName: crontabs.stable.example.com, "
        "conversions: [{fromVersion: v1alpha1, toVersion: stable.example.com/v1beta1}]}]",
        lambda c: [(v.name, v.crd_name, v.conversions) for v in c.conversions],
        [("alpha", "crontabs.stable.example.com", (("v1alpha1", "stable.example.com/v1beta1"),))],
    ),
}
REFUSALS: Final[dict[str, tuple[str, str]]] = {
    "version 0 has its own keys": ("{kubernetes: [{kind: Pod}]}", "kubernetes is a forbidden property"),
    "no binding": ("configVersion: v1", "it should have at least 2 properties"),
    "an unknown version": ("{configVersion: v2, onStartup: 1}", "'configVersion' value 'v2' is unsupported"),
    "an unknown key": ("{configVersion: v1, onStartup: 1, colour: red}", "colour is a forbidden property"),
    "events that are not a list": (
        "{configVersion: v1, kubernetes: [{kind: Pod, watchEvent: Added}]}",
        'kubernetes.watchEvent must be of type array: "string"',
    ),
    "an invalid name": (
        "{configVersion: v1, kubernetes: [{kind: Pod, nameSelector: {matchNames: [1]}}]}",
        'kubernetes.nameSelector.matchNames must be of type string: "number"',
    ),
    "a key that is misspelt": (
        (
            "{configVersion: v1, kubernetes: [{kind: Pod, labelSelector: "
            "{matchExpressions: [{key: a, operator: Exists, operand: b}]}}]}"
        ),
        "kubernetes.labelSelector.matchExpressions.operand is a forbidden property",
    ),
    "a key that is missing": (
        "{configVersion: v1, kubernetes: [{kind: Pod, labelSelector: {matchExpressions: [{key: a}]}}]}",
        "kubernetes.labelSelector.matchExpressions.operator is required",
    ),
    "an unknown operator": (
        "{configVersion: v1, kubernetes: [{kind: Pod, labelSelector: {matchExpressions: [{key: a, operator: Is}]}}]}",
        "kubernetes.labelSelector.matchExpressions.operator should be one of [In NotIn Exists DoesNotExist]",
    ),
    "an example of the documentation that the schema refuses": (
        "{configVersion: v1, kubernetes: [{kind: Pod, name: a, includeSnapshotsFrom: a}]}",
        'kubernetes.includeSnapshotsFrom must be of type array: "string"',
    ),
}
SENSE: Final[dict[str, tuple[str, str]]] = {
    "{configVersion: v1, schedule: [{crontab: '* * * *'}]}": ("schedule.crontab is invalid: ", ""),
    "{configVersion: v1, kubernetes: [{kind: Pod, apiVersion: a/b/c}]}": ("kubernetes.apiVersion is invalid: ", ""),
    "{configVersion: v1, schedule: [{crontab: '@daily', includeSnapshotsFrom: [x]}]}": (
        "",
        "'x' binding name not found",
    ),
    "{configVersion: v1, kubernetes: [{kind: Pod}, {kind: Pod, includeSnapshotsFrom: [kubernetes]}]}": (
        "",
        "there are 2 'kubernetes' binding names",
    ),
    "{configVersion: v1, onStartup: 1, settings: {executionMinInterval: soon, executionBurst: 1}}": (
        "settings.executionMinInterval is invalid: ",
        "",
    ),
    "{configVersion: v1, kubernetes: [{kind: Pod, nameSelector: {matchNames: [a]}, "
    "fieldSelector: {matchExpressions: [{field: metadata.name, operator: '=', value: b}]}}]}": (
        "kubernetes: nameSelector and a fieldSelector on metadata.name exclude each other",
        "",
    ),
}


def test_tables_have_as_many_rows_as_the_contract() -> None:
    assert (len(LOADS), len(REFUSALS)) == (29, 10)


@pytest.mark.parametrize("name", LOADS)
def test_valid_documents_are_read(name: str) -> None:
    case = LOADS[name]
    config = read_hook_config(case.document.encode(), hook="hooks/x.sh", scope=case.scope)
    assert case.look(config) == case.expected


@pytest.mark.parametrize("name", REFUSALS)
def test_documents_that_violate_the_schema_are_refused(name: str) -> None:
    document, problem = REFUSALS[name]
    with pytest.raises(HookConfigError) as caught:
        read_hook_config(document.encode(), hook="hooks/x.sh")
    (found,) = caught.value.problems
    assert found.startswith(problem)


@pytest.mark.parametrize("document", SENSE)
def test_semantically_invalid_documents_are_refused(document: str) -> None:
    begin, end = SENSE[document]
    with pytest.raises(HookConfigError) as caught:
        read_hook_config(document.encode(), hook="hooks/x.sh")
    (found,) = caught.value.problems
    assert found.startswith(begin)
    assert found.endswith(end)


@pytest.mark.parametrize("whole", [True, False])
def test_batch_documents_are_read_in_both_forms(whole: bool) -> None:
    entry: JsonValue = {
        "configVersion": "v1",
        "onStartup": 10,
        "beforeHelm": 5,
        "afterHelm": 15,
        "afterDeleteHelm": 25,
        "metadata": {"name": "main", "path": "some-path/hooks/"},
        "kubernetes": [
            {
                "name": "apiservers",
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": {"nameSelector": {"matchNames": ["kube-system"]}},
                "labelSelector": {"matchLabels": {"component": "kube-apiserver"}},
                "keepFullObjectsInMemory": False,
                "jqFilter": ".metadata.name",
            }
        ],
    }
    document: JsonValue = {"version": "v1", "hooks": [entry], "readiness": None} if whole else [entry]
    (hook,) = read_batch(json.dumps(document).encode(), hook="hooks/main").hooks
    config = hook.config
    assert (hook.name, config.on_startup, config.before_helm, config.after_helm) == ("main", 10, 5, 15)
    assert config.after_delete_helm == 25
    (binding,) = config.kubernetes
    assert (binding.group, binding.keep_full_objects, binding.jq_filter) == ("main", False, ".metadata.name")
