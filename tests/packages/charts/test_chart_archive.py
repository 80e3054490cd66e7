import gzip
import io
import tarfile
from pathlib import Path

import pytest

from tests.packages.support.charts import WEB_SERVICE
from wharfinger.formats.archives.archive import ArchiveLimits
from wharfinger.formats.archives.archive_stream import ExtractionStoppedError
from wharfinger.packages.charts.chart import pack_chart
from wharfinger.packages.charts.chart_archive import unpack_chart
from wharfinger.packages.errors import ArtifactError

LIMITS = ArchiveLimits()


def archive(*names: str) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        for name in names:
            opened.addfile(tarfile.TarInfo(name), io.BytesIO())
    return io.BytesIO(packed.getvalue())


def test_a_packed_chart_is_unpacked_unchanged(tmp_path: Path) -> None:
    packed = pack_chart(WEB_SERVICE)
    folder = unpack_chart(io.BytesIO(packed), tmp_path, what="x", limits=LIMITS)
    assert folder == tmp_path / "web-service"
    assert pack_chart(folder) == packed


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], "nothing"),
        (["web/values.yaml"], "web"),
        (["Chart.yaml"], "Chart.yaml"),
        (["web/Chart.yaml", "other/Chart.yaml"], "other, web"),
        (["web/Chart.yaml", "README"], "README, web"),
        (["web/Chart.yaml/x"], "web"),
    ],
)
def test_an_archive_without_exactly_one_chart_folder_is_refused(names: list[str], found: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=rf"x: expected one folder with a Chart\.yaml, found {found};"):
        unpack_chart(archive(*names), tmp_path, what="x", limits=LIMITS)


@pytest.mark.parametrize(
    ("data", "limits"),
    [
        (archive("../Chart.yaml").getvalue(), LIMITS),
        (archive("/etc/Chart.yaml").getvalue(), LIMITS),
        (b"", LIMITS),
        (b"\x1f\x8b broken", LIMITS),
        (gzip.compress(b"no tar at all" * 100), LIMITS),
        (pack_chart(WEB_SERVICE)[:-20], LIMITS),
        (pack_chart(WEB_SERVICE), ArchiveLimits(max_entries=3)),
        (pack_chart(WEB_SERVICE), ArchiveLimits(max_bytes=100)),
    ],
)
def test_invalid_and_oversized_archives_are_refused_without_leftovers(
    data: bytes, limits: ArchiveLimits, tmp_path: Path
) -> None:
    into = tmp_path / "in" / "here"
    into.mkdir(parents=True)
    with pytest.raises(ArtifactError, match="x: "):
        unpack_chart(io.BytesIO(data), into, what="x", limits=limits)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_unpacking_can_be_stopped(tmp_path: Path) -> None:
    with pytest.raises(ExtractionStoppedError):
        unpack_chart(io.BytesIO(pack_chart(WEB_SERVICE)), tmp_path, what="x", limits=LIMITS, should_stop=lambda: True)


def test_a_link_out_of_the_chart_folder_is_refused(tmp_path: Path) -> None:
    """A link in the archive points to a file beside the folder into which the archive is unpacked."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        opened.addfile(tarfile.TarInfo("web/Chart.yaml"), io.BytesIO())
        link = tarfile.TarInfo("web/values.yaml")
        link.type, link.linkname = tarfile.SYMTYPE, "../tree.json"
        opened.addfile(link)
    packed.seek(0)
    with pytest.raises(ArtifactError, match=r"'web/values.yaml' is a symbolic link out of the tree, to '../tree.json'"):
        unpack_chart(packed, tmp_path, what="x", limits=LIMITS)
