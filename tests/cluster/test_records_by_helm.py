"""The real helm (4 and 3) reads and changes records that the store wrote, and the store reads the changes. Both use a control
plane over loopback TCP."""

import os
import random
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import trio

from tests.cluster.support.clusters import loopback_cluster
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.ownership import Owner, owned
from wharfinger.cluster.records.release import Release, ReleaseStatus, new_release
from wharfinger.cluster.records.release_chunks import CHUNK_TYPE, STAND_IN
from wharfinger.cluster.records.release_heads import ForeignChange, ReleaseHeads, open_release_heads
from wharfinger.cluster.records.release_store import ReleaseStore
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.kube.resource import name_of

HELMS = ["helm", "helm3"]
pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.skipif(any(shutil.which(helm) is None for helm in HELMS), reason="helm and helm3 are needed"),
]
OWNER = Owner("web", "default")
US = Holder("daemon-1", 3, "wharfinger/wharfinger/uid")
CHART: JsonObject = {"apiVersion": "v2", "name": "web", "version": "1.2.3", "appVersion": "9"}
HOOK = "# Source: web/templates/hook.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook}\n"


def noise(size: int) -> str:
    """Return a text that no compression makes smaller than three quarters of its size."""
    draw = random.Random(5)  # noqa: S311 - the same text each time
    return "".join(draw.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", k=size))


def config_map(value: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default"},
        "data": {"v": value},
    }


def record(revision: int, value: str, *, size: int = 0, status: ReleaseStatus = ReleaseStatus.DEPLOYED) -> Release:
    """Return a revision with one ConfigMap, and an incompressible comment of ``size`` characters in its manifest."""
    comment = "".join(f"# {line}\n" for line in noise(size).split("A")) if size else ""
    hook: JsonObject = {
        "name": "hook",
        "kind": "ConfigMap",
        "path": "web/templates/hook.yaml",
        "manifest": HOOK,
        "events": ["post-rollback"],
        "delete_policies": ["before-hook-creation"],
    }
    return new_release(
        name="web",
        namespace="default",
        revision=revision,
        status=status,
        description=f"revision {revision}",
        chart=CHART,
        values={"size": revision},
        manifest=f"---\n# Source: web/templates/a.yaml\n{comment}"
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: {value}\n",
        hooks=[hook],
        now=datetime(2026, 1, revision, tzinfo=UTC),
        holder=US,
        notes=f"These are the notes of {revision}.\n",
    )


@dataclass
class Bench:
    """A cluster over TCP, its record store and release heads, and a folder for helm."""

    client: ClusterClient
    heads: ReleaseHeads
    store: ReleaseStore
    folder: Path
    told: list[ForeignChange] = field(default_factory=list)
    _news: trio.Event = field(default_factory=trio.Event)

    def hear(self, change: ForeignChange) -> None:
        self.told.append(change)
        self._news.set()
        self._news = trio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on the reported changes holds."""
        with trio.fail_after(60):
            while not condition():
                await self._news.wait()

    async def try_to(self, *argv: str) -> tuple[int, str]:
        """Run a command with the cluster's kubeconfig, and return its exit code and output."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "kubeconfig"),
        }
        with trio.fail_after(120):
            done = await trio.run_process(argv, env=env, capture_stdout=True, capture_stderr=True, check=False)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    async def run(self, *argv: str) -> str:
        code, said = await self.try_to(*argv)
        assert code == 0, said
        return said

    async def json(self, *argv: str) -> JsonValue:
        value: JsonValue = msgspec.json.decode((await self.run(*argv, "-o", "json")).encode())
        return value

    async def install(self, *records: Release) -> None:
        """Write these records, and apply the objects of the last one."""
        for one in records:
            await self.store.create(one)
        value = find_str({"m": records[-1].manifest.rpartition("v: ")[2].strip()}, "m")
        await self.client.apply(owned(config_map(value), OWNER), field_manager="wharfinger")

    async def live(self) -> JsonValue:
        kind = await self.client.resource_type("v1", "ConfigMap")
        listed = await self.client.list(kind, "default", field_selector="metadata.name=a")
        return [find(item, "data", "v") for item in listed.items]

    async def chunks(self) -> list[str]:
        kind = await self.client.resource_type("v1", "Secret")
        listed = await self.client.list(kind, "default", field_selector=f"type={CHUNK_TYPE}")
        return [name_of(item) for item in listed.items]

    def chart(self, value: str) -> str:
        folder = self.folder / "chart"
        (folder / "templates").mkdir(parents=True, exist_ok=True)
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 2.0.0\n")
        (folder / "templates/a.yaml").write_text(
            f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: {value}\n"
        )
        return str(folder)


@asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    async with (
        loopback_cluster(folder) as client,
        open_shared_watches(client) as watches,
        open_release_heads(watches, US) as heads,
    ):
        await heads.wait_synced()
        store = ReleaseStore(client, lambda: datetime(2026, 2, 1, tzinfo=UTC), holder=US, heads=heads)
        at = Bench(client, heads, store, folder)
        heads.listen(at.hear)
        yield at


@pytest.mark.slow
@pytest.mark.parametrize("helm", HELMS)
async def test_helm_shows_all_records(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.install(record(1, "one", status=ReleaseStatus.SUPERSEDED), record(2, "two"))
        (listed,) = (find(await at.json(helm, "list"), 0),)
        names = ("name", "revision", "status", "chart", "app_version")
        assert [find(listed, name) for name in names] == ["web", "2", "deployed", "web-1.2.3", "9"]
        history = await at.json(helm, "history", "web")
        assert [find(history, at, "description") for at in (0, 1)] == ["revision 1", "revision 2"]
        assert "These are the notes of 2." in await at.run(helm, "status", "web")
        assert "These are the notes of 2." in await at.run(helm, "get", "notes", "web")
        assert (await at.run(helm, "get", "manifest", "web")).strip() == record(2, "two").manifest.strip()
        assert HOOK.strip() in await at.run(helm, "get", "hooks", "web")
        assert await at.json(helm, "get", "values", "web", "--revision", "1") == {"size": 1}
        everything = await at.run(helm, "get", "all", "web")
        for part in ("STATUS: deployed", "size: 2", "name: hook", "v: two", "These are the notes of 2."):
            assert part in everything
        assert at.told == []


@pytest.mark.slow
@pytest.mark.parametrize("helm", HELMS)
async def test_helm_uses_the_newest_of_several_deployed_revisions(helm: str, tmp_path: Path) -> None:
    """A quick change leaves the previous revision in the status "deployed" for a minute."""

    async def statuses() -> list[str]:
        return [one.release.status.value for one in await at.store.history("web", "default")]

    async with bench(tmp_path) as at:
        await at.install(record(1, "one"), record(2, "two"))
        listed = await at.json(helm, "list")
        assert (find(listed, 0, "revision"), find(listed, 1)) == ("2", None)
        await at.run(helm, "upgrade", "web", at.chart("three"))
        assert (await statuses(), await at.live()) == (["deployed", "superseded", "deployed"], ["three"])
        await at.run(helm, "rollback", "web")
        assert (await statuses(), await at.live()) == ([*["superseded"] * 3, "deployed"], ["two"])


@pytest.mark.slow
@pytest.mark.parametrize("helm", HELMS)
async def test_changes_by_a_users_helm_are_reported(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.install(record(1, "one", status=ReleaseStatus.SUPERSEDED), record(2, "two"))
        await at.run(helm, "upgrade", "web", at.chart("three"))
        await at.until(lambda: len(at.told) == 2)
        assert [(one.head.revision, one.head.status.value) for one in at.told] == [
            (3, "pending-upgrade"),
            (3, "deployed"),
        ]
        assert at.told[0].by == "a helm command (field manager Helm)"
        assert await at.live() == ["three"]
        await at.run(helm, "rollback", "web", "1")
        await at.until(lambda: len(at.told) == 4)
        assert str(at.told[-1]) == (
            "release default/web: revision 4 was set to status deployed by a helm command (field manager Helm)"
        )
        assert at.told[-2].head.status is ReleaseStatus.PENDING_ROLLBACK
        assert await at.live() == ["one"]
        history = await at.store.history("web", "default")
        assert [(one.release.revision, one.release.status.value, one.release.holder) for one in history] == [
            (1, "superseded", "daemon-1"),
            (2, "superseded", ""),
            (3, "superseded", ""),
            (4, "deployed", ""),
        ]
        await at.run(helm, "uninstall", "web")
        await at.until(lambda: at.told[-1].gone)
        assert [one.head.status.value for one in at.told[4:]] == ["uninstalling"] * 2
        assert str(at.told[-1]) == ("release default/web: its last record, revision 4, was deleted by a helm uninstall")
        assert await at.store.history("web", "default") == []
        assert await at.live() == []


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_helm_reads_a_record_larger_than_a_secret(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        large = record(2, "two", size=3 * 1024 * 1024)
        await at.install(record(1, "one", status=ReleaseStatus.SUPERSEDED), large)
        assert find(await at.json(helm, "list"), 0, "chart") == "web-1.2.3"
        assert find(await at.json(helm, "history", "web"), 1, "description") == "revision 2"
        status = await at.run(helm, "status", "web")
        assert "STATUS: deployed" in status
        assert "keeps the manifest and the original notes in Secrets of type wharfinger.dev/release-chunk" in status
        note = "Helm cannot uninstall the release or roll it back to this revision: use Wharfinger for that"
        assert note in status.replace("\n", " ")
        assert STAND_IN in await at.run(helm, "get", "manifest", "web")
        assert await at.json(helm, "get", "values", "web") == {"size": 2}
        for argv in (("rollback", "web", "2"), ("uninstall", "web")):
            code, said = await at.try_to(helm, *argv)
            assert (code != 0, f'ConfigMap "{STAND_IN}" is invalid' in said) == (True, True), said
            assert await at.live() == ["two"]
        history = await at.store.history("web", "default")
        assert [one.release.status.value for one in history] == ["superseded", "superseded", "uninstalling"]
        assert history[1].release.manifest == large.manifest
        assert history[2].release.manifest == "", "Helm's copy of the head has no objects"
        failed = await at.store.update(history[2], history[2].release.with_status(ReleaseStatus.FAILED, "healed"))
        assert STAND_IN in await at.run(helm, "get", "manifest", "web")
        assert failed.release.description == "healed"


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_a_user_rolls_back_from_a_large_record_to_a_small_one(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        large = record(2, "two", size=3 * 1024 * 1024)
        await at.install(record(1, "one", status=ReleaseStatus.SUPERSEDED), large)
        code, said = await at.try_to(helm, "rollback", "web", "1")
        if helm == "helm3":
            assert (code, 'no ConfigMap with the name "a" found' in said) == (1, True), "helm 3 knows only the stand-in"
            assert await at.live() == ["two"]
            return
        assert await at.live() == ["one"]
        await at.until(lambda: len(at.told) == 2)
        history = await at.store.history("web", "default")
        assert [one.release.status.value for one in history] == ["superseded", "superseded", "deployed"]
        assert "annotations" not in history[1].metadata, "Helm rewrites a record without our annotations"
        assert history[1].index is not None
        assert not history[1].release.whole
        await at.store.remove(history[2])
        _, again = await at.store.history("web", "default")
        assert again.release.manifest == large.manifest
        await at.store.remove(again)
        assert await at.chunks() == []


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_a_user_can_upgrade_from_a_large_record(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.install(record(1, "one", size=3 * 1024 * 1024))
        await at.run(helm, "upgrade", "web", at.chart("three"))
        assert await at.live() == ["three"]
        await at.run(helm, "uninstall", "web")
        assert await at.live() == []


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_helm_can_do_everything_while_the_manifest_fits(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        plain = record(2, "two")
        chart = {
            **plain.document,
            "chart": {**msgspec.convert(plain.document["chart"], dict), "values": {"x": noise(2_000_000)}},
        }
        await at.install(record(1, "one"), Release(chart, {}, US.identity, US.fence, US.lease))
        assert "Helm can do everything with it." in await at.run(helm, "status", "web")
        assert (await at.run(helm, "get", "manifest", "web")).strip() == plain.manifest.strip()
        await at.run(helm, "rollback", "web", "1")
        await at.run(helm, "rollback", "web", "2")
        assert await at.live() == ["two"]
        history = await at.store.history("web", "default")
        assert [one.release.revision for one in history] == [1, 2, 3, 4]
        assert (history[1].index is None, history[3].index) == (False, None)
        assert history[3].release.manifest.strip() == plain.manifest.strip()
        await at.run(helm, "uninstall", "web")
        assert len(await at.chunks()) == 2, "this cluster has no garbage collector"
        with trio.fail_after(60):
            while await at.store.history("web", "default"):
                await at.until(lambda: at.told[-1].gone)
        assert len(await at.store.collect_chunks()) == 2
        assert await at.chunks() == []


@pytest.mark.slow
@pytest.mark.parametrize("helm", HELMS)
async def test_an_uninstall_of_a_large_record_that_skips_hooks_leaves_the_objects(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.install(record(1, "one", size=3 * 1024 * 1024))
        said = await at.run(helm, "uninstall", "web", "--no-hooks")
        assert "kept due to the resource policy" in said
        assert STAND_IN in said
        assert await at.live() == ["one"]
        await at.until(lambda: at.told[-1].gone)
        assert await at.store.history("web", "default") == []
