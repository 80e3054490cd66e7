"""OCI layouts in a folder: the contract of registries, layouts that other tools wrote, damaged layouts, concurrent writers, and
a writer that is killed.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packages.support.registry_contract import CONTRACT, READ_CONTRACT, REPOSITORY, Check, ReadCheck, push, read
from tests.programs import ROOT
from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject, find_list
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError, PackageError, RegistryError
from wharfinger.packages.registry.manifest import OCI_INDEX, OCI_MANIFEST
from wharfinger.packages.registry.oci_layout import INDEX_FILE, MAX_INDEX, OciLayout
from wharfinger.packages.registry.registry import Descriptor

TAG = "org.opencontainers.image.ref.name"


def index_of(root: Path) -> JsonObject:
    read: JsonObject = json.loads((root / REPOSITORY / INDEX_FILE).read_bytes())
    return read


def blob(root: Path, descriptor: Descriptor) -> Path:
    return root / REPOSITORY / "blobs" / "sha256" / descriptor.digest.hex


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: str(check.__name__))
async def test_an_empty_layout_fulfils_the_contract(check: Check, tmp_path: Path) -> None:
    await check(OciLayout(tmp_path))


@pytest.mark.parametrize("check", READ_CONTRACT, ids=lambda check: str(check.__name__))
async def test_a_layout_with_an_artifact_fulfils_the_contract(check: ReadCheck, tmp_path: Path) -> None:
    await push(OciLayout(tmp_path), "1.0.0")
    await check(OciLayout(tmp_path))


async def test_a_push_writes_a_standard_image_layout(tmp_path: Path) -> None:
    pushed = await push(OciLayout(tmp_path), "1.0.0")
    folder = tmp_path / REPOSITORY
    assert json.loads((folder / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    assert sorted(path.name for path in folder.iterdir()) == ["blobs", "index.json", "oci-layout"]
    assert index_of(tmp_path) == {
        "schemaVersion": 2,
        "mediaType": OCI_INDEX,
        "manifests": [
            {
                "mediaType": OCI_MANIFEST,
                "digest": pushed.digest.text,
                "size": pushed.size,
                "annotations": {TAG: "1.0.0"},
            }
        ],
    }
    for path in (folder / "blobs" / "sha256").iterdir():
        assert digest_of(path.read_bytes()).hex == path.name


async def test_foreign_entries_of_the_index_are_retained(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    await push(layout, "1.0.0")
    index = index_of(tmp_path)
    foreign: JsonObject = {"mediaType": "application/x", "digest": "sha256:" + "1" * 64, "size": 1, "x": [1]}
    manifests = index["manifests"]
    assert isinstance(manifests, list)
    changed = {**index, "annotations": {"made": "by hand"}, "manifests": [*manifests, foreign]}
    (tmp_path / REPOSITORY / INDEX_FILE).write_text(json.dumps(changed))
    await push(layout, "2.0.0", b"other")
    after = index_of(tmp_path)
    assert after["annotations"] == {"made": "by hand"}
    assert isinstance(after["manifests"], list)
    assert foreign in after["manifests"]
    assert await layout.tags(REPOSITORY) == ("1.0.0", "2.0.0")


async def test_manifests_without_media_type_are_resolved(tmp_path: Path) -> None:
    """Some tools write manifests without ``mediaType``, or an index for each tag."""
    layout = OciLayout(tmp_path)
    pushed = await push(layout, "1.0.0")
    document = json.loads(blob(tmp_path, pushed).read_bytes())
    del document["mediaType"]
    data = json.dumps(document).encode()
    manifest = await layout.push_manifest(REPOSITORY, "bare", data, OCI_MANIFEST)
    index = json.dumps(
        {
            "schemaVersion": 2,
            "manifests": [{"mediaType": OCI_MANIFEST, "digest": manifest.digest.text, "size": len(data)}],
        }
    ).encode()
    named = await layout.push_manifest(REPOSITORY, "index", index, OCI_INDEX)
    assert await layout.resolve(REPOSITORY, "bare") == manifest
    assert (await layout.manifest(REPOSITORY, named.digest)).descriptor == manifest


async def test_a_tag_for_two_platforms_resolves_to_the_running_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    layout = OciLayout(tmp_path)
    one, other = await push(layout, "1.0.0", b"amd"), await push(layout, "2.0.0", b"arm")
    index = index_of(tmp_path)
    for entry, architecture in zip(find_list(index, "manifests"), ("amd64", "arm64"), strict=True):
        assert isinstance(entry, dict)
        entry["platform"] = {"os": "linux", "architecture": architecture}
        entry["annotations"] = {TAG: "both"}
    (tmp_path / REPOSITORY / INDEX_FILE).write_text(json.dumps(index))
    assert await layout.resolve(REPOSITORY, "both") == other
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert await layout.resolve(REPOSITORY, "both") == one
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(
        ArtifactError, match=r"index\.json: no image for linux/riscv64; the index has linux/amd64, linux/arm64"
    ):
        await layout.resolve(REPOSITORY, "both")


async def test_damaged_blobs_are_detected_and_repaired_by_a_push(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    pushed = await push(layout, "1.0.0", b"the layer")
    manifest = await layout.manifest(REPOSITORY, pushed.digest)
    blob(tmp_path, manifest.layers[0]).write_bytes(b"another l")
    with pytest.raises(DigestError):
        await read(layout, manifest.layers[0])
    blob(tmp_path, pushed).write_bytes(b"{}")
    with pytest.raises(DigestError, match="copy the layout again"):
        await layout.resolve(REPOSITORY, "1.0.0")
    assert await push(layout, "1.0.0", b"the layer") == pushed
    assert await read(layout, manifest.layers[0]) == b"the layer"


async def test_invalid_layouts_are_refused(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    folder = tmp_path / REPOSITORY
    folder.mkdir(parents=True)
    with pytest.raises(ArtifactNotFoundError, match=r"index\.json"):
        await layout.tags(REPOSITORY)
    for text in ("", "[]", '{"manifests":{}}', '{"manifests":[1]}', "\0"):
        (folder / INDEX_FILE).write_text(text)
        with pytest.raises(ArtifactError, match="not an OCI image layout, or it is damaged"):
            await layout.resolve(REPOSITORY, "1.0.0")
    with (folder / INDEX_FILE).open("wb") as file:
        file.truncate(MAX_INDEX + 1)
    with pytest.raises(ArtifactError, match="more than"):
        await layout.tags(REPOSITORY)
    (folder / INDEX_FILE).unlink()
    os.mkfifo(folder / INDEX_FILE)
    with pytest.raises(ArtifactError, match="not a file"):
        await layout.tags(REPOSITORY)
    (folder / INDEX_FILE).unlink()
    (folder / INDEX_FILE).mkdir()
    with pytest.raises(PackageError):
        await layout.tags(REPOSITORY)
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactNotFoundError):
        await layout.tags("file/web")


async def test_a_push_to_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("not a folder")
    with pytest.raises(PackageError):
        await push(OciLayout(tmp_path), "1.0.0")
    layout = OciLayout(tmp_path / ("n" * 300))
    with pytest.raises(RegistryError, match="File name too long") as caught:
        await push(layout, "1.0.0")
    assert caught.value.transient


async def test_concurrent_pushes_lose_no_tag(tmp_path: Path) -> None:
    """Two OciLayouts of one folder are used concurrently, as by two processes. Each of them executes several pushes at the same
    time.
    """
    one, other = OciLayout(tmp_path), OciLayout(tmp_path)
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(push, one, f"1.0.{number}", bytes([number]))
            nursery.start_soon(push, other, f"2.0.{number}", bytes([number]))
    assert len(await one.tags(REPOSITORY)) == 16
    assert len(list((tmp_path / REPOSITORY).iterdir())) == 3


KILLED = """
import io, os, pathlib, signal, sys, trio
from tests.packages.support.registry_contract import push
from wharfinger.packages.registry.oci_layout import OciLayout

