"""Binding contexts compared with the examples of the hook contract. Whole documents are compared, so an additional field is an
error.
"""

import io
import json
from dataclasses import replace

import pytest

from tests.hooks.support.configs import PODS
from tests.hooks.support.hooked import hook
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.hooks.config.bindings import AdmissionBinding, ConversionBinding, ScheduleBinding, WatchVerb
from wharfinger.hooks.watching import contexts
from wharfinger.hooks.watching.context_file import Context, write_contexts
from wharfinger.hooks.watching.contexts import (
    combined,
    event,
    helm_binding,
    on_startup,
    schedule,
    synchronization,
    synchronized_together,
)
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent
from wharfinger.kube.resource import ObjectKey, ResourceType

TICK = ScheduleBinding(
    "every 10 sec", "*/10 * * * * *", allow_failure=False, queue="main", group="", include_snapshots_from=()
)
NAMED = replace(PODS, name="pods")
POD: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "d"}}
SHOWN: JsonObject = {"object": POD, "filterResult": {"n": "a", "p": "Running"}}
KEY = ObjectKey(ResourceType("", "v1", "Pod", "pods", namespaced=True), "d", "a")


def packed(value: JsonValue) -> PackedJson:
    return PackedJson(canonical_json(value))


ITEM = Item(packed(POD), packed({"n": "a", "p": "Running"}))
WHOLE = Item(packed(POD), None)
FILTERED = Item(None, packed(None))


def written(*contexts: Context) -> list[JsonObject]:
    """Return the contexts as a hook reads them."""
    file = io.BytesIO()
    write_contexts(file, contexts)
    found: list[JsonObject] = json.loads(file.getvalue())
    return found


def one(context: Context) -> JsonObject:
    (found,) = written(context)
    return found


def told(verb: WatchVerb, item: Item) -> MonitorEvent:
    return MonitorEvent(verb, KEY, item)


def group(name: str, binding: str = "x") -> Context:
    return {"binding": binding, "type": "Group", "groupName": name, "snapshots": {}}


def test_on_startup_context_has_only_its_name() -> None:
    assert one(on_startup()) == {"binding": "onStartup"}


def test_schedule_context_has_its_included_snapshots() -> None:
    assert one(schedule(TICK, {})) == {"binding": "every 10 sec", "type": "Schedule"}
    binding = replace(TICK, include_snapshots_from=("pods", "none"))
    assert one(schedule(binding, {"pods": [WHOLE], "others": [ITEM]})) == {
        "binding": "every 10 sec",
        "type": "Schedule",
        "snapshots": {"pods": [{"object": POD}], "none": []},
    }


def test_synchronization_context_always_has_objects() -> None:
    assert one(synchronization(NAMED, [ITEM], {})) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [SHOWN],
    }
    assert one(synchronization(replace(NAMED, include_snapshots_from=("pods",)), (), {"pods": [ITEM]})) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [],
        "snapshots": {"pods": [SHOWN]},
    }


@pytest.mark.parametrize("verb", WatchVerb)
def test_event_context_has_the_fields_of_its_item(verb: WatchVerb) -> None:
    assert one(event(NAMED, told(verb, ITEM), {})) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": verb.value,
        "object": POD,
        "filterResult": {"n": "a", "p": "Running"},
    }
    assert one(event(NAMED, told(verb, FILTERED), {})) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": verb.value,
        "filterResult": None,
    }


def test_event_context_has_its_included_snapshots() -> None:
    binding = replace(NAMED, include_snapshots_from=("pods",))
    assert one(event(binding, told(WatchVerb.ADDED, WHOLE), {"pods": []})) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": "Added",
        "object": POD,
        "snapshots": {"pods": []},
    }


def test_group_context_has_only_its_name_and_snapshots() -> None:
    binding = replace(NAMED, name="secret", group="main", include_snapshots_from=("deployment", "secret"))
    expected: JsonObject = {
        "binding": "secret",
        "type": "Group",
        "groupName": "main",
        "snapshots": {"deployment": [{"object": {}}], "secret": []},
    }
    snapshots: dict[str, list[Item]] = {"deployment": [Item(packed({}), None)], "secret": []}
    assert one(synchronization(binding, [ITEM], snapshots)) == expected
    assert one(event(binding, told(WatchVerb.DELETED, ITEM), snapshots)) == expected
    ticking = replace(TICK, group="main", include_snapshots_from=("deployment", "secret"))
    assert one(schedule(ticking, snapshots)) == {**expected, "binding": "every 10 sec"}
    assert schedule(replace(TICK, group="lonely"), {}) == group("lonely", "every 10 sec")


