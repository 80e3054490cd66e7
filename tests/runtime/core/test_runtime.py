"""The life of packages on a real runtime: they are installed, updated, retried, and removed."""

from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.support.objects import repository
from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.cluster.releases.service import open_release_engine
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, find, find_int, find_str
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.core.runtime import STALLED_RETRY
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.resources.resources import APPLICATION, REQUESTED

SLOW_CONFIG = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: slow, annotations: {wharfinger.dev/never-ready: "true"}}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: a, image: example/a}]}
"""


FAILS = ', wharfinger.dev/fail: "true"'
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: hook, annotations: {{helm.sh/hook: "{event}"{more}}}}}
spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: example/a}}]}}}}}}
"""


async def test_test_hooks_of_a_chart_are_not_run(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/tests/check.yaml": HOOK.format(event="test", more="")})
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_hooks_of_a_chart_run_and_a_failed_one_is_reported(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("good", "1.0.0", {"templates/hook.yaml": HOOK.format(event="pre-install", more="")})
        await world.push("bad", "1.0.0", {"templates/hook.yaml": HOOK.format(event="pre-install", more=FAILS)})
        await world.repository()
        await world.create("prod", "bad", package="bad")
        obj = await world.until_state("prod", "bad", "Failed")
        assert find_str(obj, "status", "conditions", 0, "reason") == "HookFailed"
        assert await world.config_map("prod", "bad") is None
        await world.delete("prod", "bad")
        await world.until_gone("prod", "bad")
        await world.create("prod", "good", package="good")
        await world.until_state("prod", "good", "Ready")
        jobs = await world.client.list(await world.client.resource_type("batch/v1", "Job"), "prod")
        assert [find_str(job, "metadata", "name") for job in jobs.items] == ["hook"]


async def test_an_application_becomes_ready_and_is_applied(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", settings={"text": "hello"})
        obj = await world.until_state("prod", "shop", "Ready")
        config = await world.config_map("prod", "shop")
        assert find(config, "data", "text") == "hello"
        assert find_str(obj, "status", "currentVersion", "version") == "1.0.0"
        assert find_str(obj, "status", "currentVersion", "digest").startswith("sha256:")
        assert find_int(obj, "status", "release", "revision") == 1


async def test_new_settings_are_applied_without_a_download(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        downloads = len(world.downloads)
        await world.change("prod", "shop", {"settings": {"text": "changed"}})
        obj = await world.until_state("prod", "shop", "Ready")
        assert find(await world.config_map("prod", "shop"), "data", "text") == "changed"
        assert find_int(obj, "status", "release", "revision") == 2
        assert len(world.downloads) == downloads


async def test_a_missing_version_is_reported_and_the_old_one_stays(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        obj = await world.until("prod", "shop", has_reason("ArtifactNotFound"))
        assert "2.0.0" in find_str(obj, "status", "summary", "message")
        assert find_str(obj, "status", "summary", "state") == "Updating"  # the old version still runs
        assert await world.config_map("prod", "shop") is not None
        # The installed version is desired again. The wait before the next download attempt is interrupted.
        await world.change("prod", "shop", {"packageVersion": "1.0.0"})
        await world.until_state("prod", "shop", "Ready")


async def test_every_status_written_during_an_update_is_true(tmp_path: Path) -> None:
    """Ready with the new version is not reported before the objects of the new version have been checked."""
    written: list[tuple[int, str, str]] = []
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "2.0.0", {"templates/slow.yaml": SLOW_CONFIG})
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})

        def waits(obj: JsonObject) -> bool:
            version, state = (
                find_str(obj, "status", "currentVersion", "version"),
                find_str(obj, "status", "summary", "state"),
            )
            written.append((find_int(obj, "status", "observedGeneration"), version, state))
            return "prod/slow" in find_str(obj, "status", "summary", "message")

        await world.until("prod", "shop", waits)
        assert ("Updating") in {state for generation, _, state in written if generation == 2}
        assert "Ready" not in {state for generation, _, state in written if generation == 2}


async def test_a_repushed_version_is_downloaded_on_request(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/broken.yaml": '{{ fail "broken on purpose" }}'})
        await world.repository()
        await world.create("prod", "shop")
        obj = await world.until_state("prod", "shop", "Failed")
        assert "broken on purpose" in find_str(obj, "status", "summary", "message")
        await world.push("web", "1.0.0", {"templates/broken.yaml": ""})
        key = ObjectKey(APPLICATION, "prod", "shop")
        await world.client.merge_patch(key, {"metadata": {"annotations": {REQUESTED: "now"}}})
        await world.until_state("prod", "shop", "Ready")


async def test_a_stalled_package_is_retried_after_a_while(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/broken.yaml": '{{ fail "broken on purpose" }}'})
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Failed")
        await world.push("web", "1.0.0", {"templates/broken.yaml": ""})
        assert world.runtime.retry_stalled("prod.shop")  # the waiting time is not over yet
        now = world.runtime.now
        world.runtime.now = lambda: now() + STALLED_RETRY
        assert not world.runtime.retry_stalled("prod.shop")
        await world.until_state("prod", "shop", "Ready")
        assert not world.runtime.retry_stalled("prod.shop")
        assert not world.runtime.retry_stalled("prod.nobody")


async def test_a_blocked_removal_is_reported_with_the_reason(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        config = ObjectKey(await world.client.resource_type("v1", "ConfigMap"), "prod", "shop")
        await world.client.merge_patch(config, {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.delete("prod", "shop")
        obj = await world.until(
            "prod", "shop", lambda obj: "example.com/hold" in find_str(obj, "status", "summary", "message")
        )
        assert "ConfigMap prod/shop" in find_str(obj, "status", "summary", "message")
        await world.client.merge_patch(config, {"metadata": {"finalizers": []}})
        await world.until_gone("prod", "shop")


async def test_an_invalid_repository_is_named_as_the_cause(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        broken = repository("no-path")
        await world.client.create(broken)
        await world.create("prod", "shop")
        obj = await world.until_state("prod", "shop", "Failed")
        assert find_str(obj, "status", "conditions", 2, "reason") == "RepositoryInvalid"
        assert "PackageRepository default" in find_str(obj, "status", "summary", "message")


async def test_a_missing_repository_is_reported_and_its_creation_noticed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.create("prod", "shop")
        obj = await world.until_state("prod", "shop", "Failed")
        assert "PackageRepository default does not exist" in find_str(obj, "status", "summary", "message")
        await world.repository()
        await world.until_state("prod", "shop", "Ready")


async def test_a_package_that_never_becomes_ready_delays_no_other(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("slow", "1.0.0", {"templates/slow.yaml": SLOW_CONFIG})
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "stuck", package="slow")
        await world.until("prod", "stuck", lambda obj: find_str(obj, "status", "conditions", 0, "reason") == "NotReady")
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        obj = await world.until_state("prod", "stuck", "Pending")
        assert "Deployment.apps prod/slow" in find_str(obj, "status", "summary", "message")


async def test_a_removal_leaves_nothing_and_the_name_can_be_used_again(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        for _ in range(2):
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
            await world.delete("prod", "shop")
            await world.until_gone("prod", "shop")
            assert await world.config_map("prod", "shop") is None
            assert list((tmp_path / "state" / "deployed").iterdir()) == []
            assert world.runtime.status("prod.shop") is None
            assert world.runtime.lifecycle == LifecycleStore()


@pytest.mark.slow
async def test_a_removal_interrupts_a_wait(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("slow", "1.0.0", {"templates/slow.yaml": SLOW_CONFIG})
        await world.repository()
        await world.create("prod", "stuck", package="slow")
        await world.until("prod", "stuck", lambda obj: find_str(obj, "status", "conditions", 0, "reason") == "NotReady")
        await world.delete("prod", "stuck")
        await world.until_gone("prod", "stuck")
        assert await world.config_map("prod", "stuck") is None


async def test_a_package_of_an_earlier_process_is_removed_too(tmp_path: Path) -> None:
    """A runtime that does not know a package still uninstalls its release before it removes the finalizer."""
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        world.runtime.instances.clear()
        world.runtime.lifecycle._packages.clear()
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        assert await world.config_map("prod", "shop") is None


async def test_a_foreign_release_is_not_uninstalled(tmp_path: Path) -> None:
    """The removal of an Application that was never installed does not uninstall a release of the same name."""
    async with open_world(tmp_path) as world:
        config: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "theirs"},
            "data": {"a": "b"},
        }
        request = ReleaseRequest(
            "shop",
            "prod",
            {"name": "x", "version": "1.0.0", "apiVersion": "v2"},
            {},
            write_yaml(config),
            (),
            (config,),
        )
        async with (
            open_shared_watches(world.client) as watches,
            open_release_engine(world.client, watches, EngineOptions(holder="somebody else")) as other,
        ):
            await other.upgrade(request)
        await world.repository()
        await world.create("prod", "shop", package="no-such-package")
        await world.until_state("prod", "shop", "Failed")
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        assert await world.config_map("prod", "theirs") is not None


async def test_a_package_whose_resource_vanishes_is_still_removed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        # A user removes the finalizer while the object is deleted.
        key = ObjectKey(APPLICATION, "prod", "shop")
        await world.delete("prod", "shop")
        with suppress(NotFoundError):
            await world.client.merge_patch(key, {"metadata": {"finalizers": []}})
        await world.until_gone("prod", "shop")
        with trio.fail_after(300):
            while world.runtime.lifecycle != LifecycleStore():
                await trio.testing.wait_all_tasks_blocked(0.005)
        assert await world.config_map("prod", "shop") is None


async def test_a_package_that_cannot_be_rendered_is_stalled_until_its_settings_change(tmp_path: Path) -> None:
    schema = '{"type": "object", "properties": {"text": {"type": "string"}}}'
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"values.schema.json": schema})
        await world.repository()
        await world.create("prod", "shop", settings={"text": 5})
        obj = await world.until_state("prod", "shop", "Failed")
        assert find_str(obj, "status", "conditions", 2, "type") == "Stalled"
        assert find_str(obj, "status", "conditions", 2, "status") == "True"
        assert "text" in find_str(obj, "status", "summary", "message")
        await world.change("prod", "shop", {"settings": {"text": "five"}})
        await world.until_state("prod", "shop", "Ready")
