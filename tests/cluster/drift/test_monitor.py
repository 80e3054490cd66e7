"""The drift monitor on real watches: its reports, its corrections, and the number of its requests."""

from typing import Final

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import widget_crd
from tests.cluster.support.drift_bench import DEPLOYMENT, MANAGER, yaml_object
from tests.cluster.support.drift_keeper import CONFIG, EDITED, GONE, OWNER, drift_keeper, edit, value_of
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.objects.desired import identity_of
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy, IgnoreRule
from wharfinger.cluster.objects.ownership import RELEASE_LABEL
from wharfinger.formats.json.value import JsonObject, find

WARN: Final = DriftPolicy(DriftMode.WARN)
DEPLOYMENT_COUNTS: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


@pytest.fixture
def config() -> JsonObject:
    return yaml_object(CONFIG)


async def test_a_field_changed_by_another_process_is_corrected(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config)
        keeper.sent.requests.clear()

        await edit(keeper, config)

        assert await value_of(keeper, config) == "x"
        assert keeper.tellings == [EDITED, ""]
        assert keeper.sent.requests == ["GET c", "PATCH c"], "read once to be sure, written once"
        assert keeper.monitor.drifts(OWNER) == ()
        await trio.sleep(3600)
        assert len(keeper.sent.requests) == 2


async def test_ordinary_events_cause_no_requests(autojump_clock: MockClock) -> None:
    web = yaml_object(DEPLOYMENT)
    async with drift_keeper() as keeper:
        await keeper.put(web)
        keeper.sent.requests.clear()
        for number in range(1, 6):
            pods: JsonObject = dict.fromkeys(DEPLOYMENT_COUNTS, number)
            await keeper.bench.patch("kube-controller-manager", web, {"status": pods}, "status")
            await keeper.bench.patch("kubectl-annotate", web, {"metadata": {"annotations": {"n": str(number)}}})
            await keeper.bench.patch("kube-controller-manager", web, {"spec": {"replicas": number}}, "scale")
            await keeper.bench.patch(MANAGER, web, {"metadata": {"labels": {"hook": str(number)}}})
            await trio.sleep(1)

        statistics = keeper.monitor.statistics()
        assert (keeper.sent.requests, keeper.tellings) == ([], [])
        assert (statistics.suspicions, statistics.confirmed, statistics.corrections) == (0, 0, 0)


async def test_a_correction_leaves_fields_ignored_by_a_rule(autojump_clock: MockClock) -> None:
    web = yaml_object(DEPLOYMENT)
    async with drift_keeper() as keeper:
        await keeper.put(web)
        await keeper.bench.patch("keda-operator", web, {"spec": {"replicas": 7}}, "scale")
        await keeper.bench.patch("ed", web, {"metadata": {"labels": {"app": "theirs"}}})
        await trio.sleep(1)

        live = await keeper.bench.ours.get(await keeper.bench.key(web))
        assert (find(live, "spec", "replicas"), find(live, "metadata", "labels", "app")) == (7, "web")
        assert len(keeper.corrected) == 1
        await keeper.bench.patch("keda-operator", web, {"spec": {"replicas": 8}}, "scale")
        await trio.sleep(1)
        assert len(keeper.corrected) == 1


