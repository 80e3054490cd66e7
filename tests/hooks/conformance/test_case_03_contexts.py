"""Case 3: the exact file at BINDING_CONTEXT_PATH for every type of context."""

import json

import pytest

from tests.hooks.conformance.telling import asking, event, item, pod, written
from tests.hooks.support.hooked import hook
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import WatchVerb
from wharfinger.hooks.watching import contexts
from wharfinger.hooks.watching.monitor_core import place

ADDED, MODIFIED, DELETED = WatchVerb.ADDED, WatchVerb.MODIFIED, WatchVerb.DELETED
ALL = asking(
    """
onStartup: 1
schedule:
- {name: every 10 sec, crontab: "*/10 * * * * *"}
- {crontab: "* * * * *"}
- {name: with pods, crontab: "* * * * *", includeSnapshotsFrom: [pods, short]}
- {name: tick, crontab: "* * * * *", group: main}
kubernetes:
- {name: pods, kind: Pod}
- {name: filtered, kind: Pod, jqFilter: "{n: .metadata.name}"}
- {name: short, kind: Pod, jqFilter: "{n: .metadata.name}", keepFullObjectsInMemory: false}
- {name: nothing, kind: Pod, keepFullObjectsInMemory: false}
- {name: included, kind: Pod, includeSnapshotsFrom: [short]}
- {name: secret, kind: Secret, group: main}
- {kind: Pod}
"""
)
EVERY, UNNAMED_TICK, WITH_PODS, TICK = ALL.config.schedules
PODS, FILTERED, SHORT, NOTHING, INCLUDED, SECRET, UNNAMED = ALL.config.kubernetes
A = '{"kind":"Pod","metadata":{"name":"a","namespace":"d"}}'
ITEM_A = f'{{"object":{A}}}'


def test_on_startup_context_has_only_its_binding() -> None:
    assert written(contexts.on_startup()) == '[{"binding":"onStartup"}]\n'


def test_schedule_contexts_have_included_snapshots() -> None:
    snapshots = {"pods": [item(PODS, pod("a"))], "short": [item(SHORT, pod("a"), {"n": "a"})]}
    assert written(contexts.schedule(EVERY, snapshots)) == '[{"binding":"every 10 sec","type":"Schedule"}]\n'
    assert written(contexts.schedule(UNNAMED_TICK, {})) == '[{"binding":"schedule","type":"Schedule"}]\n'
    assert written(contexts.schedule(WITH_PODS, snapshots)) == (
        f'[{{"binding":"with pods","snapshots":{{"pods":[{ITEM_A}],"short":[{{"filterResult":{{"n":"a"}}}}]}},'
        '"type":"Schedule"}]\n'
    )
    # Every included name is present, even without items.
    assert written(contexts.schedule(WITH_PODS, {})) == (
        '[{"binding":"with pods","snapshots":{"pods":[],"short":[]},"type":"Schedule"}]\n'
    )


def test_synchronization_contexts_have_objects_and_snapshots() -> None:
    one = contexts.synchronization(FILTERED, [item(FILTERED, pod("a"), {"n": "a"})], {})
    assert written(one) == (
        f'[{{"binding":"filtered","objects":[{{"filterResult":{{"n":"a"}},"object":{A}}}],"type":"Synchronization"}}]\n'
    )
    assert written(contexts.synchronization(PODS, [], {})) == (
        '[{"binding":"pods","objects":[],"type":"Synchronization"}]\n'
    )
    assert written(contexts.synchronization(INCLUDED, [], {"short": [item(SHORT, pod("a"), None)]})) == (
        '[{"binding":"included","objects":[],"snapshots":{"short":[{"filterResult":null}]},"type":"Synchronization"}]\n'
    )
    assert written(contexts.synchronization(UNNAMED, [], {})) == (
        '[{"binding":"kubernetes","objects":[],"type":"Synchronization"}]\n'
    )


@pytest.mark.parametrize("verb", ["Added", "Modified", "Deleted"])
def test_event_contexts_have_object_and_filter_result(verb: str) -> None:
    kind = WatchVerb(verb)
    assert written(contexts.event(PODS, event(PODS, kind, pod("a")), {})) == (
        f'[{{"binding":"pods","object":{A},"type":"Event","watchEvent":"{verb}"}}]\n'
    )
    assert written(contexts.event(FILTERED, event(FILTERED, kind, pod("a"), {"n": "a"}), {})) == (
        f'[{{"binding":"filtered","filterResult":{{"n":"a"}},"object":{A},"type":"Event","watchEvent":"{verb}"}}]\n'
    )
    assert written(contexts.event(SHORT, event(SHORT, kind, pod("a"), {"n": "a"}), {})) == (
        f'[{{"binding":"short","filterResult":{{"n":"a"}},"type":"Event","watchEvent":"{verb}"}}]\n'
    )
    assert written(contexts.event(INCLUDED, event(INCLUDED, kind, pod("a")), {"short": []})) == (
        f'[{{"binding":"included","object":{A},"snapshots":{{"short":[]}},"type":"Event","watchEvent":"{verb}"}}]\n'
    )


