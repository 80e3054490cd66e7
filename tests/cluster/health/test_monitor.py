"""The health of releases while objects are created, changed and deleted, and the waits until releases are healthy."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, config_map
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.health_setup import (
    CRD,
    OTHER,
    OWNER,
    WIDGET,
    Phases,
    define_widgets,
    health_setup,
    row,
    widget,
)
from tests.cluster.support.release_requests import deployment, objects_of
from tests.control_plane.support.controller_harness import open_cluster
from wharfinger.cluster.health.health import HealthState
from wharfinger.cluster.health.monitor import PATIENCE_S, QUIET_S
from wharfinger.cluster.health.rules import HealthRule
from wharfinger.cluster.health.stall import GRACE_S
from wharfinger.cluster.objects.desired import DesiredTable
from wharfinger.cluster.tables.snapshot import Index
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.watch.object_waits import Laggards, WaitReport
from wharfinger.cluster.watch.readiness import Current, Failed
from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.kube.resource import ObjectKey, ResourceType

DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)
RULE = HealthRule("example.test/v1", "Widget", "Good", in_progress="Busy", failed="Bad")


def web(ready_after: str = "30") -> JsonObject:
    (made,) = objects_of(deployment("web"))
    made["metadata"] = {
        "name": "web",
        "namespace": "default",
        "annotations": {"wharfinger.dev/ready-after": ready_after},
    }
    return made


class Progress:
    def __init__(self) -> None:
        self.told: list[dict[str, str]] = []

    def __call__(self, laggards: Laggards) -> None:
        self.told.append({key.name: state.message for key, state in laggards.items()})


async def test_a_release_becomes_healthy_and_every_message_change_is_reported(autojump_clock: MockClock) -> None:
    async with memory_cluster(simulate=True) as client, health_setup(client) as setup:
        await setup.install(row(web(), DEPLOYMENT), row(config_map("a")))
        report = await setup.monitor.wait_ready(OWNER)
        assert report.done
        assert set(report.states.values()) == {Current()}
        await trio.sleep(2 * QUIET_S)
        told = setup.take()
        assert told[-1] == "web Current"
        assert "web Reconciling (web: 0 of 1 replicas available)" in told
        health = setup.monitor.health(OWNER)
        assert (health.state, len(health.ready), health.laggards) == (HealthState.CURRENT, 2, {})
        assert setup.monitor.statistics().objects == 2


async def test_a_deleted_object_is_reported(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        await setup.install(row(config_map("a")), row(config_map("b"), owner=OTHER))
        await trio.sleep(1)
        assert sorted(setup.take()) == ["other Current", "web Current"]
        await client.delete(ObjectKey(CONFIG_MAP, "default", "a"))
        await trio.sleep(1)
        assert setup.take() == ["web Reconciling (a: not there)"]
        setup.unwant(row(config_map("a")))
        await trio.sleep(1)
        assert setup.take() == []
        assert setup.monitor.health(OWNER).state is HealthState.UNKNOWN


async def test_nothing_is_reported_before_all_objects_were_listed(autojump_clock: MockClock) -> None:
    """After a restart, the daemon knows the wanted objects from its records before it knows which of them are in the
    cluster.
    """
    async with memory_cluster() as client, health_setup(client) as setup:
        await setup.install(row(config_map("a")))
        async with health_setup(client) as restarted:
            restarted.want(row(config_map("a")), row(config_map("b")))
            assert not restarted.monitor.health(OWNER).known
            assert restarted.monitor.health(OWNER).state is HealthState.UNKNOWN
            await trio.sleep(1)
            assert restarted.take() == ["web Reconciling (b: not there)"]


async def test_reports_are_limited_in_rate(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        await define_widgets(client)
        setup.monitor.set_rules(OWNER, ())
        await setup.install(row(widget("a"), WIDGET))
        await trio.sleep(1)
        setup.take()
        for number in range(50):
            ready: JsonObject = {"type": "Ready", "status": "False", "reason": f"Step{number}"}
            await client.merge_patch(
                ObjectKey(WIDGET, "default", "a"), {"status": {"conditions": [ready]}}, subresource="status"
            )
        await trio.sleep(2 * QUIET_S)
        told = setup.take()
        assert len(told) <= 3
        assert told[-1] == "web Reconciling (a: Step49)"


async def test_a_recovery_between_two_reports_is_reported_if_the_state_was_read(autojump_clock: MockClock) -> None:
    """A package may read a temporary bad state between two reports. It must then also get a report about the recovery."""
    async with memory_cluster() as client, health_setup(client) as setup:
        await define_widgets(client)
        key = ObjectKey(WIDGET, "default", "a")

        async def report(truth: str) -> None:
            ready: JsonObject = {"type": "Ready", "status": truth, "reason": truth}
            await client.merge_patch(key, {"status": {"conditions": [ready]}}, subresource="status")

        await setup.install(row(widget("a"), WIDGET))
        await report("True")
        await trio.sleep(2 * QUIET_S)
        for asks, expected in ((False, []), (True, ["web Current"])):
            setup.take()
            # Another report was sent just now, so the next one is delayed.
            setup.want(row(config_map("b"), owner=OTHER))
            await wait_all_tasks_blocked()
            await report("False")
            await wait_all_tasks_blocked()
            if asks:
                assert setup.monitor.health(OWNER).state is HealthState.RECONCILING
            await report("True")
            await trio.sleep(2 * QUIET_S)
            assert [told for told in setup.take() if told.startswith("web")] == expected
            setup.unwant(row(config_map("b")))
            await trio.sleep(2 * QUIET_S)


# -- updates in progress, and grace periods


def scaled_web(**annotations: str) -> JsonObject:
    """Return a Deployment whose controller observes a change after 1 s, and whose Pods are ready after 5 s."""
    made = web("5")
    find_object(made, "metadata", "annotations").update({"wharfinger.dev/observed-after": "1", **annotations})
    return made


async def test_a_scaled_deployment_is_reconciling_and_never_degraded(autojump_clock: MockClock) -> None:
    """The Deployment changes as in a real cluster: first its generation changes, then its controller observes the change, and
    finally the Pods become ready.
    """
    async with memory_cluster(simulate=True) as client, health_setup(client) as setup:
        await setup.install(row(scaled_web(), DEPLOYMENT))
        assert (await setup.monitor.wait_ready(OWNER)).done
        await trio.sleep(1)
        setup.take()
        key = ObjectKey(DEPLOYMENT, "default", "web")
        await client.merge_patch(key, {"spec": {"replicas": 3}}, subresource="scale")
        await trio.sleep(10)
        # How many steps of the rollout are seen one by one depends on the order of tasks.
        first, *steps, last = setup.take()
        assert first == "web Reconciling (web: generation 2 is not observed yet)"
        assert steps
        assert all(step.startswith("web Reconciling (web: 1 of 3 replicas ") for step in steps)
        assert last == "web Current"


async def test_an_object_unready_beyond_the_grace_period_is_degraded(autojump_clock: MockClock) -> None:
    async with memory_cluster(simulate=True) as client, health_setup(client) as setup:
        await setup.install(row(web("5"), DEPLOYMENT))
        assert (await setup.monitor.wait_ready(OWNER)).done
        await trio.sleep(1)
        setup.take()
        key = ObjectKey(DEPLOYMENT, "default", "web")
        annotations: JsonObject = {"wharfinger.dev/never-ready": "true"}
        await client.merge_patch(key, {"metadata": {"annotations": annotations}, "spec": {"replicas": 2}})
        await trio.sleep(GRACE_S - 1)
        told = setup.take()
        assert told[-1] == "web Reconciling (web: 1 of 2 replicas available)"
        assert not any("Degraded" in one for one in told)
        assert setup.monitor.health(OWNER).state is HealthState.RECONCILING
        await trio.sleep(2)
        assert setup.take() == ["web Degraded (web: 1 of 2 replicas available)"]
        assert setup.monitor.health(OWNER).stalled == {key}
        await trio.sleep(1000)
        assert setup.take() == []
        await client.merge_patch(key, {"metadata": {"annotations": {"wharfinger.dev/never-ready": None}}})
        await trio.sleep(10)
        # The order of tasks decides whether the generation is seen before it is observed.
        *steps, last = setup.take()
        assert set(steps) <= {"web Degraded (web: generation 3 is not observed yet)"}
        assert last == "web Current"


async def test_a_rollout_is_degraded_only_after_the_deployments_own_deadline(autojump_clock: MockClock) -> None:
    """The rollout stalls for longer than the grace period. It is degraded only after the Deployment's own progress deadline."""
    async with open_cluster() as client, health_setup(client) as setup:
        await setup.install(row(web("5"), DEPLOYMENT))
        assert (await setup.monitor.wait_ready(OWNER)).done
        await trio.sleep(1)
        setup.take()
        key = ObjectKey(DEPLOYMENT, "default", "web")
        annotations: JsonObject = {"wharfinger.dev/never-ready": "true"}
        template: JsonObject = {"metadata": {"annotations": {"restarted": "now"}}}
        await client.merge_patch(key, {"metadata": {"annotations": annotations}, "spec": {"template": template}})
        await trio.sleep(590)
        assert not any("Degraded" in one for one in setup.take())
        await trio.sleep(20)
        (told,) = setup.take()
        assert told.startswith("web Degraded (web: ReplicaSet")
        assert "has timed out progressing" in told


