import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packages.support.memory_registry import MemoryRegistry, chart_archive, packed, put, put_image
from tests.packages.support.store_help import edit
from tests.scale import scaled
from wharfinger.formats.archives.archive import ArchiveLimits
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.registry.registry import Manifest
from wharfinger.packages.store.tree import build_tree, is_sound, read_record, sound_record

LIMITS = ArchiveLimits()


@pytest.fixture
async def manifest() -> Manifest:
    return await put(MemoryRegistry())


@pytest.fixture
async def image() -> Manifest:
    return await put_image(MemoryRegistry(), packed({"a": b"1"}), packed({"b": b"2"}))


def build(manifest: Manifest, tree: Path, *archives: bytes) -> None:
    layers = [(f"layer {number}", io.BytesIO(archive)) for number, archive in enumerate(archives)]
    build_tree(layers, manifest, tree, LIMITS, should_stop=lambda: False)


async def test_a_tree_contains_the_chart_and_its_record(manifest: Manifest, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    build(manifest, tree, chart_archive())
    assert sorted(path.name for path in tree.iterdir()) == ["package", "tree.json"]
    assert (tree / "package" / "Chart.yaml").exists()
    record = read_record(tree)
    assert record is not None
    assert record.manifest == manifest
    assert is_sound(tree)
    assert sound_record(tree) == record


async def test_a_tree_of_an_image_contains_the_merged_layers(image: Manifest, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    build(image, tree, packed({"a": b"1", "c": b""}), packed({"b": b"2", ".wh.c": b""}))
    assert sorted(path.name for path in (tree / "package").iterdir()) == ["a", "b"]
    record = read_record(tree)
    assert record is not None
    assert record.manifest == image
    assert is_sound(tree)


async def test_a_changed_tree_is_not_sound(manifest: Manifest, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    build(manifest, tree, chart_archive())
    edit(tree / "package" / "Chart.yaml")
    assert not is_sound(tree)
    assert sound_record(tree) is None
    assert read_record(tree) is not None
    assert not is_sound(tmp_path / "absent")


async def test_a_tree_is_read_only_and_changes_are_logged(
    image: Manifest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tree = tmp_path / ("0" * 64)
    build(image, tree, packed({"lib/a.py": b"1", "run": b""}))
    for path in (tree / "package", *(tree / "package").rglob("*")):
        assert not path.stat().st_mode & 0o222
    assert is_sound(tree)
    os.utime(tree / "tree.json", (1, 1))
    assert is_sound(tree)
    assert caplog.messages == []
    os.utime(tree / "tree.json")
    edit(tree / "package/lib/a.pyc")
    os.utime(tree / "tree.json", ns=(0, (tree / "package/lib").stat().st_ctime_ns - 1))
    assert not is_sound(tree)
    (message,) = caplog.messages
    assert message.startswith(f"package sha256:{'0' * 64}: its files have changed since they were unpacked")
    assert message.endswith("Changed since: 'lib', 'lib/a.pyc'")
    (tree / "tree.json").unlink()
    assert not is_sound(tree)
    assert "metadata file cannot be read" in caplog.messages[1]
    assert not is_sound(tmp_path / "absent")
    assert len(caplog.messages) == 2


async def test_a_tree_with_too_many_files_is_not_created(
    image: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wharfinger.packages.files.disk_files.MAX_NAMES", 1)
    with pytest.raises(ArtifactError, match="files and folders, or folders nested deeper than"):
        build(image, tmp_path / "tree", packed({"a": b"", "b": b""}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"manifest":"x","blobs":[]}',
        '{"manifest":1}',
        '{"manifest":{"descriptor":{"mediaType":"a/b","digest":"x","size":1}}}',
        "\0",
    ],
)
def test_an_unreadable_record_is_ignored(text: str, tmp_path: Path) -> None:
    (tmp_path / "tree.json").write_text(text)
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "tree.json") is None
    assert not is_sound(tmp_path)


async def test_an_invalid_package_gets_no_record(manifest: Manifest, image: Manifest, tmp_path: Path) -> None:
    for number, (one, archive) in enumerate(
        [(manifest, b""), (manifest, packed({"Chart.yaml": b""})), (image, b""), (image, packed({}))]
    ):
        tree = tmp_path / str(number)
        with pytest.raises(ArtifactError):
            build(one, tree, archive)
        assert read_record(tree) is None


@settings(max_examples=scaled(5_000, 200))
@given(data=st.data())
def test_any_damaged_record_is_read_or_ignored(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    tree = tmp_path_factory.getbasetemp() / "fuzzed-tree"
    tree.mkdir(exist_ok=True)
    digest = "sha256:" + "0" * 64
    entry = {"mediaType": "a/b", "digest": digest, "size": 1}
    whole = json.dumps({"manifest": {"descriptor": entry, "config": entry, "layers": [entry]}, "content": ""}).encode()
    at = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(0, 5))
    (tree / "tree.json").write_bytes(whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + cut :])
    record = read_record(tree)
    assert record is None or isinstance(record.manifest, Manifest)
