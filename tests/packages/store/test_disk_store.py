"""The store on a real disk: concurrency, cancellation, damage and errors. Crashes are tested with crash_store.py."""

import json
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.packages.support.memory_registry import MemoryRegistry, chart_files, packed, put, put_image
from tests.packages.support.store_help import REPOSITORY, bring, edit, listing
from tests.programs import ROOT
from tests.scale import FULL
from wharfinger.packages.errors import StoreError
from wharfinger.packages.files.disk_files import content_digest
from wharfinger.packages.registry.registry import Descriptor
from wharfinger.packages.store import disk_store
from wharfinger.packages.store.disk_store import StoreLimits, open_store
from wharfinger.packages.store.tree import TreeRecord, is_sound, sound_record

NEVER_SPARE = StoreLimits(spare_s=0)


def deployed_version(root: Path, name: str = "prod.web") -> str:
    return (root / "deployed" / name / "Chart.yaml").read_text().rpartition("version: ")[2].strip()


async def test_a_package_is_downloaded_installed_and_deployed(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store:
        link = await bring(store, registry, manifest)
        assert link == tmp_path / "deployed" / "prod.web"
        assert not link.readlink().is_absolute()
        assert (link / "Chart.yaml").exists()
        assert link.resolve() == await store.install(manifest)
        assert listing(tmp_path) == {
            "blobs": sorted([manifest.config.digest.hex, manifest.layers[0].digest.hex]),
            "trees": [manifest.descriptor.digest.hex],
            "tmp": [],
            "deployed": ["prod.web"],
        }
        assert store.statistics() == {"locked": 0, "temporary": 0, "pinned": 1}


async def test_layers_of_an_image_are_applied_in_order(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    below = packed({"package.yaml": b"old", "hooks/run.sh": b"#!/bin/sh", "lib/gone": b"", "lib/also": b""})
    above = packed({"package.yaml": b"new", "lib/.wh..wh..opq": b"", "lib/kept": b"k", "templates/a.yaml": b"a"})
    manifest = await put_image(registry, below, above, below, above)
    async with open_store(tmp_path) as store:
        link = await bring(store, registry, manifest)
        files = {path.relative_to(link).as_posix() for path in link.rglob("*") if path.is_file()}
        assert files == {"package.yaml", "hooks/run.sh", "lib/kept", "templates/a.yaml"}
        assert (link / "package.yaml").read_text() == "new"
        assert stat.S_IMODE((link / "hooks/run.sh").stat().st_mode) == 0o500
        assert stat.S_IMODE((link / "package.yaml").stat().st_mode) == 0o400
        assert link.readlink().name == "package"


async def test_an_installed_package_can_be_deployed_without_its_registry(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    chart, image = await put(registry), await put_image(registry, packed({"package.yaml": b""}), tag="2.0.0")
    async with open_store(tmp_path, NEVER_SPARE) as store:
        for manifest in (chart, image):
            assert await store.installed(manifest.descriptor.digest) is None
            await store.download(registry, REPOSITORY, manifest)
            assert await store.installed(manifest.descriptor.digest) is None
            await store.install(manifest)
    async with open_store(tmp_path) as store:
        for manifest in (chart, image):
            assert await store.installed(manifest.descriptor.digest) == manifest
            await store.deploy("prod.web", manifest)
        tree = tmp_path / "store/trees" / image.descriptor.digest.hex
        edit(tree / "package/package.yaml")
        assert await store.installed(image.descriptor.digest) is None
        # `collect` keeps an installed package that was looked up, because it may be deployed next.
        assert await store.installed(chart.descriptor.digest) == chart
        assert await store.collect() == 0


async def test_a_tree_under_the_name_of_another_package_is_not_trusted(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    old, new = await put(registry, "1.0.0"), await put(registry, "2.0.0")
    trees = tmp_path / "store/trees"
    async with open_store(tmp_path) as store:
        await bring(store, registry, old)
        shutil.copytree(trees / old.descriptor.digest.hex, trees / new.descriptor.digest.hex)
        assert await store.installed(new.descriptor.digest) is None


async def test_trees_of_an_older_version_are_unpacked_again(tmp_path: Path) -> None:
    """In trees of an older version of the daemon, the files are in ``chart``, and the record has fewer fields."""
    registry = MemoryRegistry()
    manifest = await put(registry)
    tree = tmp_path / "store/trees" / manifest.descriptor.digest.hex
    async with open_store(tmp_path) as store:
        await bring(store, registry, manifest)
    (tree / "package").rename(tree / "chart")
    blobs = [manifest.config.digest.text, manifest.layers[0].digest.text]
    record = {"manifest": manifest.descriptor.digest.text, "blobs": blobs, "content": content_digest(tree / "chart")}
    (tree / "tree.json").write_text(json.dumps(record))
    (tmp_path / "deployed/prod.web").unlink()
    (tmp_path / "deployed/prod.web").symlink_to(f"../store/trees/{tree.name}/chart")
    async with open_store(tmp_path) as store:
        assert await store.installed(manifest.descriptor.digest) is None
        await store.collect()
        assert tree.exists()
        await bring(store, registry, manifest)
        assert deployed_version(tmp_path) == "1.0.0"
        assert sorted(path.name for path in tree.iterdir()) == ["package", "tree.json"]


async def test_existing_blobs_are_not_downloaded_again(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    for _ in range(2):
        async with open_store(tmp_path) as store:
            await bring(store, registry, manifest)
            await bring(store, registry, manifest)
    assert set(registry.fetched.values()) == {1}


async def test_a_damaged_blob_is_downloaded_again(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    blob = tmp_path / "store/blobs/sha256" / manifest.layers[0].digest.hex
    async with open_store(tmp_path) as store:
        await store.download(registry, REPOSITORY, manifest)
        right = blob.read_bytes()
        for wrong in (right[:-1], right + b"x", right[:-1] + bytes([right[-1] ^ 1]), b""):
            blob.write_bytes(wrong)
            with pytest.raises(StoreError, match="damaged on disk"):
                await store.install(manifest)
            assert listing(tmp_path)["trees"] == listing(tmp_path)["tmp"] == []
            await store.download(registry, REPOSITORY, manifest)
            assert blob.read_bytes() == right
        await store.install(manifest)
    assert registry.fetched[manifest.layers[0].digest] == 5
    assert registry.fetched[manifest.config.digest] == 1


async def test_a_damaged_tree_is_unpacked_again(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    tree = tmp_path / "store/trees" / manifest.descriptor.digest.hex
    async with open_store(tmp_path) as store:
        await bring(store, registry, manifest)
        for damage in ("package/Chart.yaml", "package/more", "tree.json"):
            edit(tree / damage)
            assert not is_sound(tree)
            await store.install(manifest)
            assert is_sound(tree)
            assert deployed_version(tmp_path) == "1.0.0"
        assert listing(tmp_path)["tmp"] == []
    assert set(registry.fetched.values()) == {1}


async def test_an_unchanged_tree_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry, read = MemoryRegistry(), list[str]()

    def reading(tree: Path, should_stop: Callable[[], bool]) -> TreeRecord | None:
        read.append(tree.name)
        return sound_record(tree, should_stop)

    monkeypatch.setattr(disk_store, "sound_record", reading)
    manifest = await put(registry)
    digest = manifest.descriptor.digest
    async with open_store(tmp_path, now=lambda: time.time() + 60) as store:
        await bring(store, registry, manifest)
        known = await store.installed(digest)
        read.clear()
        assert await store.installed(digest) is known
        await store.install(manifest)
        assert read == []
        edit(tmp_path / "store/trees" / digest.hex / "package/Chart.yaml")
        assert await store.installed(digest) is None
        await store.install(manifest)
        assert await store.installed(digest) == known
        assert read == [digest.hex] * 3


async def test_a_correct_link_is_not_replaced(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    one, two = await put(registry), await put(registry, version="2.0.0")
    async with open_store(tmp_path) as store:
        await bring(store, registry, one)
        await bring(store, registry, two, "other")
        link = await store.deploy("prod.web", one)
        before = link.lstat()
        assert await store.deploy("prod.web", one) == link
        assert link.lstat() == before
        await store.deploy("prod.web", two)
        assert link.lstat().st_ino != before.st_ino


async def test_a_name_counts_as_deployed_only_with_valid_link_and_tree(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    one, two = await put(registry), await put(registry, version="2.0.0")
    async with open_store(tmp_path) as store:
        assert await store.deployed("prod.web", one) is None
        await bring(store, registry, one)
        await bring(store, registry, two, "other")
        folder = await store.deployed("prod.web", one)
        await store.install(one)  # A daemon does this if it is not certain that the version is in place.
        assert folder == await store.deployed("prod.web", one)
        assert await store.deployed("prod.web", two) is None
        assert store.statistics()["pinned"] == 0, "deployed packages need no pin"
        await store.deploy("prod.web", two)
        assert await store.deployed("prod.web", one) is None
        assert await store.deployed("prod.web", two) == await store.install(two)
        (await store.install(two) / "Chart.yaml").write_text("another\n")
        assert await store.deployed("prod.web", two) is None


async def test_an_artifact_for_several_names_is_downloaded_once(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store, trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(bring, store, registry, manifest, f"prod.web{number}")
    assert set(registry.fetched.values()) == {1}
    assert len(listing(tmp_path)["deployed"]) == 10


async def test_downloads_of_different_artifacts_run_concurrently(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    slow, quick = await put(registry, "1.0.0"), await put(registry, "2.0.0")
    held, release = trio.Event(), trio.Event()

    async def hold(blob: Descriptor) -> None:
        if blob.digest == slow.layers[0].digest:
            held.set()
            await release.wait()

    registry.before_chunk = hold
    async with open_store(tmp_path) as store, trio.open_nursery() as nursery:
        nursery.start_soon(store.download, registry, REPOSITORY, slow)
        await held.wait()
        await bring(store, registry, quick)
        assert deployed_version(tmp_path) == "2.0.0"
        assert store.statistics()["locked"] == 1
        release.set()


async def test_a_waiting_download_takes_over_from_a_cancelled_one(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    held = trio.Event()
    stuck = [True]

    async def hold(blob: Descriptor) -> None:
        if stuck[0] and blob.digest == manifest.layers[0].digest:
            held.set()
            await trio.sleep_forever()

    registry.before_chunk = hold
    async with open_store(tmp_path) as store, trio.open_nursery() as nursery:
        first = trio.CancelScope()

        async def give_up() -> None:
            with first:
                await store.download(registry, REPOSITORY, manifest)

        nursery.start_soon(give_up)
        await held.wait()
        nursery.start_soon(bring, store, registry, manifest)
        await trio.testing.wait_all_tasks_blocked()
        stuck[0] = False
        first.cancel()
    assert deployed_version(tmp_path) == "1.0.0"
    assert listing(tmp_path)["tmp"] == []


class CancelAtStep(trio.abc.Instrument):
    """An instrument that cancels a scope just before the nth step of one task."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self.scope = scope
        self.left = step
        self.task = trio.lowlevel.current_task()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self.task:
            self.left -= 1
            if self.left == 0:
                self.scope.cancel()


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_download_cancelled_at_any_await_publishes_nothing_partial(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    old = await put(registry, "1.0.0")
    new = await put_image(registry, packed({"x": b""}), packed(chart_files(version="2.0.0")), tag="2.0.0")
    step = 0
    finished = False
    while not finished:
        step += 1
        root = tmp_path / str(step)
        async with open_store(root, NEVER_SPARE) as store:
            await bring(store, registry, old)
            with trio.CancelScope() as scope:
                instrument = CancelAtStep(scope, step)
                trio.lowlevel.add_instrument(instrument)
                try:
                    await bring(store, registry, new)
                    await store.undeploy("prod.web")
                    await store.deploy("prod.web", old)
                    await store.collect()
                finally:
                    trio.lowlevel.remove_instrument(instrument)
            finished = instrument.left > 0
            found = listing(root)
            assert found["tmp"] == []
            assert store.statistics()["locked"] == store.statistics()["temporary"] == 0
            assert all(is_sound(root / "store/trees" / name) for name in found["trees"])
            await bring(store, registry, new)
            assert deployed_version(root) == "2.0.0"
    assert step > 20


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("kind", ["chart", "image"] if FULL else ["image"])
def test_a_store_killed_at_any_disk_operation_stays_consistent(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.packages.support.crash_store", str(tmp_path), kind],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30


async def test_deploying_and_undeploying_change_only_the_link(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    old, new = await put(registry, "1.0.0"), await put(registry, "2.0.0")
    async with open_store(tmp_path) as store:
        await bring(store, registry, old)
        await bring(store, registry, new)
        assert deployed_version(tmp_path) == "2.0.0"
        await store.deploy("prod.web", old)
        assert deployed_version(tmp_path) == "1.0.0"
        await store.undeploy("prod.web")
        await store.undeploy("prod.web")
        assert listing(tmp_path)["deployed"] == []
        assert len(listing(tmp_path)["trees"]) == 2


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/etc", "A", "-a", "a-", "a.", ".a", "a b", "a\n", "a\0", "a" * 201, "ä", "a_b"],
)
async def test_invalid_deployed_names_are_refused(name: str, tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store:
        await bring(store, registry, manifest)
        with pytest.raises(StoreError, match="cannot be a deployed name") as caught:
            await store.deploy(name, manifest)
        with pytest.raises(StoreError, match="cannot be a deployed name"):
            await store.undeploy(name)
        assert not caught.value.transient


async def test_foreign_files_in_the_deployed_folder_are_not_changed(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store:
        await bring(store, registry, manifest)
        (tmp_path / "deployed" / "foreign").mkdir()
        (tmp_path / "deployed" / "file").write_text("")
        (tmp_path / "store" / "trees" / "README").write_text("")
        for name in ("foreign", "file"):
            with pytest.raises(StoreError, match="expected a link of this store"):
                await store.deploy(name, manifest)
            with pytest.raises(StoreError, match="expected a link of this store"):
                await store.undeploy(name)
        assert await store.collect() == 0
        assert listing(tmp_path)["deployed"] == ["file", "foreign", "prod.web"]


async def test_steps_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store:
        with pytest.raises(StoreError, match="not downloaded"):
            await store.install(manifest)
        await store.download(registry, REPOSITORY, manifest)
        with pytest.raises(StoreError, match="not installed"):
            await store.deploy("prod.web", manifest)
        assert listing(tmp_path)["tmp"] == listing(tmp_path)["deployed"] == []


async def test_collect_deletes_unused_trees_blobs_and_temporary_files(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    old, new = await put(registry, "1.0.0"), await put(registry, "2.0.0")
    async with open_store(tmp_path) as store:
        await bring(store, registry, old)
        await bring(store, registry, new)
        (tmp_path / "store/tmp/left-over").mkdir()
        (tmp_path / "store/tmp/left-over/x").write_text("")
        assert await store.collect() == 1 + 1 + 2
        assert listing(tmp_path)["trees"] == [new.descriptor.digest.hex]
        assert listing(tmp_path)["blobs"] == sorted(blob.digest.hex for blob in (new.config, new.layers[0]))
        assert await store.collect() == 0
        await store.undeploy("prod.web")
        assert await store.collect() == 3
        assert listing(tmp_path) == {"blobs": [], "trees": [], "tmp": [], "deployed": []}


async def test_collect_spares_recently_downloaded_packages(tmp_path: Path) -> None:
    """The test moves the clock explicitly, because an autojumping clock would not wait for the threads of the store."""
    registry = MemoryRegistry()
    manifest = await put(registry)

    clock = MockClock()

    async def run() -> None:
        async with open_store(tmp_path, StoreLimits(spare_s=60)) as store:
            await store.download(registry, REPOSITORY, manifest)
            assert await store.collect() == 0
            clock.jump(59)
            await store.install(manifest)
            clock.jump(59)
            assert await store.collect() == 0
            clock.jump(2)
            assert await store.collect() == 3
            assert store.statistics()["pinned"] == 0

    await trio.to_thread.run_sync(lambda: trio.run(run, clock=clock))


async def test_collect_can_run_during_installations(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifests = [await put(registry, f"1.0.{number}") for number in range(8)]
    async with open_store(tmp_path) as store, trio.open_nursery() as nursery:

        async def collect() -> None:
            for _ in range(10):
                await store.collect()

        nursery.start_soon(collect)
        for number, manifest in enumerate(manifests):
            nursery.start_soon(bring, store, registry, manifest, f"prod.web{number}")
    for number in range(8):
        assert deployed_version(tmp_path, f"prod.web{number}") == f"1.0.{number}"