async def test_an_object_missing_beyond_the_grace_period_is_degraded(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client, grace_s=7) as setup:
        await setup.install(row(config_map("a")))
        await trio.sleep(1)
        setup.take()
        await client.delete(ObjectKey(CONFIG_MAP, "default", "a"))
        await trio.sleep(6)
        assert setup.take() == ["web Reconciling (a: not there)"]
        await trio.sleep(2)
        assert setup.take() == ["web Degraded (a: not there)"]


# -- waits


@pytest.mark.slow
async def test_a_wait_never_ends_with_a_state_from_before_the_apply(autojump_clock: MockClock) -> None:
    """The Deployment is ready before the apply. If the watch is late, this old state must not end the wait after the apply."""
    async with memory_cluster(simulate=True) as client, health_setup(client) as setup:
        await setup.install(row(web("5"), DEPLOYMENT))
        assert (await setup.monitor.wait_ready(OWNER)).done
        for _ in range(5):
            changed = web("5")
            find_object(changed, "spec", "template", "metadata")["annotations"] = {"at": str(trio.current_time())}
            await setup.install(row(changed, DEPLOYMENT))
            progress = Progress()
            report = await setup.monitor.wait_ready(OWNER, progress=progress)
            assert report.done
            assert progress.told[0] != {}
            live = await client.get(ObjectKey(DEPLOYMENT, "default", "web"))
            assert find_object(live, "status")["observedGeneration"] == find_object(live, "metadata")["generation"]


