"""Objects as no server should send them: whatever is in the book of managers, judging drift never breaks."""

import random
from typing import Final

import pytest

from tests.cluster.drift_bench import DEPLOYMENT, MANAGER, yaml_object
from tests.scale import scaled
from wharfinger.cluster.applied_objects import applied_of
from wharfinger.cluster.drift import find_drift, without_ignored
from wharfinger.cluster.drift_ignored import BUILT_IN
from wharfinger.cluster.drift_policy import IgnoreRule, read_drift_policy
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonError, JsonObject, JsonValue, canonical_json, decode_json

pytestmark = pytest.mark.unmeasured

ENTRY: Final = (
    '{"manager":"wharfinger","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",'
    '"fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:nodeSelector":{},'
    '"f:containers":{"k:{\\"name\\":\\"web\\"}":{".":{},"f:image":{},"f:args":{},"f:ports":{"k:{\\"containerPort\\":80,'
    '\\"protocol\\":\\"TCP\\"}":{".":{}}}}},"f:volumes":{"v:\\"x\\"":{},"i:0":{}}}}}}}'
)
OTHER: Final = ENTRY.replace("wharfinger", "ed").replace("Apply", "Update")
SECRET: Final = '"kind":"Secret","stringData":{"a":"b"}'
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
POLICY: Final = (
    '{"mode":"correct","ignore":[{"paths":["/spec/replicas","/a~1b/*"],"target":{"kind":"Deploy.*","name":"web-[0-9]+",'
    '"group":"apps","labelSelector":"app in (a,b),!c","annotationSelector":"x/y=z"}},{"paths":[""]}]}'
)


def mutated(text: str, draw: random.Random) -> str:
    """Most of the text, with pieces cut, repeated, moved and put in."""
    for _ in range(draw.randint(0, 4)):
        at, end = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        end = min(end, at + draw.choice([1, 3, 12, 60]))
        piece = draw.choice(["", "", draw.choice(WORDS), text[at:end] * 2, text[end : end + 20]])
        text = text[:at] + piece + text[end:]
    return text


def read(text: str) -> JsonValue:
    return decode_json(text.encode("utf-8", "surrogatepass"), max_bytes=100_000, what="fuzz")


def test_no_object_breaks_the_judging_of_drift() -> None:
    draw, judged, drifted = random.Random(1), 0, 0  # noqa: S311 - repeatable on purpose
    web = yaml_object(DEPLOYMENT)
    plain = canonical_json(web).decode()
    secret: JsonObject = {**web, "apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}}
    for _ in range(scaled(100_000, 2_000)):
        entries = ",".join(mutated(one, draw) for one in (ENTRY, OTHER))
        text = mutated(plain.replace('"metadata":{', f'"metadata":{{"uid":"u","managedFields":[{entries}],', 1), draw)
        try:
            live = read(text)
        except JsonError:
            continue
        if not isinstance(live, dict):
            continue
        judged += 1
        applied = applied_of(live, MANAGER)
        assert find_drift(web, applied, live, MANAGER, BUILT_IN) is None or applied.changed_values(live) == []
        for desired in (web, secret):
            drift = find_drift(desired, None, live, MANAGER, BUILT_IN)
            drifted += drift is not None
            assert without_ignored(desired, live, MANAGER, [*BUILT_IN, IgnoreRule(("",))], own_updates=True)
    assert min(judged, drifted) > scaled(100_000, 2_000) // 20


def test_no_policy_breaks_its_reader() -> None:
    draw, taken, refused = random.Random(2), 0, 0  # noqa: S311 - repeatable on purpose
    web = yaml_object(DEPLOYMENT)
    for _ in range(scaled(100_000, 2_000)):
        try:
            policy = read_drift_policy(read(mutated(POLICY, draw)), "spec.drift")
        except FormatError:
            refused += 1
            continue
        taken += 1
        for rule in policy.ignore:
            rule.takes_object(web)
    assert min(taken, refused) > scaled(100_000, 2_000) // 20
