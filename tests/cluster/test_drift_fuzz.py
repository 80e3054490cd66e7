"""Objects that no server should send. The comparison does not break, whatever their managedFields contain."""

import copy
import random
from collections.abc import Iterator
from typing import Final

import pytest

from tests.cluster.support.drift_bench import DEPLOYMENT, MANAGER, yaml_object
from tests.scale import scaled
from wharfinger.cluster.drift.comparison import find_drift, without_ignored
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.objects.applied_objects import applied_of
from wharfinger.cluster.objects.drift_policy import IgnoreRule, read_drift_policy
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json

pytestmark = pytest.mark.unmeasured

ENTRY: Final = (
    '{"manager":"wharfinger","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",'
    '"fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:nodeSelector":{},'
    '"f:containers":{"k:{\\"name\\":\\"web\\"}":{".":{},"f:image":{},"f:args":{},"f:ports":{"k:{\\"containerPort\\":80,'
    '\\"protocol\\":\\"TCP\\"}":{".":{}}}}},"f:volumes":{"v:\\"x\\"":{},"i:0":{}}}}}}}'
)
OTHER: Final = ENTRY.replace("wharfinger", "ed").replace("Apply", "Update")
WORDS: Final = (
    *(
        '"f:spec":',
        '"k:{}":',
        '"v:1":',
        '"i:0":',
        '"i:-1":',
        '".":{}',
        "{}",
        "[]",
        "null",
        "1e400",
        "-0.0",
        '"\\ud800"',
        "true",
    ),
    *(
        '"metadata":',
        '"uid":5',
        '"data":7',
        '"managedFields":',
        '"name":"web"',
        '"deletionTimestamp":',
        "\\",
        '"',
        ":",
        ",",
    ),
)
NAMES: Final = (
    "f:",
    "f:spec",
    "k:{}",
    "k:1",
    'k:{"name":[1]}',
    'k:{"name":"web"}',
    "v:1",
    "v:",
    "i:0",
    "i:9",
    "x",
    ".",
    "",
)
ODD: Final[tuple[JsonValue, ...]] = (
    None,
    5,
    -0.0,
    True,
    "",
    "text",
    {},
    [],
    {"f:a": {}},
    [1, {"name": "web"}],
    {"name": {}},
    "9",
)
POLICY: Final = (
    '{"mode":"correct","ignore":[{"paths":["/spec/replicas","/a~1b/*"],"target":{"kind":"Deploy.*","name":"web-[0-9]+",'
    '"group":"apps","labelSelector":"app in (a,b),!c","annotationSelector":"x/y=z"}},{"paths":[""]}]}'
)


def mutated(text: str, draw: random.Random) -> str:
    """Return the text with a few random pieces removed, repeated, moved or inserted."""
    for _ in range(draw.randint(0, 4)):
        at, end = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        end = min(end, at + draw.choice([1, 3, 12, 60]))
        piece = draw.choice(["", "", draw.choice(WORDS), text[at:end] * 2, text[end : end + 20]])
        text = text[:at] + piece + text[end:]
    return text


def read(text: str) -> JsonValue:
    return decode_json(text.encode("utf-8", "surrogatepass"), max_bytes=100_000, what="fuzz")


def places(value: JsonValue) -> Iterator[tuple[JsonValue, str | int]]:
    """Yield the place of every member and item: its container, and its key or index."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list[tuple[str | int, JsonValue]](pairs):
        yield value, key
        yield from places(inner)


def twisted(value: JsonValue, draw: random.Random) -> JsonValue:
    """Return the value with members removed, renamed or replaced."""
    value = copy.deepcopy(value)
    for _ in range(draw.randint(0, 6)):
        holder, key = draw.choice(list(places(value)) or [(None, "")])
        odd = copy.deepcopy(draw.choice(ODD))
        if isinstance(holder, list) and isinstance(key, int):
            holder[key] = odd
        elif isinstance(holder, dict) and isinstance(key, str):
            inner = holder.pop(key)
            if draw.random() < 0.7:
                renamed = draw.choice([key, *NAMES])
                holder[renamed] = odd if draw.random() < 0.5 else inner
    return value


@pytest.mark.slow
def test_any_object_can_be_compared() -> None:
    draw, drifted, count = random.Random(1), 0, scaled(20_000, 400)  # noqa: S311 - repeatable on purpose
    web = yaml_object(DEPLOYMENT)
    secret: JsonObject = {**web, "apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}}
    entries = [as_object(read(text), "entry") for text in (ENTRY, OTHER)]
    metadata: JsonObject = {**as_object(web["metadata"], "metadata"), "uid": "u", "managedFields": [*entries]}
    whole: JsonObject = {**web, "metadata": metadata, "data": {"a": "Yg=="}}
    for _ in range(count):
        live = twisted(whole, draw)
        assert isinstance(live, dict)
        applied = applied_of(live, MANAGER)
        assert applied.changed_values(live) == []
        assert find_drift(web, applied, live, MANAGER, BUILT_IN) is None
        for desired in (web, secret):
            drift = find_drift(desired, None, live, MANAGER, BUILT_IN)
            drifted += drift is not None
            without_ignored(desired, live, MANAGER, [*BUILT_IN, IgnoreRule(("",))], own_updates=True)
        before = applied_of(whole, MANAGER)
        before.is_marked(live, MANAGER)
        before.is_newer_than(live)
        find_drift(web, before, live, MANAGER, BUILT_IN)
    assert drifted > count // 2


def test_any_policy_is_read_or_refused() -> None:
    draw, taken, refused = random.Random(2), 0, 0  # noqa: S311 - repeatable on purpose
    web = yaml_object(DEPLOYMENT)
    for _ in range(scaled(100_000, 500)):
        try:
            policy = read_drift_policy(read(mutated(POLICY, draw)), "spec.drift")
        except FormatError:
            refused += 1
            continue
        taken += 1
        for rule in policy.ignore:
            rule.matches_object(web)
    assert min(taken, refused) > scaled(100_000, 500) // 20
