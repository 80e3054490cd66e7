"""Configurations of executables with several hooks: both forms of the document, defaults, and refusals."""

import json
import random
from datetime import timedelta

import pytest

from tests.hooks.test_config_fuzz import SCALARS, places, put
from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.batch_hooks import Batch, BatchEntry, read_batch
from wharfinger.hooks.config.bindings import (
    UNBOUND,
    HookConfig,
    HookScope,
    KubernetesBinding,
    NamespaceSelector,
    ScheduleBinding,
    WatchVerb,
)
from wharfinger.hooks.config.problems import HookConfigError

KUBERNETES: JsonObject = {
    "name": "apiservers",
    "apiVersion": "v1",
    "kind": "Pod",
    "nameSelector": None,
    "namespace": {"nameSelector": {"matchNames": ["kube-system"]}, "labelSelector": None},
    "labelSelector": {"matchLabels": {"component": "api"}, "matchExpressions": None},
    "fieldSelector": {"matchExpressions": [{"field": "status.phase", "operator": "!="}]},
    "executeHookOnEvent": False,
    "keepFullObjectsInMemory": None,
    "jqFilter": ".metadata.name",
    "allowFailure": True,
    "queue": "",
    "includeSnapshotsFrom": [],
}
ENTRY: JsonObject = {
    "configVersion": "v1",
    "metadata": {"name": "main", "path": "some/hooks/"},
    "onStartup": 10,
    "beforeHelm": 5,
    "afterHelm": 15,
    "afterDeleteHelm": 25,
    "schedule": [{"name": "", "crontab": "* * * * *", "queue": "q"}],
    "kubernetes": [KUBERNETES],
    "settings": {"executionMinInterval": 3_000_000_000, "executionBurst": 2},
    "logLevel": "debug",
    "newerThanWeAre": [1],
}
READ = HookConfig(
    on_startup=10,
    before_helm=5,
    after_helm=15,
    before_delete_helm=None,
    after_delete_helm=25,
    kubernetes=(
        KubernetesBinding(
            name="apiservers",
            kind="Pod",
            api_version="v1",
            verbs=frozenset(),
            on_synchronization=True,
            wait_for_synchronization=True,
            keep_full_objects=False,
            jq_filter=".metadata.name",
            allow_failure=True,
            queue="main",
            group="main",
            include_snapshots_from=("apiservers",),
            names=None,
            label_selector="component=api",
            field_selector="status.phase!=",
            namespaces=NamespaceSelector(("kube-system",), ""),
        ),
    ),
    schedules=(ScheduleBinding("schedule", "* * * * *", False, "q", "", ()),),
    min_interval=timedelta(seconds=3),
    burst=2,
)


def batch(document: JsonValue, scope: HookScope = HookScope.PACKAGE) -> Batch:
    return read_batch(json.dumps(document).encode(), hook="hooks/main", scope=scope)


def refused(document: JsonValue) -> HookConfigError:
    with pytest.raises(HookConfigError) as caught:
        batch(document)
    return caught.value


def kubernetes(**fields: JsonValue) -> KubernetesBinding:
    """Return the kubernetes binding of a batch entry. The binding watches Pods and has these fields."""
    (entry,) = batch([{"kubernetes": [{"kind": "Pod", **fields}]}]).hooks
    (binding,) = entry.config.kubernetes
    return binding


@pytest.mark.parametrize(
    "document", [[ENTRY], {"version": "v1", "hooks": [ENTRY]}, {"version": "v1", "hooks": [ENTRY], "readiness": None}]
)
def test_both_document_forms_give_the_same_batch(document: JsonValue) -> None:
    assert batch(document) == Batch((BatchEntry("main", READ),), None, settings_check=False)


