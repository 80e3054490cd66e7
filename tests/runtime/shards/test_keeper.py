"""Two daemons on one control plane, each with a shard: their Applications, and the moves between them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.packages.support.charts import chart
from tests.runtime.support.world import Ground, World, one_error, open_ground
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.cluster.lease.lease import open_lease
from wharfinger.cluster.lease.record import LEASE_API
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.store.disk_store import open_store
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION
from wharfinger.runtime.shards.ownership import MAIN, SHARD_LABEL, lease_name
from wharfinger.runtime.shards.seizure import Seizures

KEY = ObjectKey(APPLICATION, "prod", "app")


@asynccontextmanager
async def open_shard(ground: Ground, shard: str, seizures: Seizures | None = None) -> AsyncIterator[World]:
    """A second daemon with a folder of its own, for a shard."""
    folder = ground.folder / (shard or "main")
    folder.mkdir(exist_ok=True)
    async with (
        open_store(folder / "state") as store,
        replace(
            ground, store=store, journal=Journal(None), renders=folder / "renders", shard=shard, seizures=seizures
        ).open_world() as world,
    ):
        yield world


async def label(world: World, shard: str | None, namespace: str = "prod") -> None:
    """Let the label of a namespace name a shard; None: no label."""
    patch: JsonObject = {"metadata": {"labels": {SHARD_LABEL: shard}}}
    await world.client.merge_patch(ObjectKey(NAMESPACE, "", namespace), patch)


def kept_by(obj: JsonObject, shard: str) -> bool:
    return find_str(obj, "status", "shard") == shard and find_str(obj, "status", "summary", "state") == "Ready"


PAGE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-page}
data: {text: {{ .Values.text | default "none" }}}
"""


async def prepared(world: World) -> None:
    """A package in a folder, and its repository."""
    chart(world.folder / "packages" / "page", "page", "1.0.0", {"templates/config.yaml": PAGE})
    await world.local_repository(world.folder / "packages")


async def versions(world: World) -> tuple[str, str, int]:
    """The version and uid of the chart's object, and the number of records of the release."""
    page = await world.config_map("prod", "app-page")
    assert page is not None
    resource = await world.client.resource_type("v1", "Secret")
    records = (await world.client.list(resource, "prod", label_selector="owner=helm")).items
    return find_str(page, "metadata", "resourceVersion"), find_str(page, "metadata", "uid"), len(records)


async def test_each_daemon_keeps_its_namespaces_and_a_label_moves_them(tmp_path: Path) -> None:
    """Nothing is applied again or removed; the next owner carries out what is wanted next, and the removal."""
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main, open_shard(ground, "blue") as blue:
            await prepared(main)
            await main.create("prod", "app", package="page")
            await main.until_state("prod", "app", "Ready")
            assert "prod.app" not in blue.runtime.instances
            before = await versions(main)
            for owner, other, shard in ((blue, main, "blue"), (main, blue, MAIN)):
                await label(main, shard or None)
                await main.until("prod", "app", lambda obj, shard=shard: kept_by(obj, shard))
                await owner.until_runtime(lambda owner=owner: "prod.app" in owner.runtime.instances)
                await owner.until_state("prod", "app", "Ready")
                assert "prod.app" not in other.runtime.instances
                assert await versions(main) == before
            await label(main, "blue")
            await main.until("prod", "app", lambda obj: kept_by(obj, "blue"))
            await main.change("prod", "app", {"settings": {"text": "other"}})
            await blue.until_runtime(lambda: "prod.app" in blue.runtime.instances)
            page = ObjectKey(await main.client.resource_type("v1", "ConfigMap"), "prod", "app-page")
            await main.until_object(page, lambda obj: find_str(obj, "data", "text") == "other")
            assert (await versions(main))[2] == before[2] + 1
            await main.delete("prod", "app")
            await main.until_gone("prod", "app")
            assert await main.config_map("prod", "app-page") is None


async def test_a_run_under_way_ends_before_the_package_moves(tmp_path: Path) -> None:
    """Its hook would never end; the next owner runs it again, and the first one runs nothing any more."""
    notes = tmp_path / "notes"
    hook = bash("{configVersion: v1, beforeHelm: 1}", f'echo "$$" >>"{notes}"; [ -e "{tmp_path}/go" ] || sleep 600')
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main, open_shard(ground, "blue") as blue:
            await prepared(main)
            hooked(tmp_path / "packages" / "slow", {"a.sh": hook}, name="slow")
            await main.create("prod", "app", package="slow")
            await main.until_runtime(notes.exists)
            (tmp_path / "go").touch()
            await label(main, "blue")
            await main.until("prod", "app", lambda obj: kept_by(obj, "blue"))
            assert "prod.app" not in main.runtime.instances
            assert len(notes.read_text().split()) == 2
            assert not Path(f"/proc/{notes.read_text().split()[0]}").exists()
            assert "prod.app" in blue.runtime.instances


async def test_packages_of_other_shards_are_relied_on(tmp_path: Path) -> None:
    """A Module is kept by the main daemon, and an Application of a shard needs it, and follows a range of versions."""
    definition = "type: Application\nname: page\nrequirements: {modules: {mandatory: [{name: base}]}}\n"
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main, open_shard(ground, "blue") as blue:
            await label(main, "blue")
            await prepared(main)
            chart(tmp_path / "packages" / "base", "base", "1.0.0")
            chart(tmp_path / "packages" / "page", "page", "1.0.0", {"package.yaml": definition})
            await main.create(
                "prod", "app", package="page", version="", more={"packageVersion": None, "versionRange": "^1"}
            )
            await main.until_state("prod", "app", "Pending")
            assert blue.runtime.status("prod.app") is not None
            await main.create_module("base")
            await main.until("prod", "app", lambda obj: kept_by(obj, "blue"))
            assert "base" not in blue.runtime.instances
            await main.delete("", "base")
            await main.until("prod", "app", lambda obj: find_str(obj, "status", "summary", "state") == "Suspended")


async def test_a_shard_without_a_daemon_is_taken_over_when_its_lease_is_free(tmp_path: Path) -> None:
    with one_error():
        async with open_ground(tmp_path) as ground:
            async with ground.open_world() as main:
                await prepared(main)
                await main.create("prod", "app", package="page")
                await main.until_state("prod", "app", "Ready")
                before = await versions(main)
            await ground.client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
            )

            def now() -> datetime:
                return datetime.now(UTC)

            holding = open_lease(ground.client, SYSTEM_NAMESPACE, lease_name(MAIN), "one", duration_s=15, now=now)
            seizures = Seizures(ground.client, ground.client, "blue", "two", 15, now)
            async with open_shard(ground, "blue", seizures) as blue:
                async with holding:
                    await label(blue, "blue")
                    await blue.until_runtime(lambda: bool(seizures.waiting_for))
                    obj = await ground.client.get(KEY)
                    assert find_str(obj, "status", "shard") == ""
                await blue.until("prod", "app", lambda obj: kept_by(obj, "blue"))
                await blue.until_runtime(lambda: "prod.app" in blue.runtime.instances)
                await blue.until_state("prod", "app", "Ready")
                assert await versions(blue) == before
                await blue.until_runtime(lambda: not seizures.waiting_for)
            lease = await ground.client.get(
                ObjectKey(await ground.client.resource_type(*LEASE_API), SYSTEM_NAMESPACE, lease_name(MAIN))
            )
            assert find_str(lease, "spec", "holderIdentity") == ""