def test_helm_contexts_have_all_snapshots_and_no_type() -> None:
    assert one(helm_binding("beforeHelm", {})) == {"binding": "beforeHelm", "snapshots": {}}
    assert one(helm_binding("afterDeleteHelm", {"pods": (ITEM,)})) == {
        "binding": "afterDeleteHelm",
        "snapshots": {"pods": [SHOWN]},
    }


@pytest.mark.parametrize(
    ("verb", "name"), [(WatchVerb.ADDED, "add"), (WatchVerb.MODIFIED, "update"), (WatchVerb.DELETED, "delete")]
)
def test_version_0_contexts_have_their_own_fields(verb: WatchVerb, name: str) -> None:
    binding = replace(NAMED, name="monitor pods", legacy=True)
    assert one(event(binding, told(verb, ITEM), {})) == {
        "binding": "monitor pods",
        "resourceEvent": name,
        "resourceNamespace": "d",
        "resourceKind": "Pod",
        "resourceName": "a",
    }
    assert one(schedule(replace(TICK, name="schedule", legacy=True), {})) == {"binding": "schedule"}


def test_packed_objects_are_written_unchanged() -> None:
    spelled = PackedJson(b'{"b": 1.0, "a":"\\u00e9"}')
    file = io.BytesIO()
    write_contexts(file, [event(NAMED, told(WatchVerb.ADDED, Item(spelled, None)), {})])
    assert b'"object":' + spelled.text() + b"," in file.getvalue()


def test_consecutive_contexts_of_a_group_become_the_last_one() -> None:
    tick = schedule(TICK, {})
    rows = [tick, group("a", "1"), group("a", "2"), tick, group("a", "3"), group("b", "4"), group("b", "5"), tick, tick]
    assert combined(rows) == (tick, group("a", "2"), tick, group("a", "3"), group("b", "5"), tick, tick)
    assert combined([group("a", "1")]) == (group("a", "1"),)
    assert combined([]) == ()


def synchronized(config: str) -> list[list[str]]:
    bindings = hook(config).config
    return [[binding.name for binding in run] for run in synchronized_together(bindings)]


def test_bindings_without_a_group_are_synchronized_one_by_one() -> None:
    assert synchronized("{configVersion: v1, schedule: [{crontab: '* * * * *'}]}") == []
    assert synchronized("{configVersion: v1, kubernetes: [{name: a, kind: x}, {name: b, kind: x}]}") == [["a"], ["b"]]
    assert synchronized("{onKubernetesEvent: [{name: a, kind: x}, {name: b, kind: x}]}") == [["a"], ["b"]]


def test_grouped_binding_is_synchronized_with_the_following_ones_of_its_queue() -> None:
    assert synchronized(
        "{configVersion: v1, kubernetes: ["
        "{name: a, kind: x}, {name: b, kind: x, group: g}, {name: c, kind: x, queue: q}, {name: d, kind: x},"
        "{name: e, kind: x, group: h}, {name: f, kind: x, queue: q, group: g}, {name: i, kind: x, queue: q}]}"
    ) == [["a"], ["b", "d", "e"], ["c"], ["f", "i"]]


def test_bindings_with_different_conditions_are_synchronized_separately() -> None:
    assert synchronized(
        "{configVersion: v1, kubernetes: ["
        "{name: a, kind: x, group: g}, {name: b, kind: x, group: g, executeHookOnSynchronization: false},"
        "{name: c, kind: x, group: g},"
        "{name: d, kind: x, queue: q, group: g, waitForSynchronization: false}, {name: e, kind: x, queue: q, group: g}]}"
    ) == [["a"], ["b"], ["c"], ["d"], ["e"]]


def test_webhook_contexts_have_review_and_snapshots() -> None:
    """In a group, a webhook binding gets snapshots, and its context has the type ``Mutating`` instead of ``Group``."""
    review: JsonObject = {"request": {"uid": "u"}}
    plain, grouped = (
        AdmissionBinding("a.b.c", ()),
        AdmissionBinding("a.b.c", (), group="g", include_snapshots_from=("x",)),
    )
    assert contexts.validating(plain, review, {}) == {"binding": "a.b.c", "type": "Validating", "review": review}
    assert contexts.mutating(grouped, review, {}) == {
        "binding": "a.b.c",
        "type": "Mutating",
        "review": review,
        "snapshots": {"x": []},
    }
    conversion = ConversionBinding("up", "x.y", (("v1", "v2"),))
    assert contexts.conversion(conversion, ("v1", "v2"), review, {}) == {
        "binding": "up",
        "type": "Conversion",
        "fromVersion": "v1",
        "toVersion": "v2",
        "review": review,
    }