def test_batch_may_declare_readiness_and_a_settings_check() -> None:
    ready: JsonObject = {"metadata": {"name": "readiness"}, "schedule": [{"crontab": "*/5 * * * * *"}]}
    found = batch({"version": "v1", "hooks": [], "readiness": ready, "has_settings_check": True})
    assert (found.hooks, found.settings_check) == ((), True)
    assert found.readiness is not None
    assert [one.crontab for one in found.readiness.schedules] == ["*/5 * * * * *"]
    assert batch({"version": "v1", "has_settings_check": True}) == Batch((), None, settings_check=True)


def test_batch_entry_without_bindings_is_accepted() -> None:
    assert batch([{"metadata": {"name": "a"}}, {}]).hooks == (BatchEntry("a", UNBOUND), BatchEntry("", UNBOUND))


def test_batch_bindings_have_their_own_defaults() -> None:
    binding = kubernetes()
    assert (binding.group, binding.keep_full_objects, binding.verbs) == ("main", False, frozenset(WatchVerb))
    binding = kubernetes(group="own", keepFullObjectsInMemory=True)
    assert (binding.group, binding.keep_full_objects) == ("own", True)


@pytest.mark.parametrize(
    ("said", "verbs"),
    [(True, set(WatchVerb)), (False, set()), ([], set()), (["Added"], {WatchVerb.ADDED}), (None, set(WatchVerb))],
)
def test_execute_hook_on_event_accepts_booleans_and_names(said: JsonValue, verbs: set[WatchVerb]) -> None:
    assert kubernetes(executeHookOnEvent=said).verbs == verbs


@pytest.mark.parametrize(
    "fields",
    [
        {"labelSelector": {}},
        {"labelSelector": {"matchLabels": {}}},
        {"namespace": {}},
        {"namespace": {"nameSelector": {"matchNames": None}}},
        {"nameSelector": {"matchNames": []}},
        {"fieldSelector": {"matchExpressions": None}},
        {"includeSnapshotsFrom": None},
    ],
)
def test_empty_selectors_select_everything(fields: JsonObject) -> None:
    assert kubernetes(**fields) == kubernetes()


def test_label_value_may_be_empty() -> None:
    assert kubernetes(labelSelector={"matchLabels": {"a": ""}}).label_selector == "a="


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (None, 1)),
        ({"executionBurst": 3}, (None, 3)),
        ({"executionMinInterval": 1_500_000_000}, (timedelta(seconds=1.5), 1)),
        ({"executionMinInterval": "2s", "executionBurst": 4}, (timedelta(seconds=2), 4)),
    ],
)
def test_run_interval_and_burst_are_read_from_settings(
    settings: JsonObject, expected: tuple[timedelta | None, int]
) -> None:
    (entry,) = batch([{"onStartup": 1, "settings": settings}]).hooks
    assert (entry.config.min_interval, entry.config.burst) == expected


def test_global_batch_hooks_may_have_before_all_orders() -> None:
    (entry,) = batch([{"beforeAll": 3}], HookScope.GLOBAL).hooks
    assert entry.config.before_all == 3
    assert "only global hooks may have it" in str(refused([{"beforeAll": 3}]))


