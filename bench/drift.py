"""Drift detection: the cost of an event without drift (the usual event), and of a full comparison of an object.

The monitor knows 1,200 objects, as many as two hundred packages with six objects each have. The yardstick is parsing the
event's JSON, which the watch has already done when it calls the monitor.
"""

from collections.abc import Iterator
from typing import Final

import trio

from bench.measure import Ratio, compare, repeated
from tests.cluster.support.drift_bench import DEPLOYMENT, MANAGER, drift_bench, yaml_object
from tests.cluster.support.drift_keeper import OWNER
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.drift.comparison import find_drift
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.drift.monitor import DriftMonitor
from wharfinger.cluster.objects.applied_objects import AppliedObjects
from wharfinger.cluster.objects.desired import DesiredObject, desired_table, identity_of
from wharfinger.cluster.objects.ownership import owned
from wharfinger.cluster.tables.transaction import write
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, as_object, canonical_json, decode_json, encode_json, find_object
from wharfinger.kube.resource import ObjectKey

OBJECTS: Final = 1_200
EVENTS: Final = 2_000


def measure(long: bool) -> Iterator[Ratio]:
    """Measure an event without drift, and a full comparison with and without a baseline (the answer to the last apply)."""
    desired, live, key, client = trio.run(_applied)
    monitor, applied = _monitor(desired, live, key, client)
    text = canonical_json(live)
    parse = repeated(EVENTS, lambda: decode_json(text, max_bytes=1_000_000, what="event"))
    event = f"an event of {len(text) / 1024:.1f} KiB"
    dismiss = repeated(EVENTS, lambda: monitor.changed(key, live))
    yield compare("drift", f"{event}, nothing drifted", "parsing its JSON", dismiss, parse, budget=0.5).per(EVENTS)
    assert monitor.statistics().suspicions == 0
    baseline = applied.get(identity_of(key))
    judge = repeated(EVENTS // 10, lambda: find_drift(desired, baseline, live, MANAGER, BUILT_IN))
    some = repeated(EVENTS // 10, lambda: decode_json(text, max_bytes=1_000_000, what="event"))
    yield compare("drift", f"{event}, compared in full", "parsing its JSON", judge, some, budget=40).per(EVENTS // 10)
    walk = repeated(EVENTS // 10, lambda: find_drift(desired, None, live, MANAGER, BUILT_IN))
    yield compare(
        "drift", f"{event}, if the answer to the last apply is not known", "parsing its JSON", walk, some, budget=40
    ).per(EVENTS // 10)


async def _applied() -> tuple[JsonObject, JsonObject, ObjectKey, ClusterClient]:
    """Return a desired Deployment, the live Deployment after an apply and a status update, its key, and a client."""
    desired = owned(yaml_object(DEPLOYMENT), OWNER)
    async with drift_bench() as bench:
        await bench.apply(desired)
        conditions: list[JsonObject] = [
            {
                "type": kind,
                "status": "True",
                "lastUpdateTime": "2026-01-01T00:00:00Z",
                "reason": "x",
                "message": "y" * 60,
            }
            for kind in ("Available", "Progressing")
        ]
        status: JsonObject = {"status": {"replicas": 2, "readyReplicas": 2, "conditions": [*conditions]}}
        await bench.patch("kube-controller-manager", desired, status, "status")
        return desired, await bench.ours.get(await bench.key(desired)), await bench.key(desired), bench.ours


def _monitor(
    desired: JsonObject, live: JsonObject, key: ObjectKey, client: ClusterClient
) -> tuple[DriftMonitor, AppliedObjects]:
    """Return a monitor of many objects, including the given one, and the baselines of these objects."""
    table, applied = desired_table(), AppliedObjects(MANAGER)
    body = PackedJson(encode_json(desired))
    with write(table) as transaction:
        for number in range(OBJECTS):
            one = ObjectKey(key.resource, key.namespace, key.name if not number else f"{key.name}-{number}")
            transaction.insert(table, DesiredObject(one, OWNER, 0, body, ""))
            named = {**find_object(live, "metadata"), "name": one.name}
            applied.record(identity_of(one), as_object({**live, "metadata": named}, "live"))
    monitor = DriftMonitor(table, applied, client, correct=lambda _: None, told=lambda *_: None, settled=lambda _: True)
    return monitor, applied