async def test_a_deleted_object_is_restored(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        await (await keeper.bench.by("ed")).delete(key)
        await trio.sleep(1)

        assert keeper.tellings == [GONE, ""]
        assert await value_of(keeper, config) == "x"


async def test_an_object_that_lost_its_release_label_gets_it_back(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    """A watch with a label selector reports an object without the label as deleted, although the object still exists."""
    async with drift_keeper() as keeper:
        await keeper.put(config)
        await keeper.bench.patch("ed", config, {"metadata": {"labels": {RELEASE_LABEL: None}}})
        await trio.sleep(1)

        assert keeper.tellings == ["ConfigMap prod/c: /metadata/labels/wharfinger.dev~1release", ""]
        live = await keeper.bench.ours.get(await keeper.bench.key(config))
        assert find(live, "metadata", "labels", RELEASE_LABEL) == "web"


async def test_drift_in_warn_mode_is_reported_and_not_corrected(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config, WARN)
        keeper.sent.requests.clear()

        await edit(keeper, config)
        await edit(keeper, config, "more")
        await keeper.bench.patch("ed", config, {"data": {"b": "theirs", "c": "added"}})
        await trio.sleep(1)

        assert keeper.tellings == [EDITED, "ConfigMap prod/c: /data/a by ed, /data/b by ed"]
        assert not [request for request in keeper.sent.requests if not request.startswith("GET")]
        assert [str(drift) for drift in keeper.monitor.drifts(OWNER)] == keeper.tellings[-1:]
        assert keeper.monitor.statistics().open == 1

        await keeper.reapply(identity_of(await keeper.bench.key(config)))
        assert keeper.tellings[-1] == ""


async def test_a_stopping_daemon_reports_drift_without_correcting_it(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config)
        keeper.monitor.stop_correcting()
        await edit(keeper, config)
        await trio.sleep(3600)
        assert await value_of(keeper, config) == "theirs"
        assert keeper.tellings == [EDITED]
        assert keeper.monitor.statistics().corrections == 0


async def test_drift_in_off_mode_is_neither_read_nor_reported(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        key = await keeper.put(config, DriftPolicy(DriftMode.OFF))
        keeper.sent.requests.clear()
        await edit(keeper, config)
        await (await keeper.bench.by("ed")).delete(key)
        await trio.sleep(1)

        assert (keeper.tellings, keeper.sent.requests) == ([], [])


async def test_a_field_ignored_by_a_rule_of_the_release_is_not_corrected(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config, DriftPolicy(ignore=(IgnoreRule(("/data/a",), kind="ConfigMap"),)))
        await edit(keeper, config)

        assert (keeper.tellings, await value_of(keeper, config)) == ([], "theirs")


async def test_an_event_older_than_our_write_is_ignored(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper(run=False) as keeper:
        key = await keeper.put(config)
        await keeper.bench.patch("ed", config, {"data": {"a": "theirs"}})
        stale = await keeper.bench.ours.get(key)
        await keeper.reapply(identity_of(key))
        await wait_all_tasks_blocked()
        before = keeper.monitor.statistics().suspicions

        keeper.monitor.changed(key, stale)

        assert keeper.monitor.statistics().suspicions == before


async def test_our_own_write_seen_before_its_answer_is_not_drift(autojump_clock: MockClock, config: JsonObject) -> None:
    """The watch shows our write before its answer arrives. A field that this write removes is not taken for drift."""
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        smaller: JsonObject = {**config, "data": {"a": "x"}}
        keeper.insert(key, smaller)
        keeper.unsettled.add(identity_of(key))
        entry = keeper.table.snapshot().get(identity_of(key))
        assert entry is not None
        keeper.sent.requests.clear()
        answer = await keeper.client.apply(entry.row.object(), field_manager=MANAGER, force=True)
        await trio.sleep(0.05)
        assert keeper.monitor.statistics().suspicions == 1

        keeper.applied.record(identity_of(key), answer)
        keeper.unsettled.discard(identity_of(key))
        await trio.sleep(10)

        assert (keeper.tellings, keeper.reads()) == ([], [])


async def test_a_change_right_after_our_own_write_is_found(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        identity = identity_of(key)
        keeper.unsettled.add(identity)
        answer = await keeper.client.apply(yaml_object(CONFIG), field_manager=MANAGER, force=True)
        await keeper.bench.patch("ed", config, {"data": {"b": "theirs"}})
        await trio.sleep(0.05)
        keeper.applied.record(identity, answer)
        await trio.sleep(5)
        assert keeper.tellings == [], "the row is not settled"

        keeper.unsettled.discard(identity)
        await trio.sleep(30)

        assert keeper.tellings == ["ConfigMap prod/c: /data/b by ed", ""]


async def test_an_object_recreated_under_the_same_name_is_corrected(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        keeper.corrects = False
        keeper.unsettled.add(identity_of(key))
        other = await keeper.bench.by("ed")
        await other.delete(key)
        await other.create(config)
        keeper.unsettled.clear()
        await trio.sleep(1)

        assert len(keeper.corrected) == 1
        assert keeper.told[0][0].writers == ("ed",)


async def test_a_drift_is_corrected_once_however_often_the_object_changes(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config)
        keeper.corrects = False
        for value in ("one", "two", "three"):
            await edit(keeper, config, value)
        keeper.unsettled.clear()
        await edit(keeper, config, "four")

        assert (len(keeper.corrected), keeper.tellings) == (1, [EDITED])


async def test_all_objects_are_compared_once_after_a_restart(autojump_clock: MockClock, config: JsonObject) -> None:
    """Changes during the downtime are found although no baseline exists. The states of unchanged objects become baselines."""
    other = yaml_object(CONFIG.replace("name: c", "name: d"))
    async with drift_keeper(run=False) as keeper:
        key, untouched = await keeper.put(config), await keeper.put(other)
        keeper.remove(key)
        keeper.remove(untouched)
        await keeper.bench.patch("ed", config, {"data": {"a": "theirs"}})
        await wait_all_tasks_blocked()
        initializer = keeper.table.initializer("records")
        keeper.nursery.start_soon(keeper.monitor.run)
        await trio.sleep(5)
        keeper.sent.requests.clear()
        keeper.insert(key, config)
        keeper.insert(untouched, other)
        await trio.sleep(5)
        assert keeper.sent.requests == []

        initializer.done()
        await trio.sleep(1)

        assert keeper.tellings == [EDITED, ""]
        assert keeper.sent.requests == ["GET configmaps", "GET c", "PATCH c"]
        assert keeper.applied.get(identity_of(untouched)) is not None
        assert keeper.monitor.statistics().comparisons == 1


async def test_periodic_comparison_finds_drift_of_a_lost_event(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper(full_s=600) as keeper:
        key = keeper.insert(await keeper.bench.key(config), config)
        await keeper.reapply(identity_of(key))
        await trio.sleep(1)
        await keeper.bench.patch("ed", config, {"data": {"a": "theirs"}})  # no watch reports this
        await trio.sleep(500)
        assert await value_of(keeper, config) == "theirs"
        await trio.sleep(101)
        assert await value_of(keeper, config) == "x"

        await (await keeper.bench.by("ed")).delete(key)
        await trio.sleep(601)
        assert keeper.tellings == [EDITED, "", GONE, ""]


async def test_periodic_comparison_finds_a_change_under_our_own_name(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    """The managedFields stay the same, so the watch event does not show the change. Only a full comparison does."""
    async with drift_keeper(full_s=600) as keeper:
        key = await keeper.put(config)
        live = await keeper.bench.ours.get(key)
        hidden: JsonObject = {**live, "data": {"a": "webhook", "b": "z"}}
        keeper.monitor.changed(key, hidden)
        assert keeper.monitor.statistics().suspicions == 0

        answer = await keeper.client.apply({**config, "data": {"a": "theirs", "b": "z"}}, field_manager=MANAGER)
        assert answer
        await trio.sleep(601)
        assert await value_of(keeper, config) == "x"


async def test_a_failed_comparison_reports_no_drift(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper(full_s=600) as keeper:
        key = await keeper.put(config)
        failed = httpx.ConnectError("down")
        keeper.sent.fault = lambda request: failed if request.url.path.endswith("/configmaps") else None
        await trio.sleep(601)
        assert (keeper.monitor.statistics().failures, keeper.tellings) == (1, [])

        keeper.sent.fault = lambda request: failed if request.url.path.endswith("/c") else None
        await keeper.bench.patch("ed", config, {"data": {"a": "theirs"}})
        await trio.sleep(10)
        assert keeper.tellings == []
        keeper.sent.fault = lambda _: None
        await trio.sleep(60)
        assert keeper.tellings == [EDITED, ""]
        assert keeper.monitor.drifts(OWNER) == ()
        assert identity_of(key) in keeper.corrected


async def test_objects_of_a_kind_no_longer_served_are_handled(autojump_clock: MockClock) -> None:
    widget = yaml_object(
        "{apiVersion: example.test/v1, kind: Widget, metadata: {name: w, namespace: prod}, spec: {a: 1}}"
    )
    async with drift_keeper(full_s=600) as keeper:
        keeper.corrects = False
        crd = await keeper.bench.ours.create(widget_crd())
        await trio.sleep(1)
        key = keeper.insert(await keeper.bench.key(widget), widget)
        await keeper.reapply(identity_of(key))
        await (await keeper.bench.by("ed")).delete(await keeper.bench.key(crd))
        await trio.sleep(700)

        assert keeper.told[0] == (Drift(identity_of(key), missing=True),)


async def test_removing_a_row_clears_its_drift(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        keeper.corrects = False
        await edit(keeper, config)
        assert keeper.monitor.statistics().open == 1
        keeper.remove(key)
        assert keeper.monitor.drifts(OWNER) == ()
        await (await keeper.bench.by("ed")).delete(key)
        await trio.sleep(1)

        assert (keeper.tellings[-1], keeper.monitor.statistics().open) == ("", 0)


async def test_removing_a_suspected_row_reports_nothing(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        keeper.unsettled.add(identity_of(key))
        await edit(keeper, config)
        keeper.remove(key)
        await trio.sleep(60)

        assert (keeper.tellings, keeper.corrected) == ([], [])


async def test_a_labelled_object_that_is_not_ours_is_ignored(autojump_clock: MockClock, config: JsonObject) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config)
        stranger = yaml_object(CONFIG.replace("name: c", f"name: d, labels: {{{RELEASE_LABEL}: web}}"))
        await (await keeper.bench.by("ed")).create(stranger)
        await keeper.bench.patch("ed", stranger, {"data": {"a": "theirs"}})
        await trio.sleep(1)

        assert (keeper.tellings, len(keeper.applied)) == ([], 1)


async def test_an_object_being_deleted_is_restored_after_its_end(autojump_clock: MockClock) -> None:
    config = yaml_object(CONFIG.replace("name: c", "name: c, finalizers: [x.test/a]"))
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        other = await keeper.bench.by("ed")
        await other.delete(key)
        await edit(keeper, config)
        assert keeper.tellings == []
        keeper.monitor.resume_corrections(OWNER)
        await trio.sleep(1)
        assert keeper.tellings == []

        await keeper.bench.patch("ed", config, {"metadata": {"finalizers": None}})
        await trio.sleep(1)
        assert keeper.tellings == [GONE, ""]
