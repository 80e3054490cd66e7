"""Releases of the engine, used by the real helm (4 and 3), and releases of helm, used by the engine, over loopback TCP."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
import trio

from tests.cluster.support.client_contract import CONFIG_MAP, key
from tests.cluster.support.clusters import loopback_cluster
from tests.cluster.support.release_bench import open_engine
from tests.cluster.support.release_requests import config_map, deployment, objects_of, request
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.cluster.records.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import utc_now
from wharfinger.cluster.releases.request import Outcome
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.resource import ObjectKey, name_of

HELMS = ["helm", "helm3"]
pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.skipif(any(shutil.which(helm) is None for helm in HELMS), reason="helm and helm3 are needed"),
]


@dataclass
class Bench:
    """A cluster over TCP, an engine on it, and a folder for helm."""

    client: HttpClusterClient
    engine: ReleaseEngine
    folder: Path

    async def run(self, *argv: str, check: bool = True) -> str:
        """Run a command with the cluster's kubeconfig, and return its stdout (and stderr if it may fail)."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "kubeconfig"),
        }
        with trio.fail_after(120):
            done = await trio.run_process(argv, env=env, capture_stdout=True, capture_stderr=True, check=False)
        output = done.stdout.decode() + ("" if check else done.stderr.decode())
        if check:
            assert done.returncode == 0, done.stderr.decode()
        return output

    async def json(self, *argv: str) -> JsonValue:
        value: JsonValue = msgspec.json.decode((await self.run(*argv, "-o", "json")).encode())
        return value

    async def config_maps(self) -> dict[str, JsonValue]:
        listed = await self.client.list(CONFIG_MAP, "default")
        return {name_of(item): item.get("data") for item in listed.items if name_of(item) != "kube-root-ca.crt"}

    def chart(self, more: str = "") -> Path:
        """Write a chart with one ConfigMap. ``more`` is added to its data."""
        folder = self.folder / "chart"
        (folder / "templates").mkdir(parents=True, exist_ok=True)
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: '9'\n")
        (folder / "values.yaml").write_text("v: '1'\n")
        (folder / "templates/a.yaml").write_text(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: {{ .Values.v | quote }}\n"
            + (f"  {more}\n" if more else "")
        )
        return folder


@asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    async with loopback_cluster(folder) as client, open_engine(client) as engine:
        yield Bench(client, engine, folder)


