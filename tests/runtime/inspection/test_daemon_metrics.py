"""The metrics of a running daemon: a scraper reads the actual state, and each metric is documented and bounded."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import trio

from tests.exposition import Family, parse
from tests.programs import ROOT
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from wharfinger.formats.exposition import exposition
from wharfinger.hooks.metrics.hook_metrics import HOOK_METRICS, HookMetrics
from wharfinger.hooks.metrics.operations import MAX_BUCKETS, read_metric_operations
from wharfinger.hooks.metrics.run_metrics import MAX_PACKAGE_ROWS, OTHERS
from wharfinger.hooks.metrics.run_metrics import MAX_ROWS as RUN_ROWS
from wharfinger.hooks.metrics.store import MetricLimits
from wharfinger.hooks.watching.filters import Filters
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.store.store import Store
from wharfinger.pools.interpreters.warm_start import MAX_INTERPRETERS
from wharfinger.runtime.inspection.daemon_metrics import DAEMON_METRICS, MAX_ROWS, daemon_lines, summed
from wharfinger.runtime.inspection.pod_metrics import POD_METRICS
from wharfinger.runtime.inspection.recorder_metrics import RECORDER_METRICS
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.inspection.warm_metrics import WARM_METRICS
from wharfinger.runtime.inspection.watch_metrics import WATCH_METRICS

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
WATCHING = """\
configVersion: v1
kubernetes:
- {name: maps, kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, namespace: {nameSelector: {matchNames: [prod]}}}
- {name: maps, kind: ConfigMap, labelSelector: {matchLabels: {a: c}}, nameSelector: {matchNames: [one, two]}}
"""


async def scraped(world: World | None = None) -> dict[str, Family]:
    """Return the metrics as a scraper reads them, and check that each of them is described."""
    inspector = RuntimeInspector(cluster="x", started=STARTED, runtime=world.runtime if world else None)
    found = parse(exposition(daemon_lines(await inspector.daemon(), inspector.runtime)))
    described = {each.name: each for each in DAEMON_METRICS}
    for name, family in found.items():
        assert (family.kind, family.help) == (described[name].kind, described[name].help)
        for _, labels in family.samples:
            assert {label for label, _ in labels} == set(described[name].labels)
    return found


def test_metric_names_follow_the_conventions() -> None:
    assert len({each.name for each in DAEMON_METRICS}) == len(DAEMON_METRICS)
    for each in DAEMON_METRICS:
        assert each.name.startswith("wharfinger_")
        assert each.help.endswith(".")
        assert each.name.endswith("_total") == (each.kind == "counter"), each.name


def test_exactly_the_existing_metrics_are_documented() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(wharfinger_[a-z_]+)` \| ([a-z]+) \| ([a-z_, ]*)\|", text, re.MULTILINE)
    documented = {name: (kind, labels.strip()) for name, kind, labels in rows}
    registered = {each.name: (each.kind, ", ".join(each.labels)) for each in (*DAEMON_METRICS, *HOOK_METRICS)}
    assert documented == registered
    assert len(rows) == len(documented)
    (said,) = re.findall(r"have these buckets, in seconds: (.*)\. The labels `module`", text.replace("\n", " "))
    for each in HOOK_METRICS:
        assert each.buckets == (tuple(map(float, said.split(", "))) if each.kind == "histogram" else ())


FIXED = {
    *(
        "state",
        "kind",
        "operation",
        "source",
        "start",
        "outcome",
        "client",
    ),  # their values are fixed words of the daemon
    "version",  # the daemon's version; the versions of packages are in a bounded family
}
"""Labels with few values, independent of what users install."""
LIMITED = {
    "wharfinger_package_info": MAX_ROWS,
    "wharfinger_tasks_queue_length": MAX_ROWS,
    "wharfinger_kube_snapshot_objects": MAX_ROWS,
    "wharfinger_kube_events_total": MAX_ROWS,
    "wharfinger_kube_events_dropped_total": MAX_ROWS,
    "wharfinger_kube_watch_subscribers": MAX_ROWS,
    "wharfinger_kube_watch_errors_total": MAX_ROWS,
    "wharfinger_watch_last_heard_timestamp_seconds": 1_000,
    **dict.fromkeys((each.name for each in POD_METRICS), 200),
    **dict.fromkeys((each.name for each in HOOK_METRICS), RUN_ROWS),
}
"""The metric families with labels whose values users choose, each with its largest number of rows. This limit is tested where
the family is tested.
"""


def test_every_label_is_bounded() -> None:
    """Each metric family with a label whose values users choose has a limit. The labels for pools of workers and for
    interpreters need none, because they have few values.
    """
    assert MAX_INTERPRETERS == 4
    few = {"pool", "interpreter"}
    growing = {each.name for each in (*DAEMON_METRICS, *HOOK_METRICS) if set(each.labels) - FIXED - few}
    assert growing <= LIMITED.keys()


def test_the_documented_limits_are_the_actual_ones() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    limits = MetricLimits()
    for said in (
        f"| {limits.package_samples:,} | {limits.samples:,} |",
        f"| {limits.package_bytes // 2**20} MiB | {limits.bytes // 2**20} MiB |",
        f"| labels of one metric name | {limits.labels} |",
        f"| characters of a name (of a metric, a label, a group) | {limits.name} |",
        f"| characters of a label's value | {limits.value:,} |",
        f"| buckets of a histogram | {MAX_BUCKETS} |",
        f"more than {MAX_ROWS:,} series of one name",
        f"{RUN_ROWS} combinations in total, and {MAX_PACKAGE_ROWS} of one package",
    ):
        assert said in text.replace("\n", " "), said


async def test_process_metrics_exist_before_the_runtime_has_started() -> None:
    found = await scraped()
    assert set(found) == {
        "wharfinger_build_info",
        "wharfinger_start_time_seconds",
        "wharfinger_ready",
        "wharfinger_leads",
        "wharfinger_process_cpu_seconds_total",
        "wharfinger_process_resident_memory_bytes",
        "wharfinger_process_open_fds",
    }
    assert found["wharfinger_ready"].value() == 0
    assert found["wharfinger_start_time_seconds"].value() == STARTED.timestamp()
    assert found["wharfinger_process_cpu_seconds_total"].value() > 0
    assert found["wharfinger_process_resident_memory_bytes"].value() > 1024 * 1024
    assert found["wharfinger_process_open_fds"].value() >= 3


async def test_all_metrics_of_a_working_daemon_have_their_values(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for name, label, namespace in (("a", "b", "prod"), ("one", "c", "prod"), ("two", "c", "prod")):
            await world.client.create(config_map(name, {"a": label}, namespace=namespace))
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": bash(WATCHING, "")}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.create("prod", "broken", package="no-such")
        await world.until_state("prod", "app", "Ready")
        await world.until_state("prod", "broken", "Failed")
        await world.runtime.queues.wait_idle("prod.app")
        found = await scraped(world)
        elsewhere = (*WARM_METRICS, *POD_METRICS, *RECORDER_METRICS, *WATCH_METRICS)
        # these options are not used here: --warm-hooks, --worker-pools, a recorder, and a client
        assert set(found) == {each.name for each in DAEMON_METRICS if each not in elsewhere}
        assert found["wharfinger_ready"].value() == 1
        assert found["wharfinger_packages"].value(kind="Application", state="Ready") == 1
        assert found["wharfinger_packages"].value(kind="Application", state="Failed") == 1
        app = {"module": "app", "namespace": "prod", "kind": "Application", "package": "hooked", "version": "1.0.0"}
        assert found["wharfinger_package_info"].value(**app, state="Ready") == 1
        assert found["wharfinger_tasks_queue_length"].value(queue="prod.broken") == 3
        assert found["wharfinger_tasks"].value(state="backing_off") == 1
        assert found["wharfinger_tasks"].value(state="waiting") == 2
        assert found["wharfinger_tasks_retired_total"].value() > 5
        assert found["wharfinger_task_failures_total"].value() >= 1
        assert found["wharfinger_slots_limit"].value(kind="renders") == 3
        assert found["wharfinger_slots_used"].value(kind="work") == 0
        binding = {"module": "app", "namespace": "prod", "hook": "hooks/a.sh", "binding": "maps", "queue": "main"}
        objects = found["wharfinger_kube_snapshot_objects"]
        assert objects.value(**binding) == 3, "the sum over both bindings of that name, and over all their watches"
        assert len(objects.samples) == 1
        assert found["wharfinger_kube_events_dropped_total"].value(**binding) == 0
        watches = found["wharfinger_kube_watch_subscribers"]
        assert watches.value(kind="ConfigMap", namespace="prod", label_selector="a=b") >= 1
        assert sum(found["wharfinger_kube_watch_errors_total"].samples.values()) == 0
        assert found["wharfinger_pool_workers"].samples.keys() == {
            ("wharfinger_pool_workers", (("pool", "cel"),)),
            ("wharfinger_pool_workers", (("pool", "jq"),)),
        }
        assert found["wharfinger_store_entries"].value(state="locked") == 0


async def test_components_without_statistics_are_omitted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        nobody = object()
        world.runtime.packages.tools = replace(
            world.runtime.tools,
            filters=cast("Filters", nobody),
            rules=cast("Rules", nobody),
            store=cast("Store", nobody),
        )
        found = await scraped(world)
        assert not [name for name in found if "pool" in name or "store" in name]


async def test_writing_the_metrics_yields_to_other_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.runtime.inspection.snapshots.LINES_AT_ONCE", 10)
    async with open_world(tmp_path) as world:
        await world.create("prod", "app", package="no-such")
        await world.until_state("prod", "app", "Failed")
        inspector = RuntimeInspector(cluster="x", started=STARTED, runtime=world.runtime)
        seen: list[str] = []

        async def clear() -> None:
            world.runtime.instances.pop("prod.app")
            seen.append("cleared")

        instances = dict(world.runtime.instances)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clear)
            found = parse(await inspector.metrics())
            assert seen == ["cleared"]
        world.runtime.instances.update(instances)
        assert found["wharfinger_packages"].value(kind="Application", state="Failed") == 1


async def test_the_inspector_also_returns_metrics_of_hooks() -> None:
    metrics = HookMetrics()
    metrics.apply("ingress", "a.sh", read_metric_operations([{"name": "a", "set": 1}], hook="a.sh"))
    inspector = RuntimeInspector(cluster="x", started=STARTED, measured=metrics)
    assert parse(await inspector.metrics())["wharfinger_hook_metric_series"].value() == 1
    assert await inspector.hook_metrics() == '# TYPE a gauge\na{hook="a.sh",module="ingress"} 1\n'


def test_bounded_rows_have_the_same_sum() -> None:
    rows = [((str(number % 7), "x"), number) for number in range(21)]
    found = dict(summed(rows, (OTHERS, ""), most=3))
    assert list(found) == [("0", "x"), ("1", "x"), ("2", "x"), (OTHERS, "")]
    assert found["1", "x"] == 1 + 8 + 15
    assert sum(found.values()) == sum(range(21))
    assert dict(summed([(("a\udcff",), 1)], (OTHERS,))) == {("a\\udcff",): 1}
