"""The reader of tars. It reads what usual tools write, and limits the size of extensions.

If the type of an entry is not supported, the error contains the name and the type of the entry.
"""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.tars import BLOCK, END, gnu_long, gz, hard_link, header, octal, padded, pax, pax_record, tar
from wharfinger.formats.archives.archive_stream import ArchiveStream, StreamLimits
from wharfinger.formats.archives.tar_reader import Entry, Kind, TarReader
from wharfinger.formats.errors import ArchiveError

GENEROUS = StreamLimits(max_read=10**7, max_bytes=10**7, max_members=100, max_ratio=2000)


def entries(data: bytes, *, max_header_bytes: int = 4096) -> list[tuple[Entry, bytes]]:
    """Return every entry of a tar with its data."""
    stream = ArchiveStream(io.BytesIO(data), GENEROUS, what="layer", should_stop=lambda: False)
    reader = TarReader(stream, what="layer", max_header_bytes=max_header_bytes)
    found = []
    while (entry := reader.next_entry()) is not None:
        found.append((entry, b"".join(stream.pieces(entry.size))))
        reader.skip_padding(entry.size)
    return found


def only(data: bytes) -> Entry:
    ((entry, _),) = entries(data)
    return entry


def refused(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        entries(data)
    return str(caught.value)


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("zipped", [False, True])
def test_tars_of_tarfile_are_read(dialect: int, zipped: bool) -> None:
    data = tar(
        ("folder", None),
        ("folder/a.txt", b"a" * 700),
        ("folder/empty", b""),
        ("folder/" + "d" * 90 + "/" + "n" * 90, b"long"),
        ("link", "folder/a.txt"),
        hard_link("hard", "folder/a.txt"),
        dialect=dialect,
    )

    found = entries(gz(data) if zipped else data)

    assert [(entry.kind, entry.name, entry.target, content) for entry, content in found] == [
        (Kind.DIRECTORY, "folder/" if dialect == tarfile.PAX_FORMAT else found[0][0].name, "", b""),
        (Kind.FILE, "folder/a.txt", "", b"a" * 700),
        (Kind.FILE, "folder/empty", "", b""),
        (Kind.FILE, "folder/" + "d" * 90 + "/" + "n" * 90, "", b"long"),
        (Kind.SYMLINK, "link", "folder/a.txt", b""),
        (Kind.HARD_LINK, "hard", "folder/a.txt", b""),
    ]
    assert found[0][0].name.rstrip("/") == "folder"


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=120)


@given(
    st.lists(st.tuples(NAMES, st.binary(max_size=1500)), max_size=4),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_any_names_and_data_are_read_back(files: list[tuple[str, bytes]], dialect: int) -> None:
    found = entries(tar(*files, dialect=dialect))

    assert [(entry.name, content) for entry, content in found] == files


def test_any_executable_bit_makes_a_file_executable() -> None:
    for mode, expected in [(0o644, False), (0o755, True), (0o100, True), (0o010, True), (0o001, True), (0o7666, False)]:
        assert only(header(mode=mode) + END).is_executable is expected


def test_a_name_prefix_applies_to_ustar_but_not_to_gnu() -> None:
    assert only(header(b"name", prefix=b"some/folder") + END).name == "some/folder/name"
    assert only(header(b"name", prefix=b"14567012345", magic=b"ustar  \0") + END).name == "name"
    assert only(header(b"name", prefix=b"junk", magic=b"\0" * 8) + END).name == "name"


@pytest.mark.parametrize(
    ("flag", "kind"), [(b"0", Kind.FILE), (b"\0", Kind.FILE), (b"7", Kind.FILE), (b"5", Kind.DIRECTORY)]
)
def test_type_flags_of_files_and_folders_are_recognized(flag: bytes, kind: Kind) -> None:
    assert only(header(flag=flag) + END).kind is kind


def test_a_file_whose_name_ends_in_a_slash_is_a_folder() -> None:
    assert only(header(b"folder/", flag=b"\0", size=0) + END).kind is Kind.DIRECTORY


def test_the_size_of_entries_without_data_is_ignored() -> None:
    for flag, target in [(b"5", b""), (b"2", b"x"), (b"1", b"x")]:
        first, second = entries(header(flag=flag, target=target, size=4096) + header(b"next") + END)
        assert (first[0].size, second[0].name) == (0, "next")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        (b"3", "a character device"),
        (b"4", "a block device"),
        (b"6", "a FIFO"),
        (b"S", "a sparse file"),
        (b"D", "a GNU folder listing"),
        (b"M", "a part of a multi-volume file"),
        (b"V", "a volume label"),
        (b"N", "a list of renames"),
        (b"Z", "of unknown type 'Z'"),
        (b"\xff", "of unknown type '\u00ff'"),
    ],
)
def test_unsupported_types_are_refused_by_name(flag: bytes, said: str) -> None:
    assert refused(header(b"dev/x", flag=flag) + END).startswith(f"layer: entry 'dev/x' is {said}; only files,")


def test_devices_and_fifos_written_by_tarfile_are_refused() -> None:
    for flag in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
        info = tarfile.TarInfo("x")
        info.type = flag
        assert "only files, folders and links are read" in refused(tar(info))


@pytest.mark.parametrize("key", ["GNU.sparse.major", "GNU.sparse.map", "GNU.sparse.size"])
def test_pax_sparse_files_are_refused(key: str) -> None:
    assert "sparse file" in refused(pax(pax_record(key, "1")) + header() + END)


