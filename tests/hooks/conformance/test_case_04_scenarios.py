"""Case 4: seven scenarios, from a hook's configuration and a cluster's states to the context files of the runs.

States and contexts are complete YAML documents: objects and fields that are not in them do not exist. Each state replaces the
state before it. An event that must not be reported would appear in the context file of the next step.
"""

from typing import Final

from tests.cluster.support.client_contract import widget_crd
from tests.hooks.conformance.scenes import scene
from wharfinger.formats.yaml.writer import write_yaml

_EVERY_MINUTE: Final = "* * * * *"


def config_map(name: str, value: str, namespace: str = "default", app: str = "x") -> str:
    metadata = f"{{name: {name}, namespace: {namespace}, labels: {{app: {app}}}}}"
    return f"{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}, data: {{v: '{value}'}}}}"


def secret(name: str) -> str:
    return f"{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: default}}, type: Opaque}}"


def widget(name: str, size: int) -> str:
    metadata = f"{{name: {name}, namespace: default}}"
    return f"{{apiVersion: example.test/v1, kind: Widget, metadata: {metadata}, spec: {{size: {size}}}}}"


def state(*objects: str) -> str:
    return "\n---\n".join(objects)


async def test_hook_is_shown_existing_objects_then_their_changes() -> None:
    """The first run gets all objects that match. Later runs get added, changed or deleted objects as they were at the event."""
    config = """
kubernetes:
- {name: maps, apiVersion: v1, kind: ConfigMap, namespace: {nameSelector: {matchNames: [default]}},
   labelSelector: {matchLabels: {app: x}}}
"""
    a, b, c = config_map("a", "1"), config_map("b", "2"), config_map("c", "3")
    others = (config_map("a", "9", "kube-public"), config_map("z", "9", app="other"))
    async with scene(config, state(b, a, *others)) as told:
        told.starts(f"[{{binding: maps, type: Synchronization, objects: [{{object: {a}}}, {{object: {b}}}]}}]")
        changed = config_map("a", "5")
        await told.becomes(
            state(c, changed, *others),
            f"""
- {{binding: maps, type: Event, watchEvent: Added, object: {c}}}
- {{binding: maps, type: Event, watchEvent: Modified, object: {changed}}}
- {{binding: maps, type: Event, watchEvent: Deleted, object: {b}}}
""",
        )
        await told.becomes(state(changed), f"[{{binding: maps, type: Event, watchEvent: Deleted, object: {c}}}]")


async def test_filter_results_without_full_objects_are_reported() -> None:
    """A change outside the filter result is not an event. A filter gives null for no result, and a list for several results."""
    config = """
kubernetes:
- {name: maps, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}, keepFullObjectsInMemory: false,
   jqFilter: '.data.v | split(",")[] | tonumber', includeSnapshotsFrom: [maps]}
"""
    one, none = config_map("a", "1"), config_map("b", "")
    async with scene(config, state(one, none)) as told:
        items = "[{filterResult: 1}, {filterResult: null}]"
        told.starts(f"[{{binding: maps, type: Synchronization, objects: {items}, snapshots: {{maps: {items}}}}}]")
        await told.cluster.become(state(one.replace("data: {", "data: {w: other, "), none))
        await told.becomes(
            state(config_map("a", "1,2"), none),
            """
- binding: maps
  type: Event
  watchEvent: Modified
  filterResult: [1, 2]
  snapshots: {maps: [{filterResult: [1, 2]}, {filterResult: null}]}
""",
        )
        await told.becomes(
            state(config_map("a", "1,2")),
            """
- binding: maps
  type: Event
  watchEvent: Deleted
  filterResult: null
  snapshots: {maps: [{filterResult: [1, 2]}]}
""",
        )


async def test_included_snapshots_are_current_when_the_run_begins() -> None:
    """Included snapshots, even the binding's own, are current when the run begins. A snapshot without objects is an empty
    list.
    """
    config = """
kubernetes:
- {name: maps, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}, includeSnapshotsFrom: [secrets, maps]}
- {name: secrets, kind: Secret, nameSelector: {matchNames: [s, t]}, jqFilter: .metadata.name, executeHookOnEvent: []}
"""
    a, s, t = config_map("a", "1"), secret("s"), secret("t")
    seen_s, seen_t = f"{{object: {s}, filterResult: s}}", f"{{object: {t}, filterResult: t}}"
    async with scene(config, state(s)) as told:
        told.starts(
            f"[{{binding: maps, type: Synchronization, objects: [], snapshots: {{maps: [], secrets: [{seen_s}]}}}}]",
            f"[{{binding: secrets, type: Synchronization, objects: [{seen_s}]}}]",
        )
        # Changes of Secrets are not events, but the next run has the changed objects in its snapshots.
        await told.becomes(
            state(t, s, secret("u"), a),
            f"""
- binding: maps
  type: Event
  watchEvent: Added
  object: {a}
  snapshots: {{maps: [{{object: {a}}}], secrets: [{seen_s}, {seen_t}]}}
""",
        )
        await told.becomes(
            state(t),
            f"""
- {{binding: maps, type: Event, watchEvent: Deleted, object: {a}, snapshots: {{maps: [], secrets: [{seen_t}]}}}}
""",
        )


