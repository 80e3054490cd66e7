"""The output of ``--config`` as it is read: every field and its default."""

from datetime import timedelta

import pytest

from tests.hooks.support.configs import FULL, PODS, kubernetes, kubernetes_of, read
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import (
    HookConfig,
    HookPool,
    HookScope,
    KubernetesBinding,
    NamespaceSelector,
    ScheduleBinding,
    WatchVerb,
)
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.config.document import config_document
from wharfinger.hooks.config.problems import HookConfigError


def test_full_example_of_the_contract_is_read() -> None:
    assert read(FULL) == HookConfig(
        on_startup=10,
        before_helm=None,
        after_helm=None,
        before_delete_helm=None,
        after_delete_helm=None,
        kubernetes=(
            KubernetesBinding(
                name="pods",
                kind="Pod",
                api_version="v1",
                verbs=frozenset({WatchVerb.ADDED, WatchVerb.DELETED}),
                on_synchronization=True,
                wait_for_synchronization=True,
                keep_full_objects=False,
                jq_filter="{n: .metadata.name, p: .status.phase}",
                allow_failure=False,
                queue="pods",
                group="main",
                include_snapshots_from=("pods",),
                names=None,
                label_selector="",
                field_selector="",
                namespaces=NamespaceSelector(None, "team=a"),
            ),
        ),
        schedules=(ScheduleBinding("every-5m", "*/5 * * * *", False, "cron", "", ("pods",)),),
        min_interval=timedelta(seconds=5),
        burst=2,
    )


def test_omitted_fields_get_their_defaults() -> None:
    assert kubernetes() == PODS
    config = read("configVersion: v1\nschedule: [{crontab: '* * * * *'}]")
    assert config.schedules == (ScheduleBinding("schedule", "* * * * *", False, "main", "", ()),)
    assert (config.kubernetes, config.min_interval, config.burst, config.version) == ((), None, 1, "v1")


@pytest.mark.parametrize("key", ["onStartup", "beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm"])
def test_each_order_key_sets_its_own_order(key: str) -> None:
    config = read({"configVersion": "v1", key: 7})
    found = (
        config.on_startup,
        config.before_helm,
        config.after_helm,
        config.before_delete_helm,
        config.after_delete_helm,
    )
    names = ["onStartup", "beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm"]
    assert found == tuple(7 if name == key else None for name in names)


@pytest.mark.parametrize("key", ["executeHookOnEvent", "watchEvent"])
def test_events_are_read_under_both_names(key: str) -> None:
    assert kubernetes_of({key: ["Modified"]}).verbs == {WatchVerb.MODIFIED}
    assert kubernetes_of({key: []}).verbs == frozenset()


def test_newer_name_of_events_takes_precedence() -> None:
    assert kubernetes(executeHookOnEvent=[], watchEvent=["Added"]).verbs == frozenset()


def test_flags_and_resynchronization_period_are_read() -> None:
    binding = kubernetes(
        executeHookOnSynchronization=False,
        keepFullObjectsInMemory=False,
        allowFailure=True,
        resynchronizationPeriod="1h",
    )
    assert (binding.on_synchronization, binding.keep_full_objects, binding.allow_failure) == (False, False, True)


@pytest.mark.parametrize(
    ("period", "seconds", "warning"),
    [
        ("1h30m", 5400.0, ""),
        ("10s", 10.0, ""),
        ("0s", None, ""),
        ("", None, ""),
        ("1ms", 10.0, "kubernetes.resynchronizationPeriod 1ms is raised to 10s, the minimum"),
        ("often", None, "kubernetes.resynchronizationPeriod is ignored: duration 'often': "),
        ("-5m", None, "kubernetes.resynchronizationPeriod is ignored: duration '-5m': it must not be negative"),
    ],
)
def test_invalid_resynchronization_periods_are_only_a_warning(period: str, seconds: float | None, warning: str) -> None:
    config = read({"configVersion": "v1", "kubernetes": [{"kind": "Pod", "resynchronizationPeriod": period}]})
    assert [binding.resynchronization_s for binding in config.kubernetes] == [seconds]
    assert len(config.warnings) == bool(warning)
    assert "".join(config.warnings).startswith(warning)


@pytest.mark.parametrize("prefix", ["", "configVersion: v1\n"])
def test_global_hooks_may_have_before_all_and_after_all_orders(prefix: str) -> None:
    document = f"{prefix}beforeAll: 1\nafterAll: 4\nonStartup: -3".encode()
    config = read_hook_config(document, hook="global-hooks/x", scope=HookScope.GLOBAL)
    assert (config.before_all, config.after_all, config.on_startup) == (1, 4, -3)
    assert config.version == ("v1" if prefix else "v0")
    assert (read("onStartup: 1").before_all, read("onStartup: 1").after_all) == (None, None)


def test_main_queue_always_waits_for_synchronization() -> None:
    assert kubernetes(waitForSynchronization=False).wait_for_synchronization
    assert not kubernetes(waitForSynchronization=False, queue="own").wait_for_synchronization
    assert kubernetes(waitForSynchronization=True, queue="own").wait_for_synchronization


def test_empty_strings_equal_omitted_fields() -> None:
    assert kubernetes(name="", queue="", group="", jqFilter="", apiVersion="") == PODS


