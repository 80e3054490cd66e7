"""All charts of the corpus, installed, upgraded and then left alone. If nobody changes our fields, the engine neither writes nor
reports drift.

Time is virtual. Meanwhile, others do what they do in every cluster: controllers write statuses, an autoscaler scales a
Deployment, a controller injects certificates, and a user restarts a workload and labels a namespace.
"""

import pytest
import trio
from trio.testing import MockClock

from tests.corpus.charts import NAMES
from tests.corpus.plainly import plainly
from tests.corpus.rendered import Charts
from tests.corpus.simulated import Simulation, simulate
from tests.corpus.state import State, is_protected, marked, names_of, state_of
from tests.scale import FULL, scaled
from wharfinger.cluster.health.health import HealthState
from wharfinger.cluster.objects.ownership import is_kept
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.rendering.renderer import Rendered

pytestmark = pytest.mark.unmeasured

MINUTES = scaled(10, 4)
SETTLE_S = 90.0
"""A time longer than the minute after which a quick change marks the previous revision as superseded."""
NOBODY_SERVES = {"admission"}
"""Charts with an APIService that no Pod serves here. Such a release never becomes ready."""
CA = "Y2VydGlmaWNhdGU="


async def key(at: Simulation, api_version: str, kind: str, namespace: str, name: str) -> ObjectKey:
    """Return the key of an object."""
    return ObjectKey(await at.other.resource_type(api_version, kind), namespace, name)


async def scale(at: Simulation, minute: int) -> None:
    """Change the replicas of a Deployment, as an autoscaler does."""
    worker = await key(at, "apps/v1", "Deployment", "autoscaled", "autoscaled-worker")
    await at.other.merge_patch(worker, {"spec": {"replicas": 3 + minute % 5}}, subresource="scale")


async def inject(at: Simulation, minute: int) -> None:
    """Write CA bundles into webhooks, an APIService and a CRD, as a controller does. Renew them once."""
    bundle = CA if minute < MINUTES // 2 else CA.replace("Y2", "Y3")
    for kind, name in (
        ("MutatingWebhookConfiguration", "admission-defaulting"),
        ("ValidatingWebhookConfiguration", "admission-checking"),
    ):
        webhooks = await key(at, "admissionregistration.k8s.io/v1", kind, "", name)
        count = len(find_list(await at.other.get(webhooks), "webhooks"))
        patch: list[JsonValue] = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle} for index in range(count)
        ]
        await at.other.json_patch(webhooks, patch)
    api = await key(at, "apiregistration.k8s.io/v1", "APIService", "", "v1.stock.example")
    await at.other.merge_patch(api, {"spec": {"caBundle": bundle}})
    definition = await key(at, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "orders.orders.example")
    conversion: JsonObject = {"webhook": {"clientConfig": {"caBundle": bundle}}}
    await at.other.merge_patch(definition, {"spec": {"conversion": conversion}})


async def restart(at: Simulation, minute: int) -> None:
    """Restart a workload as ``kubectl rollout restart`` does, and set a label on a namespace."""
    workload = await key(at, "apps/v1", "StatefulSet", "database", "database-db")
    annotations: JsonObject = {"kubectl.kubernetes.io/restartedAt": f"2026-01-01T00:{minute:02}:00Z"}
    await at.other.merge_patch(workload, {"spec": {"template": {"metadata": {"annotations": annotations}}}})
    namespace = await key(at, "v1", "Namespace", "", "tenants-red")
    await at.other.merge_patch(namespace, {"metadata": {"labels": {"minute": str(minute)}}})


@pytest.mark.slow
@pytest.mark.parametrize("versions", [1, 2] if FULL else [2])
@plainly
async def test_nothing_is_written_while_nothing_changes(
    versions: int, charts: Charts, no_threads: None, autojump_clock: MockClock
) -> None:
    async with simulate(*NAMES) as at:
        for name in NAMES:
            for prepared in charts(name)[:versions]:
                await at.bring(prepared)
        await trio.sleep(SETTLE_S)
        at.network.arm()
        for minute in range(MINUTES):
            await scale(at, minute)
            await inject(at, minute)
            await restart(at, minute)
            await trio.sleep(60)
        assert [str(call) for call in at.network.writes] == []
        assert at.engine.told.drifts == []

        unwell = {
            owner.name for owner, health in at.engine.told.health.items() if health.state is not HealthState.CURRENT
        }
        assert unwell == NOBODY_SERVES

        for name in NAMES:
            await at.bring(charts(name)[versions - 1])
        assert [str(call) for call in at.network.writes] == []

        for name in NAMES:
            await at.bring(charts(name)[0])
        await trio.sleep(SETTLE_S)
        check_all(state_of(at.plane.backend), {name: charts(name)[0].rendered for name in NAMES})
        for name in NAMES:
            await at.engine.uninstall(release=name, namespace=name)
        await trio.sleep(SETTLE_S)
        check_all(state_of(at.plane.backend), {})
        assert at.engine.told.drifts == []


def check_all(state: State, wanted: dict[str, Rendered]) -> None:
    """Check that all objects of these releases exist with our marks. Other marked objects must be retained or protected ones."""
    ours = marked(state)
    names = {name for release, rendered in wanted.items() for name in names_of(rendered.objects, release)}
    assert len(names & ours) == sum(len(rendered.objects) for rendered in wanted.values())
    assert [name for name in sorted(ours - names) if not (is_kept(state[name]) or is_protected(state[name]))] == []
