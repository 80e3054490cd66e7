"""Random bindings, items and occurrences: the written contexts always have the JSON form that the hook contract requires."""

import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace

from tests.hooks.support.configs import PODS
from tests.scale import scaled
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.hooks.config.bindings import KubernetesBinding, ScheduleBinding, WatchVerb
from wharfinger.hooks.watching.context_file import Context, write_contexts
from wharfinger.hooks.watching.contexts import combined, event, helm_binding, on_startup, schedule, synchronization
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent
from wharfinger.kube.resource import ObjectKey, ResourceType

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
TEXTS = ["", "a", "pods", "é", "\x00", "\u2028", "<&>", '"\\', "🚢", "x" * 300, "snapshots", "groupName"]
GROUPS = ["", "", "g", "h"]
SCALARS: list[JsonValue] = [None, True, 0, -1, 2**70, 1.5, 1e300, *TEXTS]


def value(draw: random.Random, depth: int = 0) -> JsonValue:
    kind = draw.random()
    if depth > 3 or kind < 0.5:
        return draw.choice(SCALARS)
    if kind < 0.7:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    return {draw.choice(TEXTS): value(draw, depth + 1) for _ in range(draw.randrange(4))}


def packed(draw: random.Random, what: JsonValue) -> PackedJson:
    """Return the JSON text of a value, with or without escapes and indentation."""
    return PackedJson(json.dumps(what, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 1])).encode())


def item(draw: random.Random) -> tuple[Item, JsonObject]:
    """Return an item and the JSON that a hook must read for it."""
    fields: JsonObject = {name: value(draw) for name in ("object", "filterResult") if draw.random() < 0.6}
    made = {name: packed(draw, what) for name, what in fields.items()}
    return Item(made.get("object"), made.get("filterResult")), fields


def items(draw: random.Random) -> tuple[list[Item], list[JsonValue]]:
    made = [item(draw) for _ in range(draw.choice([0, 1, 3]))]
    return [one for one, _ in made], [fields for _, fields in made]


class Making:
    """A generator of the contexts of one run and of their expected form. All contexts have the same snapshots."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        made = {name: items(draw) for name in draw.sample(TEXTS, 3)}
        self.snapshots = {name: kept for name, (kept, _) in made.items()}
        self.read: dict[str, JsonValue] = {name: fields for name, (_, fields) in made.items()}

    def one(self) -> tuple[Context, JsonObject]:
        names = tuple(self.draw.sample(TEXTS, self.draw.randrange(4)))
        name, group, legacy = self.draw.choice(TEXTS), self.draw.choice(GROUPS), self.draw.random() < 0.1
        match self.draw.randrange(5):
            case 0:
                return on_startup(), {"binding": "onStartup"}
            case 1:
                return helm_binding(name, self.snapshots), {"binding": name, "snapshots": dict(self.read)}
            case 2:
                made = ScheduleBinding(name, "@hourly", False, "main", group, names, legacy)
                expected: JsonObject = {"binding": name}
                expected = expected if legacy else self._expected(made, {"type": "Schedule"})
                return schedule(made, self.snapshots), expected
            case 3:
                binding = self._binding(name, group, names, legacy=False)
                kept, fields = items(self.draw)
                return synchronization(binding, kept, self.snapshots), self._expected(
                    binding, {"type": "Synchronization", "objects": fields}
                )
            case _:
                return self._event(self._binding(name, group, names, legacy=legacy))

    def _event(self, binding: KubernetesBinding) -> tuple[Context, JsonObject]:
        kept, fields = item(self.draw)
        verb, key = self.draw.choice(list(WatchVerb)), ObjectKey(POD, self.draw.choice(TEXTS), self.draw.choice(TEXTS))
        context = event(binding, MonitorEvent(verb, key, kept), self.snapshots)
        if binding.legacy:
            word = {"Added": "add", "Modified": "update", "Deleted": "delete"}[verb.value]
            names: JsonObject = {"resourceNamespace": key.namespace, "resourceKind": "Pod", "resourceName": key.name}
            return context, {"binding": binding.name, "resourceEvent": word, **names}
        return context, self._expected(binding, {"type": "Event", "watchEvent": verb.value, **fields})

    def _binding(self, name: str, group: str, names: tuple[str, ...], *, legacy: bool) -> KubernetesBinding:
        return replace(PODS, name=name, group=group, include_snapshots_from=names, legacy=legacy)

    def _expected(self, binding: KubernetesBinding | ScheduleBinding, ungrouped: JsonObject) -> JsonObject:
        included: JsonObject = {name: self.read.get(name, []) for name in binding.include_snapshots_from}
        if binding.group:
            return {"binding": binding.name, "type": "Group", "groupName": binding.group, "snapshots": included}
        return {"binding": binding.name, **ungrouped, **({"snapshots": included} if included else {})}


def compacted(expected: Sequence[JsonObject]) -> list[JsonObject]:
    """Combine contexts by the rule of the hook contract: drop a context if the next one has the same non-empty group."""
    groups = [find(one, "groupName") if find(one, "type") == "Group" else None for one in expected]
    return [
        one for one, group, following in zip(expected, groups, [*groups[1:], None], strict=True)
        if group is None or group != following
    ]  # fmt: skip


def test_written_contexts_equal_the_contract_form() -> None:
    draw = random.Random(23)  # noqa: S311 - repeatable on purpose
    dropped = 0
    for _ in range(scaled(100_000, 800)):
        making = Making(draw)
        made = [making.one() for _ in range(draw.choice([1, 1, 2, 4]))]
        file = io.BytesIO()
        write_contexts(file, combined([context for context, _ in made]))
        expected = compacted([one for _, one in made])
        assert json.loads(file.getvalue()) == expected
        dropped += len(made) - len(expected)
    assert dropped
