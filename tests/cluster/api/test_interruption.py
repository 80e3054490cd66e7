"""Operations that are interrupted when the daemon stops, and operations that still run to their end."""

from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import widget_crd
from tests.cluster.support.release_bench import Bench, bench, open_engine
from tests.cluster.support.release_requests import config_map, objects_of, request
from wharfinger.cluster.api.interruption import Interruption, WaitInterruptedError
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.formats.json.value import JsonObject, as_object, find_object
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.kube.resource import ObjectKey

STOPS = "the daemon stops"
JOB = (
    "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n"
    "  annotations: {helm.sh/hook: pre-install, wharfinger.dev/never-ready: 'true'}\n"
    "spec:\n  template:\n    metadata: {annotations: {wharfinger.dev/never-ready: 'true'}}\n"
    "    spec: {restartPolicy: Never, containers: [{name: main, image: 'registry.example/migrate:1'}]}\n"
)


def kept_back(how: str = "true") -> JsonObject:
    """Return a CustomResourceDefinition that the API server does not establish."""
    crd = widget_crd()
    metadata = as_object(crd["metadata"], "metadata")
    return {**crd, "metadata": {**metadata, "annotations": {"wharfinger.dev/never-established": how}}}


async def test_an_interrupted_wait_names_its_subject(autojump_clock: MockClock) -> None:
    interruption = Interruption()
    said = "interrupted while waiting for the tide: the daemon stops; the operation continues at the next start"

    async def wait() -> None:
        with pytest.raises(WaitInterruptedError, match=said), interruption.waiting("the tide"):
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        interruption.interrupt(STOPS)


async def test_no_wait_begins_after_a_stop() -> None:
    interruption = Interruption()
    interruption.interrupt(STOPS)
    interruption.interrupt("again")
    with pytest.raises(WaitInterruptedError, match=STOPS), interruption.waiting("the tide"):
        await trio.sleep_forever()


async def test_code_that_does_not_wait_is_not_interrupted() -> None:
    interruption = Interruption()
    interruption.interrupt(STOPS)
    done = False
    with interruption.waiting("nothing"):
        done = True
    assert done


async def interrupted(at: Bench, wanted: ReleaseRequest, after: float = 5) -> float:
    """Begin an upgrade, interrupt it after some seconds, and return the time from the interruption to the end."""
    ended: list[float] = []

    async def upgrade() -> None:
        with pytest.raises(WaitInterruptedError):
            await at.engine.upgrade(wanted)
        ended.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(upgrade)
        await trio.sleep(after)
        assert not ended
        asked = trio.current_time()
        at.engine.interrupt(STOPS)
    return ended[0] - asked


async def test_interruption_ends_the_wait_for_a_definition_of_crds(autojump_clock: MockClock) -> None:
    async with bench() as at:
        assert await interrupted(at, request(config_map("a"), crds=(kept_back(),))) < 1
        (record,) = await at.statuses()
        assert record == (
            "1 failed Install interrupted while waiting for the API server to establish widgets.example.test: "
            "the daemon stops; the operation continues at the next start"
        )


async def test_interruption_ends_the_wait_for_a_definition_of_the_manifest(autojump_clock: MockClock) -> None:
    """Without the interruption, a daemon that gets SIGTERM would wait for the whole grace period of 30 s."""
    async with bench() as at:
        assert await interrupted(at, request(f"---\n{write_yaml(kept_back())}", config_map("a"))) < 1
        (record,) = await at.statuses()
        assert "Install interrupted while waiting for the API server to establish widgets.example.test" in record


async def test_interruption_ends_the_wait_for_a_hook(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        wanted = replace(request(config_map("a")), hooks=objects_of(JOB))
        assert await interrupted(at, wanted) < 1
        (record,) = await at.statuses()
        assert record.startswith("1 failed Install interrupted while waiting for hook Job migrate")


async def test_interruption_ends_the_retries_of_an_object(autojump_clock: MockClock) -> None:
    async with bench() as at:

        def refuse(asked: httpx.Request) -> httpx.Response | None:
            broken = asked.method != "GET" and asked.url.path.endswith("/configmaps/b")
            return httpx.Response(503, json={"kind": "Status", "code": 503, "message": "no"}) if broken else None

        at.transport.fault = refuse
        assert await interrupted(at, request(config_map("a"), config_map("b")), after=0.2) < 1
        (record,) = await at.statuses()
        assert record.startswith("1 failed Install interrupted while waiting for ConfigMap default/b")
        assert set(await at.config_maps()) == {"a"}


@pytest.mark.parametrize("policy", ["before-hook-creation", "hook-succeeded"])
async def test_interruption_ends_the_wait_for_a_hooks_deletion(policy: str, autojump_clock: MockClock) -> None:
    """A finalizer of another tool blocks the deletion of the hook, so the wait would not end by itself."""
    async with bench() as at:
        stuck: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "settings",
                "annotations": {"helm.sh/hook": "pre-install", "helm.sh/hook-delete-policy": policy},
                "finalizers": ["example.test/stuck"],
            },
        }
        if policy == "before-hook-creation":
            await at.client.create({**stuck, "metadata": {**find_object(stuck, "metadata"), "namespace": "default"}})
        assert await interrupted(at, replace(request(config_map("a")), hooks=(stuck,))) < 1
        (record,) = await at.statuses()
        assert "interrupted while waiting for the end of ConfigMap default/settings" in record


async def test_an_interrupted_write_is_completed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        held = trio.Event()
        at.transport.fault = lambda asked: held if asked.url.path.endswith("/configmaps/a") else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.upgrade, request(config_map("a")))
            await trio.sleep(5)
            at.engine.interrupt(STOPS)
            await trio.sleep(5)
            held.set()
        assert await at.statuses() == ["1 deployed Install complete"]
        assert set(await at.config_maps()) == {"a"}


async def test_the_next_start_continues_an_interrupted_install(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(f"---\n{write_yaml(kept_back())}", config_map("a"))
        await interrupted(at, wanted)
        crd = widget_crd()
        await at.client.merge_patch(
            await definition_key(at), {"metadata": {"annotations": {"wharfinger.dev/never-established": None}}}
        )
        async with open_engine(at.client) as engine:
            result = await engine.upgrade(request(f"---\n{write_yaml(crd)}", config_map("a")))
            assert result.revision == 2
        assert [record.split()[1] for record in await at.statuses()] == ["failed", "deployed"]


async def definition_key(at: Bench) -> ObjectKey:
    return ObjectKey(
        await at.client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "", "widgets.example.test"
    )