@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_helm_lists_our_releases(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.engine.upgrade(request(config_map("a", v="1"), size=1))
        wanted = request(config_map("a", v="2"), deployment("web"), size=2, text="ünïcode")
        await at.engine.upgrade(wanted)
        (listed,) = (item for item in [find(await at.json(helm, "list"), 0)])
        assert {
            name: find(listed, name) for name in ("name", "namespace", "revision", "status", "chart", "app_version")
        } == {
            "name": "web",
            "namespace": "default",
            "revision": "2",
            "status": "deployed",
            "chart": "web-1.2.3",
            "app_version": "9",
        }
        history = await at.json(helm, "history", "web")
        assert isinstance(history, list)
        assert [(find(one, "revision"), find(one, "status"), find(one, "description")) for one in history] == [
            (1, "superseded", "Install complete"),
            (2, "deployed", "Upgrade complete"),
        ]
        assert (await at.run(helm, "get", "manifest", "web")).strip() == wanted.manifest.strip()
        assert await at.json(helm, "get", "values", "web") == {"size": 2, "text": "ünïcode"}
        assert find(await at.json(helm, "status", "web"), "info", "status") == "deployed"
        assert await at.json(helm, "get", "values", "web", "--revision", "1") == {"size": 1}


@pytest.mark.parametrize("helm", HELMS)
async def test_a_users_rollback_is_continued_by_the_engine(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.engine.upgrade(request(config_map("a", v="1"), config_map("b")))
        await at.engine.upgrade(request(config_map("a", v="2")))
        await at.run(helm, "rollback", "web", "1")
        rolled_back = await at.config_maps()
        assert (set(rolled_back), rolled_back["a"]) == ({"a", "b"}, {"v": "1"})
        history = await at.engine.history("web", "default")
        assert [one.status.value for one in history] == ["superseded", "superseded", "deployed"]
        assert history[-1].holder == ""
        result = await at.engine.upgrade(request(config_map("a", v="2")))
        assert (result.outcome, result.revision) == (Outcome.UPGRADED, 4)
        assert await at.config_maps() == {"a": {"v": "2"}}


@pytest.mark.parametrize("helm", HELMS)
async def test_a_users_uninstall_is_followed_by_a_new_install(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.engine.upgrade(request(config_map("a"), deployment("web")))
        await at.run(helm, "uninstall", "web")
        assert await at.config_maps() == {}
        assert await at.engine.history("web", "default") == []
        assert (await at.engine.upgrade(request(config_map("a")))).revision == 1


@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_the_engine_takes_over_a_release_of_helm(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.run(helm, "install", "web", str(at.chart()))
        (record,) = await at.engine.history("web", "default")
        assert (record.status, record.revision) == (ReleaseStatus.DEPLOYED, 1)
        assert find(record.chart, "version") == "1.2.3"
        assert [name_of(one) for one in objects_of(record.manifest)] == ["a"]
        await at.engine.upgrade(request(config_map("a", v="2")))
        assert await at.config_maps() == {"a": {"v": "2"}}
        result = await at.engine.upgrade(request(config_map("b", v="1")))
        assert (result.revision, [one.name for one in result.pruned]) == (3, ["a"])
        assert await at.config_maps() == {"b": {"v": "1"}}
        await at.run(helm, "rollback", "web", "1")
        assert await at.config_maps() == {"a": {"v": "1"}}
        done = await at.engine.uninstall("web", "default")
        assert [one.name for one in done.deleted] == ["a"]
        assert "web" not in await at.run(helm, "list", "--all-namespaces")


@pytest.mark.parametrize("helm", HELMS)
async def test_helm_and_the_engine_wait_for_each_other(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.engine.upgrade(request(config_map("a", v="1")))
        (record,) = await at.engine.history("web", "default")
        pending = replace(record, holder="").with_status(ReleaseStatus.PENDING_UPGRADE, "at work")
        store = ReleaseStore(at.client, utc_now)
        (stored,) = await store.history("web", "default")
        await store.remove(stored)
        await store.create(pending)
        assert "in progress" in await at.run(helm, "upgrade", "web", str(at.chart()), check=False)
        with pytest.raises(ReleaseBusyError, match="a helm command is at work"):
            await at.engine.upgrade(request(config_map("a", v="2")))
        await at.client.get(key("a"))


@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_helm_runs_the_hooks_of_our_records(helm: str, tmp_path: Path) -> None:
    def hook(name: str, event: str, policy: str) -> JsonObject:
        annotations: JsonObject = {"helm.sh/hook": event, "helm.sh/hook-delete-policy": policy}
        metadata: JsonObject = {"name": name, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    async with bench(tmp_path) as at:
        hooks = (hook("left", "pre-delete", "before-hook-creation"), hook("gone", "post-delete", "hook-succeeded"))
        await at.engine.upgrade(replace(request(config_map("a")), hooks=hooks))
        assert "helm.sh/hook: pre-delete" in await at.run(helm, "get", "hooks", "web")
        await at.run(helm, "uninstall", "web")
        assert set(await at.config_maps()) == {"left"}


class Told:
    """A listener that records foreign revisions."""

    def __init__(self) -> None:
        self.foreign: list[tuple[str, int, str]] = []
        self.heard = trio.Event()

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """Ignore the report about drift."""

    def health_changed(self, owner: Owner, health: Health) -> None:
        """Ignore the report about the health of a release."""

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Ignore the report about pruned objects."""

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Ignore the report about troubles of a release."""

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        """Record the report about a revision that another program has written."""
        self.foreign.append((str(owner), release_revision, by))
        self.heard.set()


@pytest.mark.sampled
@pytest.mark.parametrize("helm", HELMS)
async def test_a_field_written_by_helm_is_removed_with_the_chart(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.run(helm, "install", "web", str(at.chart("w: '1'")))
        await at.engine.upgrade(request(config_map("a", v="2")))
        assert await at.config_maps() == {"a": {"v": "2"}}
        await at.run(helm, "upgrade", "web", str(at.chart("x: '1'")))
        assert (await at.config_maps())["a"] == {"v": "1", "x": "1"}
        await at.engine.upgrade(request(config_map("a", v="3")))
        assert await at.config_maps() == {"a": {"v": "3"}}
        managers = find((await at.client.get(key("a"))), "metadata", "managedFields")
        assert isinstance(managers, list)
        assert [find(one, "manager") for one in managers] == ["wharfinger"]


@pytest.mark.parametrize("helm", HELMS)
async def test_a_users_upgrade_is_noticed_and_not_corrected(helm: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        told = Told()
        at.engine.listen(told)
        wanted = request(config_map("a", v="1"))
        await at.engine.upgrade(wanted)
        await at.run(helm, "upgrade", "web", str(at.chart()), "--set", "v=9")
        with trio.fail_after(300):
            await told.heard.wait()
        assert told.foreign[0][:2] == ("default/web", 2)
        assert at.engine.unchanged(wanted) is None
        assert (await at.config_maps())["a"] == {"v": "9"}
        assert (await at.engine.upgrade(wanted)).revision == 3
        assert (await at.config_maps())["a"] == {"v": "1"}
