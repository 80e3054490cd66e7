import io
from pathlib import Path

import pytest

from tests.packages.memory_registry import MemoryRegistry, chart_archive, put
from wharfinger.formats.archive import ArchiveLimits
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.registry import Manifest
from wharfinger.packages.tree import build_tree, is_sound, read_record

LIMITS = ArchiveLimits()


@pytest.fixture
async def manifest() -> Manifest:
    return await put(MemoryRegistry())


async def test_a_tree_is_the_chart_and_its_record(manifest: Manifest, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    build_tree(io.BytesIO(chart_archive()), manifest, tree, LIMITS, should_stop=lambda: False)
    assert sorted(path.name for path in tree.iterdir()) == ["chart", "tree.json"]
    assert (tree / "chart" / "Chart.yaml").exists()
    record = read_record(tree)
    assert record is not None
    assert record.manifest == manifest.descriptor.digest
    assert record.blobs == (manifest.config.digest, manifest.layers[0].digest)
    assert is_sound(tree)


async def test_a_tree_that_was_changed_is_not_sound(manifest: Manifest, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    build_tree(io.BytesIO(chart_archive()), manifest, tree, LIMITS, should_stop=lambda: False)
    (tree / "chart" / "Chart.yaml").write_bytes(b"")
    assert not is_sound(tree)
    assert not is_sound(tmp_path / "absent")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"manifest":"x","blobs":[]}', '{"manifest":1}', '{"blobs":[5]}', "\0"]
)
def test_a_record_that_cannot_be_read_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "tree.json").write_text(text)
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "tree.json") is None
    assert not is_sound(tmp_path)


async def test_what_is_no_chart_makes_no_record(manifest: Manifest, tmp_path: Path) -> None:
    for archive in (b"", chart_archive(version="x")):
        tree = tmp_path / str(len(archive))
        with pytest.raises(ArtifactError):
            build_tree(io.BytesIO(archive), manifest, tree, LIMITS, should_stop=lambda: False)
        assert read_record(tree) is None