async def test_events_of_a_group_are_reported_as_one_context() -> None:
    """Consecutive events of a group become one context with the group's snapshots. Other bindings get their own contexts."""
    config = """
kubernetes:
- {name: maps, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}, group: all}
- {name: secrets, kind: Secret, group: all, jqFilter: .metadata.name, keepFullObjectsInMemory: false}
- {name: spaces, kind: Namespace, nameSelector: {matchNames: [one]}, jqFilter: .status.phase, includeSnapshotsFrom: [maps]}
"""
    a, b, c, s = config_map("a", "1"), config_map("b", "2"), config_map("c", "3"), secret("s")
    one = """{
      apiVersion: v1, kind: Namespace, metadata: {name: one, labels: {kubernetes.io/metadata.name: one}},
      spec: {finalizers: [kubernetes]}, status: {phase: Active}}"""
    async with scene(config, state(a, s)) as told:
        only_a = f"[{{object: {a}}}]"
        told.starts(
            f"""
- {{binding: secrets, type: Group, groupName: all, snapshots: {{maps: {only_a}, secrets: [{{filterResult: s}}]}}}}
- {{binding: spaces, type: Synchronization, objects: [], snapshots: {{maps: {only_a}}}}}
"""
        )
        all_three = f"[{{object: {a}}}, {{object: {b}}}, {{object: {c}}}]"
        await told.becomes(
            state(a, b, c, s),
            f"""
- {{binding: maps, type: Group, groupName: all, snapshots: {{maps: {all_three}, secrets: [{{filterResult: s}}]}}}}
""",
        )
        await told.becomes(
            state(a, b, c),
            f"[{{binding: secrets, type: Group, groupName: all, snapshots: {{maps: {all_three}, secrets: []}}}}]",
        )
        await told.becomes(
            state(a, b, c, one),
            f"""
- binding: spaces
  type: Event
  watchEvent: Added
  object: {one}
  filterResult: Active
  snapshots: {{maps: {all_three}}}
""",
        )


async def test_schedules_of_the_same_crontab_are_run_with_current_snapshots() -> None:
    """When a crontab ticks, each binding with exactly this crontab gets a context, which contains current snapshots."""
    config = """
schedule:
- {name: plain, crontab: "* * * * *"}
- {name: with-maps, crontab: "* * * * *", includeSnapshotsFrom: [maps]}
- {name: grouped, crontab: "* * * * *", group: all}
- {name: other, crontab: "0 * * * *"}
kubernetes:
- {name: maps, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}, executeHookOnEvent: [],
   executeHookOnSynchronization: false, jqFilter: .data.v, keepFullObjectsInMemory: false}
- {name: secrets, kind: Secret, group: all, executeHookOnEvent: [], executeHookOnSynchronization: false}
"""

    def times(maps: str) -> str:
        return f"""
- {{binding: plain, type: Schedule}}
- {{binding: with-maps, type: Schedule, snapshots: {{maps: {maps}}}}}
- {{binding: grouped, type: Group, groupName: all, snapshots: {{secrets: []}}}}
"""

    async with scene(config, config_map("a", "1")) as told:
        told.starts()
        await told.ticks(_EVERY_MINUTE, times("[{filterResult: '1'}]"))
        await told.cluster.become(state(config_map("a", "2"), config_map("b", "3")))
        await told.ticks(_EVERY_MINUTE, times("[{filterResult: '2'}, {filterResult: '3'}]"))
        await told.ticks("0 * * * *", "[{binding: other, type: Schedule}]")


async def test_hook_without_synchronization_gets_only_later_events() -> None:
    """With `executeHookOnSynchronization: false` there is no first run, and existing objects cause no Added event."""
    config = """
kubernetes:
- {name: maps, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}, executeHookOnSynchronization: false,
   includeSnapshotsFrom: [maps]}
"""
    a, b = config_map("a", "1"), config_map("b", "2")
    async with scene(config, a) as told:
        told.starts()
        await told.becomes(
            state(a, b),
            f"""
- binding: maps
  type: Event
  watchEvent: Added
  object: {b}
  snapshots: {{maps: [{{object: {a}}}, {{object: {b}}}]}}
""",
        )
        await told.becomes(
            b,
            f"[{{binding: maps, type: Event, watchEvent: Deleted, object: {a}, snapshots: {{maps: [{{object: {b}}}]}}}}]",
        )


async def test_custom_resource_is_watched_once_its_definition_exists() -> None:
    """The binding names the kind by its plural, ``widgets``, which is accepted once the definition exists."""
    definition = write_yaml(widget_crd())
    config = """
kubernetes:
- {name: big, kind: widgets, jqFilter: "{size: .spec.size, big: (.spec.size > 5)}"}
"""
    async with scene(config, state(definition, widget("w", 1))) as told:
        told.starts(
            f"""
- binding: big
  type: Synchronization
  objects: [{{object: {widget("w", 1)}, filterResult: {{size: 1, big: false}}}}]
"""
        )
        await told.becomes(
            state(definition, widget("w", 7), widget("v", 12)),
            f"""
- binding: big
  type: Event
  watchEvent: Modified
  object: {widget("w", 7)}
  filterResult: {{size: 7, big: true}}
- binding: big
  type: Event
  watchEvent: Added
  object: {widget("v", 12)}
  filterResult: {{size: 12, big: true}}
""",
        )
        await told.becomes(
            state(definition, widget("v", 12)),
            f"""
- binding: big
  type: Event
  watchEvent: Deleted
  object: {widget("w", 7)}
  filterResult: {{size: 7, big: true}}
""",
        )