@pytest.mark.parametrize("filtered", [None, False, 0, "", [], {}, [1, 2]])
def test_any_filter_result_is_shown(filtered: JsonObject | None) -> None:
    told = contexts.event(SHORT, event(SHORT, ADDED, pod("a"), filtered), {})
    assert json.loads(written(told))[0]["filterResult"] == filtered


def test_event_without_object_and_filter_shows_only_its_type() -> None:
    assert written(contexts.event(NOTHING, event(NOTHING, DELETED, pod("a")), {})) == (
        '[{"binding":"nothing","type":"Event","watchEvent":"Deleted"}]\n'
    )
    assert written(contexts.synchronization(NOTHING, [item(NOTHING, pod("a"))], {})) == (
        '[{"binding":"nothing","objects":[{}],"type":"Synchronization"}]\n'
    )


def test_group_context_has_only_group_name_and_snapshots() -> None:
    snapshots = {"secret": [item(SECRET, pod("a"))]}
    expected = f'[{{"binding":"secret","groupName":"main","snapshots":{{"secret":[{ITEM_A}]}},"type":"Group"}}]\n'
    assert written(contexts.event(SECRET, event(SECRET, MODIFIED, pod("a")), snapshots)) == expected
    assert written(contexts.synchronization(SECRET, snapshots["secret"], snapshots)) == expected
    assert written(contexts.schedule(TICK, snapshots)) == expected.replace('"binding":"secret"', '"binding":"tick"')


def test_release_bindings_have_all_snapshots_and_no_type() -> None:
    for binding in ("beforeAll", "afterAll", "beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm"):
        assert written(contexts.helm_binding(binding, {})) == f'[{{"binding":"{binding}","snapshots":{{}}}}]\n'
    snapshots = {"pods": [item(PODS, pod("a"))], "secret": []}
    assert written(contexts.helm_binding("beforeHelm", snapshots)) == (
        f'[{{"binding":"beforeHelm","snapshots":{{"pods":[{ITEM_A}],"secret":[]}}}}]\n'
    )


def test_version_0_contexts_have_their_own_fields() -> None:
    old = hook(
        "{onStartup: 1, schedule: [{crontab: '* * * * *'}], onKubernetesEvent: [{name: monitor pods, kind: Pod}]}"
    )
    (schedule,), (pods,) = old.config.schedules, old.config.kubernetes
    assert written(contexts.schedule(schedule, {})) == '[{"binding":"schedule"}]\n'
    for verb, word in ((ADDED, "add"), (MODIFIED, "update"), (DELETED, "delete")):
        assert written(contexts.event(pods, event(pods, verb, pod("a")), {})) == (
            f'[{{"binding":"monitor pods","resourceEvent":"{word}","resourceKind":"Pod","resourceName":"a",'
            '"resourceNamespace":"d"}]\n'
        )


def test_context_file_of_a_run_is_always_a_list() -> None:
    told = contexts.combined([contexts.on_startup(), contexts.schedule(EVERY, {})])
    assert written(*told) == '[{"binding":"onStartup"},{"binding":"every 10 sec","type":"Schedule"}]\n'


def test_numbers_and_texts_of_objects_are_unchanged() -> None:
    exact: JsonObject = {
        **pod("a"),
        "spec": {"big": 9223372036854775807, "bigger": 10**25, "half": 0.5, "text": "<a&b> ä \u2028 \0", "none": None},
    }
    (told,) = json.loads(written(contexts.event(PODS, event(PODS, ADDED, exact), {})))
    assert told["object"] == exact


def test_items_are_sorted_by_namespace_and_name() -> None:
    """Items are sorted by namespace and name if full objects are stored, and otherwise by ``namespace/kind/name``."""
    names = [("d", "b"), ("d-x", "a"), ("d", "a"), ("c", "z")]
    keys = [event(PODS, ADDED, pod(name, namespace)).key for namespace, name in names]
    kept = sorted(keys, key=lambda key: place(PODS, key))
    assert [(key.namespace, key.name) for key in kept] == [("c", "z"), ("d", "a"), ("d", "b"), ("d-x", "a")]
    short = sorted(keys, key=lambda key: place(SHORT, key))
    assert [(key.namespace, key.name) for key in short] == [("c", "z"), ("d-x", "a"), ("d", "a"), ("d", "b")]