@pytest.mark.parametrize(
    ("document", "hook", "problem"),
    [
        ([], "hooks/main", "its output for `hook config` contains no hook"),
        ({"version": "v1"}, "hooks/main", "its output"),
        ({"hooks": []}, "hooks/main", "'version' is required"),
        ({"version": "v2", "hooks": []}, "hooks/main", "'version' value 'v2' is unsupported"),
        ("onStartup: 1", "hooks/main", "its output for `hook config`: expected an object, found a string"),
        ({"version": "v1", "hooks": {}}, "hooks/main", "hooks: expected a list, found an object"),
        ([1], "hooks/main", "hooks.0: expected an object, found an integer"),
        ([{"metadata": {"name": 1}}], "hooks/main", "metadata.name: expected a string"),
        ([{}, {"metadata": {"name": "a\nb"}}], "hooks/main", "hooks.1.metadata.name: 'a\\nb' is not a name"),
        ([{"metadata": {"name": "x" * 254}}], "hooks/main", "hooks.0.metadata.name: "),
        ([{}] * 501, "hooks/main", "501 hooks, over the limit of 500"),
        ({"version": "v1", "has_settings_check": "no"}, "hooks/main", "has_settings_check: expected true or false"),
        ([{"onStartup": "1"}], "hooks/main::0", 'onStartup must be of type integer: "string"'),
        ([{"configVersion": "v2", "onStartup": 1}], "hooks/main::0", "'configVersion' value 'v2' is unsupported"),
        ([{}, {"metadata": {"name": "b"}, "kubernetes": [{}]}], "hooks/main:b:1", "kubernetes.kind is required"),
        ([{"kubernetes": ["Pod"]}], "hooks/main::0", "kubernetes.0: expected an object, found a string"),
        (
            [{"kubernetes": [{"kind": "Pod", "fieldSelector": {"matchExpressions": [1]}}]}],
            "hooks/main::0",
            "kubernetes.field",
        ),
        ([{"schedule": [{"crontab": "x"}]}], "hooks/main::0", "schedule.crontab is invalid: "),
        ([{"schedule": {}}], "hooks/main::0", "schedule: expected a list, found an object"),
        ([{"settings": "5s"}], "hooks/main::0", 'settings must be of type object: "string"'),
        (
            [{"settings": {"executionMinInterval": True}}],
            "hooks/main::0",
            "settings.executionMinInterval must be of type st",
        ),
        ({"version": "v1", "readiness": 1}, "hooks/main-readiness", "its configuration: expected an object"),
        ({"version": "v1", "readiness": {"kubernetes": [{}]}}, "hooks/main-readiness", "kubernetes.kind is required"),
    ],
)
def test_invalid_batch_documents_are_refused(document: JsonValue, hook: str, problem: str) -> None:
    error = refused(document)
    assert error.hook == hook
    assert error.problems[0].startswith(problem)
    assert not error.transient


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        (b"", "it printed nothing for `hook config`"),
        (b" \n", "it printed nothing for `hook config`"),
        (b"Found 2 items", "its output for `hook config`: "),
        (b"[" * 1000, "its output for `hook config`: nested deeper"),
        (b" " * (1024 * 1024) + b"[]", "its output for `hook config`: 1048578 bytes is over the limit"),
    ],
)
def test_unparsable_batch_output_is_refused(printed: bytes, problem: str) -> None:
    with pytest.raises(HookConfigError) as caught:
        read_batch(printed, hook="hooks/main")
    assert caught.value.problems[0].startswith(problem)


def test_mutated_batch_documents_raise_only_the_declared_error() -> None:
    draw = random.Random(23)  # noqa: S311 - repeatable on purpose
    seeds: list[JsonValue] = [
        [ENTRY, ENTRY],
        {
            "version": "v1",
            "hooks": [ENTRY],
            "readiness": {"schedule": [{"crontab": "@hourly"}]},
            "has_settings_check": True,
        },
    ]
    taken = refusals = 0
    for _ in range(scaled(100_000, 800)):
        document = draw.choice(seeds)
        for _ in range(draw.choice([0, 1, 1, 2, 3])):
            place = draw.choice(places(document))
            if place or draw.random() < 0.1:
                document = put(document, place, draw.choice([*SCALARS, KUBERNETES, ENTRY]))
        text = bytearray(json.dumps(document).encode())
        if draw.random() < 0.2:
            text[draw.randrange(len(text))] = draw.randrange(256)
        try:
            found = read_batch(bytes(text), hook="h")
        except HookConfigError as error:
            refusals += 1
            assert error.problems, bytes(text)
        else:
            taken += 1
            assert found.hooks or found.readiness or found.settings_check, bytes(text)
    assert min(taken, refusals) > scaled(100_000, 800) // 20