def test_selectors_are_converted_to_their_api_form() -> None:
    binding = kubernetes(
        nameSelector={"matchNames": ["a", "b", "a"]},
        labelSelector={
            "matchLabels": {"b": "2", "a": ""},
            "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}],
        },
        fieldSelector={"matchExpressions": [{"field": "status.phase", "operator": "NotEquals", "value": "Running"}]},
        namespace={"nameSelector": {"matchNames": ["default"]}},
    )
    assert binding.names == ("a", "b")
    assert binding.label_selector == "a=,b=2,c in (d)"
    assert binding.field_selector == "status.phase!=Running"
    assert binding.namespaces == NamespaceSelector(("default",), "")


def test_empty_name_lists_select_everything() -> None:
    assert kubernetes(nameSelector={"matchNames": []}, namespace={"nameSelector": {"matchNames": []}}) == PODS


def test_namespace_label_selector_takes_precedence_over_names() -> None:
    namespace: JsonObject = {"nameSelector": {"matchNames": ["default"]}, "labelSelector": {"matchLabels": {"a": "b"}}}
    assert kubernetes(namespace=namespace).namespaces == NamespaceSelector(None, "a=b")
    namespace["labelSelector"] = {"matchLabels": {}}
    assert kubernetes(namespace=namespace).namespaces is None


def test_groups_are_merged_into_the_snapshots_without_duplicates() -> None:
    config = read("""
        configVersion: v1
        kubernetes:
        - {kind: a, name: x, group: g}
        - {kind: b, name: other, includeSnapshotsFrom: [other]}
        - {kind: c, name: z, group: g, includeSnapshotsFrom: [other, z]}
        - {kind: d, group: h}
        schedule:
        - {crontab: "* * * * *", group: g}
        - {crontab: "* * * * *", group: nobody}
        """)
    assert [binding.include_snapshots_from for binding in config.kubernetes] == [
        ("x", "z"),
        ("other",),
        ("other", "z", "x"),
        ("kubernetes",),
    ]
    assert [binding.include_snapshots_from for binding in config.schedules] == [("x", "z"), ()]


@pytest.mark.parametrize("version", ["v1", "apps/v1", "cert-manager.io/v1alpha2"])
def test_valid_api_versions_are_read(version: str) -> None:
    assert kubernetes(apiVersion=version).api_version == version


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("{executionMinInterval: 300ms, executionBurst: 3}", (timedelta(milliseconds=300), 3)),
        ("{executionMinInterval: 0s, executionBurst: 3}", (None, 3)),
        ("{executionMinInterval: 1h30m, executionBurst: 0}", (timedelta(minutes=90), 1)),
    ],
)
def test_run_interval_and_burst_are_read_from_settings(settings: str, expected: tuple[timedelta | None, int]) -> None:
    config = read(f"configVersion: v1\nonStartup: 1\nsettings: {settings}")
    assert (config.min_interval, config.burst) == expected


@pytest.mark.parametrize("crontab", ["* * * * *", "*/10 * * * * *", "@hourly", "@every 10s", "0 3 ? * MON-FRI"])
def test_valid_crontabs_are_read(crontab: str) -> None:
    (binding,) = read({"configVersion": "v1", "schedule": [{"crontab": crontab}]}).schedules
    assert binding.crontab == crontab


def test_version_0_document_is_read() -> None:
    config = read("""
        onStartup: 1
        afterHelm: 3
        schedule: [{name: s, crontab: "*/5 * * * *", allowFailure: true}, {crontab: "@daily"}]
        onKubernetesEvent:
        - {kind: pod}
        - name: named
          kind: Deployment
          event: [add, delete]
          selector: {matchLabels: {a: b}}
          objectName: one
          namespaceSelector: {matchNames: [default]}
          jqFilter: .metadata
          allowFailure: true
        """)
    assert (config.version, config.on_startup, config.after_helm) == ("v0", 1, 3)
    assert config.schedules == (
        ScheduleBinding("s", "*/5 * * * *", True, "main", "", (), legacy=True),
        ScheduleBinding("schedule", "@daily", False, "main", "", (), legacy=True),
    )
    plain, named = config.kubernetes
    assert plain == KubernetesBinding(
        "onKubernetesEvent", "pod", "", frozenset(WatchVerb), False, True, True, "", False, "main", "", (), None, "", "",
        None, legacy=True,
    )  # fmt: skip
    assert (named.name, named.kind) == ("named", "Deployment")
    assert named.verbs == {WatchVerb.ADDED, WatchVerb.DELETED}
    assert (named.label_selector, named.names, named.namespaces) == (
        "a=b",
        ("one",),
        NamespaceSelector(("default",), ""),
    )
    assert (named.jq_filter, named.allow_failure, named.legacy) == (".metadata", True, True)


def test_pool_field_selects_how_a_hook_is_started() -> None:
    assert read("configVersion: v1\nonStartup: 1\n").pool is HookPool.WARM
    for pool in (HookPool.NONE, HookPool.PERSISTENT):
        config = read(f"configVersion: v1\nonStartup: 1\npool: {pool}\n")
        assert config.pool is pool
        assert config_document(config)["pool"] == pool.value
    assert "pool" not in config_document(read("configVersion: v1\nonStartup: 1\n"))


@pytest.mark.parametrize("value", ["warm", "''", "true", "null", "[none]"])
def test_unknown_pools_are_refused(value: str) -> None:
    with pytest.raises(HookConfigError, match="pool"):
        read(f"configVersion: v1\nonStartup: 1\npool: {value}\n")
