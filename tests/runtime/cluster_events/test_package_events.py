"""Events about packages. They are recorded by a runtime in this process (`tests/runtime/support/world.py`), and by a real
daemon, whose Events are read with kubectl.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart
from tests.programs import program
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl
from tests.runtime.support.world import World, open_world
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.cluster_events.package_events import PackageEvents
from wharfinger.runtime.cluster_events.recorder import EVENT, open_recorder
from wharfinger.runtime.status.package_status import PackageStatus

SECRET = "hunter2-hunter2"
PATIENCE_S = 60


@asynccontextmanager
async def eventful(world: World) -> AsyncIterator[PackageEvents]:
    """Record Events about the packages of ``world``, as the daemon does."""
    async with open_recorder(world.client, lambda: datetime.now(UTC), "test") as recorder:
        events = PackageEvents(recorder)

        def find(key: ObjectKey) -> JsonObject | None:
            return (world.applications if key.namespace else world.modules).get(key)

        changes = world.runtime.packages.changes
        listener = changes.on_status

        def changed(name: str, before: PackageStatus, after: PackageStatus) -> None:
            events.status_changed(name, before, after)
            if listener is not None:
                listener(name, before, after)

        events.runtime, events.find = world.runtime, find
        world.runtime.packages.changes = replace(changes, on_status=changed)
        world.runtime.tools.releases.listen_to_corrections(events.drift_corrected)
        yield events


async def until_event(world: World, reason: str) -> JsonObject:
    """Wait for an Event in ``prod`` with this reason."""
    with trio.move_on_after(PATIENCE_S):
        async with world.client.watch(EVENT, "prod", resource_version="0") as events:
            async for event in events:
                if find_str(event.object, "reason") == reason:
                    return event.object
    raise AssertionError(f"no Event {reason}")


async def test_an_install_and_a_correction_are_recorded_without_secrets(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, eventful(world):
        await world.repository()
        await world.push("web", "1.0.0")
        await world.secret("settings", text=SECRET)
        source: JsonObject = {"kind": "Secret", "name": "settings", "key": "text", "path": "text"}
        await world.create("prod", "web", more={"settingsFrom": [source]})
        installed = await until_event(world, "Installed")
        assert find_str(installed, "regarding", "kind") == "Application"
        assert find_str(installed, "note") == "version 1.0.0 is installed and ready"
        theirs: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "prod"}}
        await world.client.apply({**theirs, "data": {"text": "theirs"}}, field_manager="ed", force=True)
        corrected = await until_event(world, "DriftCorrected")
        assert find_str(corrected, "note") == "corrected ConfigMap prod/web: /data/text by ed"
        assert SECRET not in json.dumps((await world.client.list(EVENT, "prod")).items)


async def test_a_failed_download_is_recorded_about_the_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, eventful(world):
        await world.repository()
        await world.create("prod", "web", version="9.9.9")
        failed = await until_event(world, "Failed")
        assert find_str(failed, "note").startswith("ArtifactNotFound: ")
        assert find_str(failed, "regarding", "name") == "web"
        assert find_str(failed, "regarding", "uid") == find_str(
            await world.until("prod", "web", bool), "metadata", "uid"
        )


@pytest.mark.slow
@pytest.mark.unmeasured
def test_kubectl_describe_shows_the_events(tmp_path: Path) -> None:
    """Check that `kubectl describe` shows the Events about an Application and about the daemon's Lease."""
    for version in ("1.0.0", "1.1.0"):
        chart(tmp_path / f"packages-{version}" / "web", "web", version)
    with control_plane(tmp_path) as admin, daemon(tmp_path, admin, "--local-packages", str(tmp_path)) as running:
        running.wait_line("ready:")
        kubectl = Kubectl(admin)

        def want(version: str) -> None:
            kubectl.apply(
                tmp_path / "application.yaml",
                f"apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {{name: v{version}}}\n"
                f"spec: {{folder: {{path: '{tmp_path}/packages-{version}'}}}}\n---\n"
                "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: default}\n"
                f"spec: {{packageName: web, packageVersion: {version}, packageRepositoryName: v{version}}}\n",
            )

        def wait(reason: str) -> None:
            watching = ("events", "--namespace=default", "--for=applications.wharfinger.dev/shop", "--watch")
            with program("kubectl", f"--kubeconfig={admin}", *watching) as events:
                events.wait_line(reason)

        want("1.0.0")
        wait("Installed")
        want("1.1.0")
        wait("Upgraded")
        kubectl("patch", "configmap", "shop", "--type=merge", "--patch", '{"data": {"text": "theirs"}}')
        wait("DriftCorrected")
        want("1.0.0")
        wait("RolledBack")
        described = kubectl("describe", "applications.wharfinger.dev", "shop")
        story = re.findall(r"^  (\w+) +(\w+) +\S+ +wharfinger +(.*)$", described, re.MULTILINE)
        assert story == [
            ("Normal", "Installed", "version 1.0.0 is installed and ready"),
            ("Normal", "Upgraded", "version 1.1.0 is installed and ready; the former version was 1.0.0"),
            ("Normal", "DriftCorrected", "corrected ConfigMap default/shop: /data/text by kubectl-patch"),
            ("Normal", "RolledBack", "version 1.0.0 is installed and ready; the former version was 1.1.0"),
        ]
        lease = kubectl("describe", "lease", "wharfinger", "--namespace=wharfinger-system")
        assert re.search(
            r"Normal +LeaderChanged +\S+ +wharfinger +\S+ leads from now on \(leaseTransitions: \d+\)\n", lease
        )