async def test_a_wait_covers_only_the_named_objects_that_are_desired(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        await setup.install(row(config_map("a")))
        setup.want(row(config_map("never")))
        a, never = (ObjectKey(CONFIG_MAP, "default", name) for name in ("a", "never"))
        assert (await setup.monitor.wait_ready(OWNER, [a])).states == {a: Current()}
        assert (await setup.monitor.wait_ready(OTHER)).done
        reports: list[WaitReport] = []

        async def wait() -> None:
            reports.append(await setup.monitor.wait_ready(OWNER, [a, never]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(100)
            assert reports == []
            assert setup.monitor.statistics().waits == 1
            setup.unwant(row(config_map("never")))
        assert reports[0].states == {a: Current()}


async def test_a_failure_ends_a_wait_at_once(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        await define_widgets(client)
        await setup.install(row(widget("a"), WIDGET), row(widget("b"), WIDGET))
        stalled: JsonObject = {"type": "Stalled", "status": "True", "reason": "Stuck"}
        key = ObjectKey(WIDGET, "default", "a")
        await client.merge_patch(key, {"status": {"conditions": [stalled]}}, subresource="status")
        report = await setup.monitor.wait_ready(OWNER)
        assert (report.done, report.failed) == (False, {key: Failed("Stuck")})
        await trio.sleep(1)
        assert setup.take()[-1].startswith("web Degraded (a: Stuck")


async def test_laggards_are_listed_with_their_last_event(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        await setup.install(row(web(), DEPLOYMENT))
        await client.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "web.1", "namespace": "default"},
                "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web-5d59d67564-x7k2p"},
                "reason": "FailedScheduling",
                "message": "0/3 nodes are available",
                "type": "Warning",
            }
        )
        progress = Progress()
        with trio.move_on_after(PATIENCE_S * 3):
            await setup.monitor.wait_ready(OWNER, progress=progress)
        own = "not observed by its controller yet"
        assert progress.told == [{"web": own}, {"web": f"{own} (FailedScheduling: 0/3 nodes are available)"}]
        assert setup.monitor.statistics().waits == 0


async def test_a_wait_continues_if_events_cannot_be_read(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        setup.want(row({"kind": "Nothing", "metadata": {"name": "a", "namespace": "no such place"}}, WIDGET))
        progress = Progress()
        with trio.move_on_after(PATIENCE_S * 3):
            await setup.monitor.wait_ready(OWNER, progress=progress)
        assert "cannot be looked up" in progress.told[-1]["a"]


async def test_a_cancelled_wait_is_removed_and_the_next_begins_at_once(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        setup.want(row(config_map("never")))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(setup.monitor.wait_ready, OWNER)
            await wait_all_tasks_blocked()
            assert setup.monitor.statistics().waits == 1
            began = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() == began
        assert setup.monitor.statistics().waits == 0


# -- kinds that are no longer served


async def test_a_kind_no_longer_served_blocks_nothing(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        await define_widgets(client)
        await setup.install(row(widget("a"), WIDGET), row(config_map("b")))
        await setup.phase("a", "Fine")
        assert (await setup.monitor.wait_ready(OWNER)).done
        await client.delete(ObjectKey(CRD, "", "widgets.example.test"))
        await trio.sleep(120)
        assert setup.take()[-1].startswith(
            "web Degraded (a: cannot be looked up: list Widget.example.test: the server does not"
        )
        with trio.move_on_after(60) as patience:
            await setup.monitor.wait_ready(OWNER)
        assert patience.cancelled_caught
        await define_widgets(client)
        await setup.install(row(widget("a"), WIDGET))
        await setup.phase("a", "Fine")
        assert (await setup.monitor.wait_ready(OWNER)).done
        await trio.sleep(1)
        assert setup.take()[-1] == "web Current"


async def test_a_kind_without_rows_is_forgotten_and_listed_again_later(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        await setup.install(row(config_map("a")))
        await trio.sleep(1)
        assert setup.monitor.statistics().objects == 1
        setup.unwant(row(config_map("a")))
        assert setup.monitor.statistics().objects == 0
        setup.want(row(config_map("a")))
        assert not setup.monitor.health(OWNER).known
        await trio.sleep(1)
        assert setup.monitor.health(OWNER).state is HealthState.CURRENT


async def test_releasing_an_unneeded_version_does_not_affect_another(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        older = ResourceType("", "v1beta1", "ConfigMap", "configmaps", namespaced=True)
        setup.live.attend(older)
        await setup.install(row(config_map("a")))
        await trio.sleep(1)
        setup.live.release(older)
        assert setup.monitor.health(OWNER).state is HealthState.CURRENT


# -- rules of releases


async def test_rules_apply_to_their_release(autojump_clock: MockClock) -> None:
    phases = Phases()
    async with memory_cluster() as client, health_setup(client, phases) as setup:
        await define_widgets(client)
        setup.monitor.set_rules(OWNER, (RULE,))
        await setup.install(row(widget("a"), WIDGET))
        await setup.phase("a", "Busy")
        await trio.sleep(1)
        assert setup.take()[-1] == "web Reconciling (a: in progress according to its health rule)"
        await setup.phase("a", "Bad")
        report = await setup.monitor.wait_ready(OWNER)
        assert list(report.failed.values()) == [Failed("failed according to its health rule")]
        await setup.phase("a", "Good")
        await trio.sleep(1)
        assert (await setup.monitor.wait_ready(OWNER)).done
        assert setup.take()[-1] == "web Current"


async def test_changed_rules_are_evaluated_again(autojump_clock: MockClock) -> None:
    phases = Phases()
    async with memory_cluster() as client, health_setup(client, phases) as setup:
        await define_widgets(client)
        await setup.install(row(widget("a"), WIDGET))
        await setup.phase("a", "Busy")
        assert (await setup.monitor.wait_ready(OWNER)).done  # without a rule, a status is enough
        setup.monitor.set_rules(OWNER, (RULE,))
        await trio.sleep(1)
        assert setup.monitor.health(OWNER).state is HealthState.RECONCILING
        asked = len(phases.asked)
        setup.monitor.set_rules(OWNER, (RULE,))
        await trio.sleep(1)
        assert len(phases.asked) == asked
        setup.monitor.set_rules(OWNER, ())
        await trio.sleep(1)
        assert setup.monitor.health(OWNER).state is HealthState.CURRENT


async def test_rows_added_after_their_objects_are_evaluated_by_their_rules(autojump_clock: MockClock) -> None:
    """If another release already watches the same kind, objects may be reported before their rows exist. The rules in the rows
    must be evaluated nevertheless.
    """
    phases = Phases()
    async with memory_cluster() as client, health_setup(client, phases) as setup:
        await define_widgets(client)
        await setup.install(row(widget("a"), WIDGET), row(widget("b"), WIDGET, OTHER))
        await setup.phase("a", "Good")
        await setup.phase("b", "Busy")
        async with health_setup(client, phases) as restarted:
            restarted.want(row(widget("a"), WIDGET))
            await trio.sleep(1)
            restarted.monitor.set_rules(OTHER, (RULE,))
            restarted.want(row(widget("b"), WIDGET, OTHER))
            await trio.sleep(1)
            assert restarted.monitor.health(OWNER).state is HealthState.CURRENT
            assert restarted.monitor.health(OTHER).state is HealthState.RECONCILING


async def test_a_row_that_changes_its_owner_is_reported_to_both(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, health_setup(client) as setup:
        one = row(config_map("a"))
        await setup.install(one, row(config_map("b")))
        await client.delete(ObjectKey(CONFIG_MAP, "default", "a"))
        await trio.sleep(1)
        assert setup.take()[-1] == "web Reconciling (a: not there)"
        setup.want(row(config_map("a"), owner=OTHER))
        await trio.sleep(1)
        assert sorted(setup.take()) == ["other Reconciling (a: not there)", "web Current"]


async def test_a_reader_that_fell_behind_starts_again(autojump_clock: MockClock) -> None:
    """The reader falls behind because more rows are deleted between two of its reads than the table remembers."""
    table: DesiredTable = Table(
        "desired", lambda one: one.identity, indexes={"owner": Index(lambda one: (one.owner,))}, graves=1
    )
    async with memory_cluster() as client, health_setup(client, table=table) as setup:
        many = [row(config_map(f"m{number}"), owner=OTHER) for number in range(10)]
        await setup.install(row(config_map("keep")))
        setup.want(*many)
        await trio.sleep(1)
        assert setup.monitor.health(OTHER).state is HealthState.RECONCILING
        setup.unwant(*many)
        setup.want(row(widget("a"), WIDGET))
        await trio.sleep(1)
        assert table.statistics().expired
        assert setup.monitor.health(OTHER).state is HealthState.UNKNOWN
        assert setup.take()[-1].startswith("web Reconciling (a: cannot be looked up")
