"""Mutated configurations: reading them raises no other exception than HookConfigError."""

import json
import random

from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.config.problems import HookConfigError

# The documents that are mutated. Parts of one document are also put into another.
SEEDS: list[JsonObject] = [
    {
        "configVersion": "v1",
        "onStartup": 1,
        "settings": {"executionMinInterval": "5s", "executionBurst": 2},
        "schedule": [{"name": "s", "crontab": "*/5 * * * *", "group": "g", "includeSnapshotsFrom": ["pods"]}],
        "kubernetes": [
            {
                "name": "pods",
                "kind": "Pod",
                "apiVersion": "v1",
                "watchEvent": ["Added"],
                "queue": "q",
                "group": "g",
                "nameSelector": {"matchNames": ["a"]},
                "labelSelector": {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}],
                },
                "fieldSelector": {"matchExpressions": [{"field": "a.b", "operator": "=", "value": "c"}]},
                "namespace": {"labelSelector": {"matchLabels": {"a": "b"}}, "nameSelector": {"matchNames": ["n"]}},
                "jqFilter": ".a",
            }
        ],
    },
    {
        "configVersion": "v1",
        "beforeAll": 1,
        "kubernetesValidating": [
            {
                "name": "a.b.c",
                "rules": [
                    {
                        "apiGroups": ["*"],
                        "apiVersions": ["v1"],
                        "resources": ["*/x", "pods", "pods/*"],
                        "operations": ["CREATE"],
                        "scope": "*",
                    }
                ],
                "namespace": {"labelSelector": {"matchLabels": {"a": "b"}}},
                "matchConditions": [{"name": "x", "expression": "true"}],
                "failurePolicy": "Ignore",
                "timeoutSeconds": 5,
            }
        ],
        "kubernetesMutating": [{"name": "m", "labelSelector": {"matchLabels": {"a": "b"}}, "sideEffects": "None"}],
        "kubernetesCustomResourceConversion": [
            {"name": "c", "crdName": "x.y", "conversions": [{"fromVersion": "v1", "toVersion": "a/v2"}], "group": "g"}
        ],
        "kubernetes": [{"kind": "Pod", "resynchronizationPeriod": "1h", "group": "g"}],
    },
    {
        "onStartup": 1,
        "beforeHelm": 2,
        "schedule": [{"crontab": "@hourly"}],
        "onKubernetesEvent": [
            {
                "kind": "pod",
                "event": ["add"],
                "selector": {"matchLabels": {"a": "b"}},
                "objectName": "x",
                "namespaceSelector": {"matchNames": ["n"], "any": False},
            }
        ],
    },
]
SCALARS: list[JsonValue] = [
    None,
    True,
    False,
    0,
    -1,
    2**70,
    1.5,
    1e300,
    "",
    "x",
    "?",
    "v1",
    "é\x00",
    "@every 1s",
    [],
    {},
]


Path = tuple[str | int, ...]


def places(value: JsonValue, path: Path = ()) -> list[Path]:
    """Return the paths of all values in the document."""
    if isinstance(value, dict):
        inner = [place for key, item in value.items() for place in places(item, (*path, key))]
    elif isinstance(value, list):
        inner = [place for index, item in enumerate(value) for place in places(item, (*path, index))]
    else:
        inner = []
    return [path, *inner]


def put(document: JsonValue, path: Path, value: JsonValue) -> JsonValue:
    """Return the document with another value at the path."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(document, dict) and isinstance(step, str):
        return {**document, step: put(document.get(step), rest, value)}
    if isinstance(document, list) and isinstance(step, int):
        return [*document[:step], put(document[step], rest, value), *document[step + 1 :]]
    return document


def mutated(draw: random.Random) -> bytes:
    """Return a document in which values may be replaced by others, keys may be misplaced, and bytes may be overwritten."""
    document: JsonValue = draw.choice(SEEDS)
    for _ in range(draw.choice([0, 1, 1, 2, 3, 5])):
        donor = draw.choice(SEEDS)
        place, graft = draw.choice(places(document)), draw.choice(places(donor))
        value = draw.choice([draw.choice(SCALARS), find(donor, *graft)])
        if place and draw.random() < 0.3:
            place = (*place[:-1], str(graft[-1] if graft else "x"))
        if place or draw.random() < 0.1:
            document = put(document, place, value)
    text = bytearray(json.dumps(document, ensure_ascii=draw.random() < 0.5).encode())
    if draw.random() < 0.3:
        for _ in range(draw.choice([1, 2, 8])):
            text[draw.randrange(len(text))] = draw.randrange(256)
    return bytes(text)


def test_mutated_configurations_raise_only_the_declared_error() -> None:
    draw = random.Random(19)  # noqa: S311 - repeatable on purpose
    taken = refusals = 0
    for _ in range(scaled(100_000, 800)):
        document = mutated(draw)
        try:
            config = read_hook_config(document, hook="h", scope=draw.choice([*HookScope]))
        except HookConfigError as error:
            refusals += 1
            assert error.problems, document
        else:
            taken += 1
            assert config.burst >= 1, document
    assert min(taken, refusals) > scaled(100_000, 800) // 20