def test_pax_names_override_gnu_names_and_both_override_the_header() -> None:
    assert only(gnu_long(b"gnu") + header(b"name") + END).name == "gnu"
    assert only(pax(pax_record("path", "pax")) + gnu_long(b"gnu") + header(b"name") + END).name == "pax"
    link = only(gnu_long(b"far", flag=b"K") + header(b"name", flag=b"2", target=b"near") + END)
    assert (link.name, link.target) == ("name", "far")
    link = only(pax(pax_record("linkpath", "pax")) + header(b"name", flag=b"2", target=b"near") + END)
    assert link.target == "pax"
    assert only(pax(pax_record("path", "")) + header(b"name") + END).name == "name"


def test_a_pax_size_overrides_the_size_of_the_header() -> None:
    data = pax(pax_record("size", "5")) + header(size=0) + padded(b"hello") + header(b"next") + END

    assert [content for _, content in entries(data)] == [b"hello", b""]
    for size in ("-1", "5x", "", "9" * 30, "\u0665"):
        if size:
            assert "has a size of" in refused(pax(pax_record("size", size)) + header() + END)


def test_an_extension_applies_only_to_the_next_entry() -> None:
    first, second = entries(pax(pax_record("path", "pax")) + header(b"one") + header(b"two") + END)

    assert (first[0].name, second[0].name) == ("pax", "two")


def test_a_header_bomb_is_refused_by_its_declared_size() -> None:
    for flag in (b"x", b"g", b"L", b"K"):
        for size in (4097, 10**9, 8**11 - 1):
            assert f"an extension header of {size} bytes" in refused(header(flag=flag, size=size))


def test_a_chain_of_extensions_is_refused() -> None:
    one = pax(pax_record("comment", "x"))

    assert only(one * 8 + header(b"name") + END).name == "name"
    assert "more than 8 extension headers in a row" in refused(one * 9 + header() + END)
    assert "more than 8 extension headers in a row" in refused(gnu_long(b"x") * 1000)


def test_global_headers_may_have_comments_but_no_names() -> None:
    comment = pax(pax_record("comment", "0123abc"), flag=b"g")

    assert only(comment + header(b"name") + END).name == "name"
    for key in ("path", "linkpath", "size"):
        assert f"a global header sets {key!r}" in refused(pax(pax_record(key, "1"), flag=b"g") + header() + END)


@pytest.mark.parametrize(
    "body",
    [
        pax_record("path", "x")[:-1] + b"!",
        b"1000000000 a=b\n",
        b"x",
        b"5 a=",
        b"0 a=b\n",
        b"6 a=b",
        b"99 a=b\n",
        b"4 =b\n",
        b"5 ab\n",
        b"3 a\n",
        b"-6 a=b\n",
        b"1 \n",
        b"\0" * 10,
    ],
)
def test_damaged_pax_headers_are_refused(body: bytes) -> None:
    assert "damaged pax header" in refused(pax(body) + header() + END)


def test_names_that_are_not_utf_8_are_refused() -> None:
    assert "not UTF-8" in refused(header(b"\xff") + END)
    assert "not UTF-8" in refused(gnu_long(b"\xff") + header() + END)
    assert "not UTF-8" in refused(header(flag=b"2", target=b"\xff") + END)
    body = pax_record("path", "??").replace(b"??", b"\xff\xfe")
    assert "not UTF-8" in refused(pax(body) + header() + END)
    other = pax_record("SCHILY.xattr.x", "??").replace(b"??", b"\xff\xfe")
    assert only(pax(other) + header(b"name") + END).name == "name"


def test_numbers_are_read_in_octal_and_in_base_256() -> None:
    assert entries(header(size=b"\x80" + b"\0" * 10 + b"\x05") + padded(b"hello") + END)[0][1] == b"hello"
    assert entries(header(size=b"         5 \0") + padded(b"hello") + END)[0][1] == b"hello"
    assert only(header(size=b"\0" * 12, mode=b"\0" * 8) + END).size == 0
    for size in (b"\xff" * 12, b"9".ljust(12, b"\0"), b"-1".ljust(12, b"\0"), b"0x5".ljust(12, b"\0")):
        assert "is not a number" in refused(header(size=size) + END)


def test_signed_checksums_of_old_writers_are_accepted() -> None:
    block = bytearray(header("\u00e9".encode()))
    blank = bytes(block[:148] + b" " * 8 + block[156:])
    signed = sum(byte - 256 if byte > 127 else byte for byte in blank)
    assert signed != sum(blank)
    block[148:156] = octal(signed, 7) + b" "

    assert only(bytes(block) + END).name == "\u00e9"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "truncated: it ends without an end mark"),
        (b"x" * 100, "truncated: it ends without an end mark"),
        (b"x" * BLOCK, "not a tar, or damaged: 'xxxxxxxx' is not a number"),
        (header()[:-1], "truncated: it ends without an end mark"),
        (header(), "truncated: it ends without an end mark"),
        (header(size=5) + b"hel", "truncated: it ends 2 bytes before it should"),
        (header(size=5) + b"hello", "truncated: it ends 507 bytes before it should"),
        (header(size=5) + padded(b"hello"), "truncated: it ends without an end mark"),
        (pax(pax_record("path", "x")) + END, "truncated: an extension header without its entry"),
        (gz(pax(pax_record("path", "x"))), "truncated: it ends without an end mark"),
        (header() + b"\0" * BLOCK + header(b"hidden") + END, "data follows a lone block of zeros"),
        (b"\1" + header()[1:], "checksum is wrong"),
        (b"<html>" + b" " * BLOCK, "not a tar"),
    ],
)
def test_damaged_tars_are_refused(data: bytes, reason: str) -> None:
    assert reason in refused(data)


def test_an_archive_may_end_without_the_second_zero_block() -> None:
    assert entries(END) == []
    assert len(entries(header() + END)) == 1
    assert len(entries(header() + b"\0" * BLOCK)) == 1
    assert len(entries(gz(header()))) == 1
    assert len(entries(header() + b"\0" * 10240)) == 1