left = int(sys.argv[2])

def counted(call):
    def instead(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return instead

for name in ("rename", "fsync", "unlink", "mkdir"):
    setattr(os, name, counted(getattr(os, name)))
io.open = counted(io.open)
trio.run(push, OciLayout(pathlib.Path(sys.argv[1])), "latest", b"new")
"""


def push_killed_at(root: Path, step: int) -> int:
    """Push an artifact in another process, which kills itself at the given step. Return its exit code."""
    command = [sys.executable, "-c", KILLED, str(root), str(step)]
    return subprocess.run(command, cwd=ROOT, timeout=300, check=False).returncode


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_push_killed_at_any_step_leaves_a_complete_artifact(tmp_path: Path) -> None:
    step, killed = 0, True
    while killed:
        step += 3  # A process is needed for each step. The skipped steps differ only in leftovers that are never read.
        root = tmp_path / str(step)
        layout = OciLayout(root)
        old = await push(layout, "latest", b"old")
        done = await trio.to_thread.run_sync(push_killed_at, root, step)
        assert done in {0, -signal.SIGKILL}
        killed = done != 0
        now = await layout.resolve(REPOSITORY, "latest")
        if not killed:
            assert now != old
        manifest = await layout.manifest(REPOSITORY, now.digest)
        assert await read(layout, manifest.layers[0]) in {b"old", b"new"}
        new = await push(layout, "latest", b"new")
        assert await layout.resolve(REPOSITORY, "latest") == new
    assert step > 9


ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "mediaType": st.sampled_from([OCI_MANIFEST, OCI_INDEX, "x", 5]),
        "digest": st.sampled_from(["sha256:" + "0" * 64, "sha256:x", None, 7]),
        "size": st.integers(-1, 2**66) | st.text(max_size=3),
        "annotations": st.dictionaries(st.sampled_from([TAG, "x"]), st.sampled_from(["1.0.0", 5, None]), max_size=2)
        | st.text(max_size=3),
        "platform": st.dictionaries(st.sampled_from(["os", "architecture"]), st.sampled_from(["linux", "amd64", 5]))
        | st.integers(),
    },
)
INDEX = st.binary(max_size=60) | st.fixed_dictionaries(
    {}, optional={"schemaVersion": st.integers(), "manifests": st.lists(ENTRY | st.integers(), max_size=4) | st.text()}
).map(lambda value: json.dumps(value).encode())


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 300))
@given(INDEX)
def test_any_index_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "fuzzed-layout"
    (root / REPOSITORY).mkdir(parents=True, exist_ok=True)
    (root / REPOSITORY / INDEX_FILE).write_bytes(data)

    async def ask() -> None:
        layout = OciLayout(root)
        with suppress(PackageError):
            assert all(isinstance(tag, str) for tag in await layout.tags(REPOSITORY))
        with pytest.raises(PackageError):  # The blobs in the index do not exist.
            await layout.resolve(REPOSITORY, "1.0.0")

    trio.run(ask)
