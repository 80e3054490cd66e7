"""Tars that are unpacked onto a real disk, and entries that must never be written."""

import io
import os
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.formats.support.tars import BLOCK, END, gnu_long, gz, hard_link, header, padded, pax, pax_record, tar
from wharfinger.formats.archives.archive import ArchiveLimits, ExtractReport, extract_tar
from wharfinger.formats.archives.archive_stream import ExtractionStoppedError
from wharfinger.formats.errors import ArchiveError

SMALL = ArchiveLimits(
    max_bytes=100_000, max_file_bytes=50_000, max_entries=50, max_ratio=100, max_depth=10, max_header_bytes=4096
)


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def extract(data: bytes, into: Path, limits: ArchiveLimits = SMALL) -> ExtractReport:
    return extract_tar(io.BytesIO(data), into, limits, what="chart.tgz")


def refused(data: bytes, into: Path, limits: ArchiveLimits = SMALL) -> str:
    with pytest.raises(ArchiveError) as caught:
        extract(data, into, limits)
    assert str(caught.value).startswith("chart.tgz: ")
    outside = {path.name for path in into.parent.iterdir()} - {into.name}
    assert outside == set()
    return str(caught.value)


def tree(root: Path) -> dict[str, str]:
    """Return every path below the root, with ``folder``, ``-> target`` or the content of the file."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = "folder" if path.is_dir() else path.read_text()
    return found


@pytest.mark.parametrize("zipped", [False, True])
def test_a_tar_is_unpacked_to_a_tree(into: Path, zipped: bool) -> None:
    data = tar(
        ("chart", None),
        ("chart/Chart.yaml", b"name: x\n"),
        ("chart/templates", None),
        ("chart/templates/a.yaml", b"a" * 1000),
        ("chart/current", "templates/a.yaml"),
        ("chart/later", "not-there-yet"),
        ("chart/not-there-yet", b"now it is\n"),
        hard_link("chart/same", "chart/Chart.yaml"),
        ("chart/empty", b""),
    )

    report = extract(gz(data) if zipped else data, into)

    assert tree(into) == {
        "chart": "folder",
        "chart/Chart.yaml": "name: x\n",
        "chart/current": "-> templates/a.yaml",
        "chart/empty": "",
        "chart/later": "-> not-there-yet",
        "chart/not-there-yet": "now it is\n",
        "chart/same": "name: x\n",
        "chart/templates": "folder",
        "chart/templates/a.yaml": "a" * 1000,
    }
    assert (into / "chart/same").stat().st_ino == (into / "chart/Chart.yaml").stat().st_ino
    assert (into / "chart/later").read_text() == "now it is\n"
    assert report == ExtractReport(
        files=4,
        folders=2,
        symbolic_links=2,
        hard_links=1,
        file_bytes=8 + 1000 + 10,
        archive_bytes=len(gz(data) if zipped else data),
        is_gzip=zipped,
    )


def test_names_that_contain_two_dots_are_unpacked(into: Path) -> None:
    """Names may contain ``..``. A peer refuses them by a substring check (spec/runtime.md 13.6)."""
    names = ["a..b", "..hidden", "dots..", "v1..v2/notes...txt", "..."]

    extract(tar(*((name, name.encode()) for name in names)), into)

    assert {name: (into / name).read_text() for name in names} == {name: name for name in names}


def test_links_are_unpacked_before_and_after_their_target(into: Path) -> None:
    """A link may come before its target. A peer silently drops such links (spec/runtime.md 13.6)."""
    report = extract(tar(("before", "target"), ("target", b"x"), ("after", "target"), ("d/up", "../target")), into)

    assert report.symbolic_links == 3
    for name in ("before", "after", "d/up"):
        assert (into / name).is_symlink()
        assert (into / name).read_text() == "x"


def test_missing_parent_folders_are_created(into: Path) -> None:
    """An archive may have files in a folder that has no entry. A peer fails at such files (spec/runtime.md 13.6)."""
    report = extract(tar(("a/b/c/file", b"x"), ("d/e/link", "f"), ("g/h", None), ("a/b", None)), into)

    assert (into / "a/b/c/file").read_text() == "x"
    assert (into / "d/e/link").is_symlink()
    assert (report.folders, report.files, report.symbolic_links) == (7, 1, 1)
    assert stat.S_IMODE((into / "a/b").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", "a/../b", ".."])
def test_names_that_leave_the_tree_are_refused(into: Path, name: str) -> None:
    refused(tar((name, b"x")), into)
    assert not (into.parent / "out").exists()


@pytest.mark.parametrize("target", ["../out", "/etc/passwd", "a/../../out", ".."])
def test_symbolic_links_that_leave_the_tree_are_refused(into: Path, target: str) -> None:
    assert "symbolic link" in refused(tar(("link", target)), into)


def test_nothing_is_written_through_a_link(into: Path) -> None:
    assert "written through 'd'" in refused(tar(("real", None), ("d", "real"), ("d/file", b"x")), into)
    assert list((into / "real").iterdir()) == []


def test_a_link_redirected_outwards_by_a_later_link_is_refused(into: Path) -> None:
    assert "out of the tree" in refused(tar(("p/q/x", "d/../.."), ("p/q/d", "../..")), into)


def test_hard_links_to_anything_but_an_earlier_file_are_refused(into: Path) -> None:
    secret = into.parent / "secret"
    for members in (
        [hard_link("x", "/etc/passwd")],
        [hard_link("x", "../secret")],
        [("l", "f"), hard_link("x", "l")],
        [hard_link("x", "later"), ("later", b"")],
    ):
        shutil.rmtree(into, ignore_errors=True)
        assert "entry 'x'" in refused(tar(*members), into)
    assert not secret.exists()


@pytest.mark.parametrize("flag", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE])
def test_special_files_are_refused(into: Path, flag: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type = flag
    assert "only files, folders and links are read" in refused(tar(info), into)
    assert list(into.iterdir()) == []


def test_a_repeated_entry_of_another_type_is_refused(into: Path) -> None:
    assert "occurs twice" in refused(tar(("a", b""), ("a", "b")), into)


def test_a_later_file_replaces_an_earlier_one_but_not_its_hard_links(into: Path) -> None:
    report = extract(tar(("a", b"one"), hard_link("kept", "a"), ("a", b"two!"), ("l", "a"), ("l", "kept")), into)

    assert tree(into) == {"a": "two!", "kept": "one", "l": "-> kept"}
    assert (report.files, report.hard_links, report.symbolic_links, report.file_bytes) == (1, 1, 1, 7)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(0o644, 0o600), (0o777, 0o700), (0o6755, 0o700), (0o4644, 0o600), (0, 0o600), (0o2111, 0o700)],
)
def test_modes_give_rights_to_the_owner_only(into: Path, mode: int, expected: int) -> None:
    file, folder = tarfile.TarInfo("file"), tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    file.mode = folder.mode = mode
    mask = os.umask(0)
    try:
        extract(tar(file, folder), into)
    finally:
        os.umask(mask)

    assert stat.S_IMODE((into / "file").stat().st_mode) == expected
    assert stat.S_IMODE((into / "folder").stat().st_mode) == 0o700
    assert stat.S_IMODE(into.stat().st_mode) == 0o700


def test_owner_and_time_of_entries_are_ignored(into: Path) -> None:
    info = tarfile.TarInfo("file")
    info.uid = info.gid = 12345
    info.mtime = 1

    extract(tar(info), into)

    found = (into / "file").stat()
    assert found.st_uid == os.getuid()
    assert found.st_mtime > 1_000_000_000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (tar(("a", b"x" * 50_001)), "entry 'a' has 50001 bytes; the limit is 50000"),
        (tar(*((f"a{n}", b"x" * 40_000) for n in range(3))), "its files have more than 100000 bytes"),
        (tar(*((f"a{n}", b"") for n in range(51))), "more than 50 "),
        (tar(*(("a", b"") for n in range(51))), "more than 50 entries"),
        (tar(("/".join("d" * 11), b"")), "is deeper than 10 levels"),
        (tar(("/".join(["d" * 200] * 6), b"")), "is longer than 1024 bytes"),
        (tar(("n" * 256, b"")), "a path component of more than 255 bytes"),
        (header(size=b"\x80" + b"\0" * 5 + b"\xff" * 6), "the limit is 50000"),
        (pax(pax_record("size", "9" * 19)) + header(), "the limit is 50000"),
        (header(flag=b"x", size=10**9), "an extension header of 1000000000 bytes; the limit is 4096"),
        (gnu_long(b"a/" * 3000) + header() + END, "an extension header of 6001 bytes"),
        (gz(tar(("a", b"\0" * 50_000)) + b"\0" * 3_000_000), "unpacks to more than"),
        (tar(("a", b"")) + b"\0" * 3_000_000, "more than"),
        (gz(tar(("a", b"x" * 5000)))[:-9], "truncated"),
        (gz(tar(("a", b"x")))[:-1], "truncated gzip"),
        (gz(tar(("a", b"x")))[:-8] + b"\0" * 8, "damaged gzip"),
        (tar(("a", b"x" * 600))[: 2 * BLOCK], "truncated"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 100, "compressed with zstd"),
        (b"", "truncated"),
        (b"not a tar at all", "truncated"),
    ],
)
def test_archives_over_a_limit_or_damaged_are_refused(into: Path, data: bytes, reason: str) -> None:
    assert reason in refused(data, into)


def test_a_gzip_bomb_writes_little_to_the_disk(into: Path) -> None:
    bomb = gz(header(b"bomb", size=30_000_000) + b"\0" * 30_000_000 + END)
    limits = ArchiveLimits(max_ratio=100)

    assert "unpacks to more than 100 times its size" in refused(bomb, into, limits)
    assert (into / "bomb").stat().st_size < 30_000_000


def test_consecutive_gzip_members_form_one_tar(into: Path) -> None:
    data = tar(("a", b"x" * 3000), ("b", b"y"))
    parts = [data[at : at + 700] for at in range(0, len(data), 700)]

    assert extract(b"".join(gz(part) for part in parts), into).files == 2
    assert tree(into) == {"a": "x" * 3000, "b": "y"}


def test_extraction_into_a_folder_with_files_is_refused(into: Path) -> None:
    into.mkdir()
    assert extract(tar(("a", b"x")), into).files == 1
    with pytest.raises(FileExistsError, match="not empty"):
        extract(tar(("a", b"x")), into)
    with pytest.raises(NotADirectoryError):
        extract_tar(io.BytesIO(b""), into / "a" / "b", what="x")


def test_extraction_stops_on_request_between_entries_and_within_a_file(into: Path) -> None:
    asked = 0

    def third() -> bool:
        nonlocal asked
        asked += 1
        return asked == 3

    source = io.BytesIO(header(b"big", size=8**7) + b"x" * 8**7 + END)
    with pytest.raises(ExtractionStoppedError, match=r"chart\.tgz: stopped"):
        extract_tar(source, into, what="chart.tgz", should_stop=third)
    assert (into / "big").stat().st_size < 8**7
    assert not issubclass(ExtractionStoppedError, ArchiveError)


def test_no_descriptor_is_left_open(into: Path) -> None:
    before = list(Path("/proc/self/fd").iterdir())
    refused(tar(("a", b"x" * 50_001)), into)
    refused(header(b"a", size=1000) + padded(b"x"), into)
    shutil.rmtree(into)
    extract(tar(("a", b"x")), into)

    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)


@pytest.mark.skipif(shutil.which("tar") is None, reason="tar is not on PATH")
@pytest.mark.parametrize("flags", [["--format=gnu"], ["--format=pax"], ["--format=ustar"], ["--format=v7"], ["-z"]])
def test_a_tree_packed_by_tar_is_unpacked_unchanged(tmp_path: Path, flags: list[str]) -> None:
    source = tmp_path / "source"
    (source / "chart/templates").mkdir(parents=True)
    (source / "chart/Chart.yaml").write_text("name: x\n")
    (source / "chart/templates/run.sh").write_text("#!/bin/sh\n")
    (source / "chart/templates/run.sh").chmod(0o755)
    (source / "chart/link").symlink_to("templates/run.sh")
    os.link(source / "chart/Chart.yaml", source / "chart/same")
    if flags not in (["--format=v7"], ["--format=ustar"]):
        (source / "chart" / ("long" * 40)).write_text("long")
    packed = subprocess.run(
        ["tar", *flags, "-c", "-C", str(source), "."], capture_output=True, check=True, timeout=300
    ).stdout

    extract(packed, tmp_path / "scratch")

    assert tree(tmp_path / "scratch") == tree(source)
    assert os.access(tmp_path / "scratch/chart/templates/run.sh", os.X_OK)


def test_whiteouts_are_ordinary_files_outside_of_layers(into: Path) -> None:
    extract(tar(("a", b""), (".wh.a", b"x")), into)
    assert tree(into) == {".wh.a": "x", "a": ""}


def test_a_hard_link_counts_as_a_separate_file(into: Path) -> None:
    """A program that reads the unpacked tree reads a file once for each of its names, so each name counts."""
    most = SMALL.max_bytes // 40_000
    links = [hard_link(f"link-{number}", "big") for number in range(most)]

    assert "its files have more than 100000 bytes" in refused(tar(("big", b"x" * 40_000), *links), into)
    shutil.rmtree(into)
    report = extract(tar(("big", b"x" * 40_000), *links[1:]), into)
    assert (report.hard_links, report.file_bytes) == (most - 1, 40_000)


def test_links_that_leave_the_top_folder_are_refused(into: Path) -> None:
    """The top folder may be moved later, and links that lead out of it would then lead to other files."""
    for target in ("../secret", "../chart/a", "d/../../secret", ".."):
        data = tar(("chart/a", b""), ("chart/d", None), ("chart/l", target))
        extract(data, into, ArchiveLimits())
        shutil.rmtree(into)
        with pytest.raises(ArchiveError, match="'chart/l' is a symbolic link out of the tree"):
            extract_tar(io.BytesIO(data), into, ArchiveLimits(), what="chart.tgz", within_top=True)
        shutil.rmtree(into)
    data = tar(("chart/a", b""), ("chart/d/l", "../a"), ("chart/d/m", ".."))
    extract_tar(io.BytesIO(data), into, ArchiveLimits(), what="chart.tgz", within_top=True)
    shutil.rmtree(into)
    with pytest.raises(ArchiveError, match="symbolic link out of the tree"):
        extract_tar(io.BytesIO(tar(("top", "../x"))), into, SMALL, what="chart.tgz", within_top=True)


def test_links_to_folders_that_multiply_paths_are_refused(into: Path) -> None:
    """With links to folders, an archive of a few kilobytes could give one file 2 to the power of 30 paths."""
    doubling = [(f"d{n}/{name}", f"../d{n - 1}") for n in range(1, 15) for name in ("a", "b")]
    assert "more than 50 paths if links to folders are followed" in refused(tar(("d0/f", b""), *doubling), into)
    shutil.rmtree(into)
    assert "more than 50 paths" in refused(tar(("d/a", "."), ("d/b", ".")), into)
    shutil.rmtree(into)
    extract(tar(("d0/f", b""), *doubling[:4], ("nowhere", "d9"), ("file", "d0/f"), ("same", "d0")), into)
    shutil.rmtree(into)
    extract(tar(("d/around", "."), ("d/f", b"")), into, ArchiveLimits(max_entries=100))
