"""The layers of an image, which are unpacked on top of each other, and layers that are refused."""

import io
import shutil
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.archives.test_archive import SMALL, tree
from tests.formats.support.tars import gz, hard_link, tar
from tests.scale import scaled
from wharfinger.formats.archives.archive import ArchiveLimits, ExtractReport, extract_layers
from wharfinger.formats.archives.archive_stream import ExtractionStoppedError
from wharfinger.formats.errors import ArchiveError


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def layered(into: Path, *layers: bytes, limits: ArchiveLimits = SMALL) -> ExtractReport:
    named = [(f"layer {number}", io.BytesIO(layer)) for number, layer in enumerate(layers)]
    return extract_layers(named, into, limits, what="image")


def test_layers_are_unpacked_on_top_of_each_other(into: Path) -> None:
    report = layered(
        into,
        tar(("bin", None), ("bin/a", b"one"), ("bin/b", b"b"), ("etc/conf", b"old"), ("link", "etc/conf")),
        gz(tar(("/bin/a", b"two"), ("./etc/more", b"more"), hard_link("bin/same", "/bin/b"))),
        tar(("bin/.wh.b", b""), ("etc/conf", b"new")),
    )

    assert tree(into) == {
        "bin": "folder",
        "bin/a": "two",
        "bin/same": "b",
        "etc": "folder",
        "etc/conf": "new",
        "etc/more": "more",
        "link": "-> etc/conf",
    }
    assert (into / "link").read_text() == "new"
    assert report.is_gzip
    assert report.file_bytes == 3 + 1 + 3 + 3 + 4 + 3


@pytest.mark.parametrize("first", [True, False])
def test_whiteouts_remove_entries_of_lower_layers_only(into: Path, first: bool) -> None:
    """Whiteouts apply only to lower layers, and may come before or after other entries of their own layer (image-spec 1.1)."""
    below = tar(("d/old", b""), ("d/sub/old", b""), ("e/old", b""), ("e/sub/deep/old", b""), ("f", b""), ("g/x", b""))
    own: list[tuple[str, bytes | str | None]] = [("d/new", b""), ("d/sub/new", b""), ("e/sub/new", b""), ("f", b"own")]
    hide: list[tuple[str, bytes | str | None]] = [
        ("d/.wh..wh..opq", b""),
        ("e/.wh.sub", b""),
        (".wh.f", b""),
        (".wh.g", b""),
        (".wh.never-there", b""),
        ("not/there/.wh.x", b""),
        ("not/there/.wh..wh..opq", b""),
    ]

    layered(into, below, tar(*(hide + own if first else own + hide)))

    assert tree(into) == {
        "d": "folder",
        "d/new": "",
        "d/sub": "folder",
        "d/sub/new": "",
        "e": "folder",
        "e/old": "",
        "e/sub": "folder",
        "e/sub/new": "",
        "f": "own",
    }


def test_an_opaque_root_removes_all_lower_layers(into: Path) -> None:
    layered(into, tar(("a/b", b""), ("c", "a")), tar((".wh..wh..opq", b""), ("new", b"")))
    assert tree(into) == {"new": ""}


def test_a_layer_may_change_the_type_of_an_entry(into: Path) -> None:
    layered(
        into,
        tar(("file", b"x"), ("folder/inside/deep", b"x"), ("link", "folder"), ("other", "file")),
        tar(("file", None), ("file/now", b"y"), ("folder", b"z"), ("link", None)),
        tar(("link/in", b"i"), ("other", b"o"), ("folder", "link")),
    )
    assert tree(into) == {
        "file": "folder",
        "file/now": "y",
        "folder": "-> link",
        "link": "folder",
        "link/in": "i",
        "other": "o",
    }


def test_a_hidden_entry_may_be_added_again(into: Path) -> None:
    layered(
        into, tar(("a/b/c", b"1")), tar((".wh.a", b"")), tar(("a/b", b"2")), tar(("a/.wh.b", b"")), tar(("a/b/c", b"3"))
    )
    assert tree(into) == {"a": "folder", "a/b": "folder", "a/b/c": "3"}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([("d/file", b"x")], "would be written through 'd', a symbolic link"),
        ([("d/.wh.file", b"")], "would reach through 'd', a symbolic link"),
        ([("d/.wh..wh..opq", b"")], "would reach through 'd', a symbolic link"),
        ([("f/x", b"x")], "would be written through 'f', a file"),
        ([("f/.wh.x", b"")], "would reach through 'f', a file"),
        ([("up", "../out")], "a symbolic link out of the tree"),
        ([("up", "/etc/passwd")], "a symbolic link to the absolute path"),
        ([("real/l", "m/../.."), ("real/m", "../..")], "out of the tree"),
        ([("../x", b"")], "leads out of the tree"),
        ([("/../x", b"")], "leads out of the tree"),
        ([(".wh...", b"")], "a whiteout of a name that no entry can have"),
        ([(".wh..", b"")], "a whiteout of a name that no entry can have"),
        ([(".wh.", b"")], "a whiteout of a name that no entry can have"),
        ([(".wh..wh.plnk", b"")], "a whiteout of a name that no entry can have"),
        ([(".wh.f", b"x")], "named like a whiteout, but is not an empty file"),
        ([(".wh.f", None)], "named like a whiteout, but is not an empty file"),
        ([(".wh.f", "f")], "named like a whiteout, but is not an empty file"),
        ([hard_link(".wh.f", "f")], "named like a whiteout, but is not an empty file"),
        ([(".wh.x/y", b"")], "lies in a folder whose name starts with '.wh.'"),
        ([(".wh.x/.wh.y", b"")], "lies in a folder whose name starts with '.wh.'"),
        ([hard_link("real", "real/deep")], "is a hard link to itself"),
        ([hard_link("x", "absent")], "is not a file earlier"),
        ([("new", b""), ("new", None)], "occurs twice: as file and as folder"),
        ([("real/more", b""), ("real", b"")], "occurs twice: as folder and as file"),
    ],
)
def test_layers_that_write_through_links_are_refused(
    into: Path, members: list[tuple[str, bytes | str | None] | tarfile.TarInfo], reason: str
) -> None:
    below = tar(("real/deep", b"x"), ("d", "real"), ("f", b""))
    with pytest.raises(ArchiveError) as caught:
        layered(into, below, tar(*members))
    assert str(caught.value).startswith("layer 1: ")
    assert reason in str(caught.value)
    assert {path.name for path in into.parent.iterdir()} == {into.name}
    if (into / "real/deep").exists():
        assert (into / "real/deep").read_bytes() == b"x"


def test_limits_apply_to_all_layers_together(into: Path) -> None:
    big = tar(("big", b"x" * 40_000))
    for layers, reason in (
        ([big, big, big], "layer 2: its files have more than 100000 bytes"),
        (
            [tar(*((f"a{n}", b"") for n in range(30))), tar(*((f"a{n}", b"") for n in range(30)))],
            "more than 50 entries",
        ),
        ([gz(tar(("a", b"")) + b"\0" * 900_000)] * 3, "layer 1: unpacks to more than"),
    ):
        shutil.rmtree(into, ignore_errors=True)
        with pytest.raises(ArchiveError) as caught:
            layered(into, *layers)
        assert reason in str(caught.value)


@pytest.mark.unmeasured
def test_the_work_of_whiteouts_is_bounded(into: Path) -> None:
    limits = ArchiveLimits(max_entries=2000)
    many: list[tuple[str, bytes | str | None]] = [(f"d/{number}", b"") for number in range(990)]
    opaque: list[tuple[str, bytes | str | None]] = [("d/.wh..wh..opq", b"")]
    layered(into, tar(*many), tar(*many, *opaque), limits=limits)
    shutil.rmtree(into)
    with pytest.raises(ArchiveError, match="has too many whiteouts"):
        layered(into, tar(("a", b"")), tar(*many, *(opaque * 900)), limits=limits)


def test_extraction_of_layers_stops_on_request(into: Path) -> None:
    layers = [("layer", io.BytesIO(tar(("a", b""))))]
    with pytest.raises(ExtractionStoppedError):
        extract_layers(layers, into, SMALL, what="image", should_stop=lambda: True)


def test_extracting_no_layers_creates_an_empty_folder(into: Path) -> None:
    assert layered(into).files == 0
    assert list(into.iterdir()) == []
    (into / "x").touch()
    with pytest.raises(FileExistsError):
        layered(into, tar(("a", b"")))


Member = tuple[str, bytes | str | None]
NAMES = st.sampled_from(["a", "b", "c", "a/a", "a/b", "b/a", "a/b/c", "a/b/a", "b/c/a"])
MARKS = st.sampled_from([".wh..wh..opq", ".wh.a", ".wh.b", "a/.wh..wh..opq", "a/.wh.b", "a/.wh.a", "b/.wh.c"])
MEMBERS = st.tuples(NAMES, st.binary(min_size=1, max_size=2) | st.none()) | st.tuples(MARKS, st.just(b""))


def model(layers: list[list[Member]]) -> dict[str, bytes | None]:
    """Return the tree as a slow model of image-spec computes it. For each layer, whiteouts hide lower entries first, and then the
    entries of the layer are added."""
    found: dict[str, bytes | None] = {}
    for layer in layers:
        for name, _ in layer:
            folder, _, mark = name.rpartition("/")
            inside = f"{folder}/" if folder else ""
            if mark == ".wh..wh..opq":
                found = {path: data for path, data in found.items() if not path.startswith(inside)}
            elif mark.startswith(".wh."):
                gone = inside + mark.removeprefix(".wh.")
                found = {path: data for path, data in found.items() if path != gone and not path.startswith(gone + "/")}
        for name, data in layer:
            if ".wh." in name:
                continue
            parents = [name[:at] for at, letter in enumerate(name) if letter == "/"]
            for parent in parents:
                found.setdefault(parent, None)
            if data is not None:
                found = {path: kept for path, kept in found.items() if not path.startswith(name + "/")}
            assert isinstance(data, bytes | None)
            found[name] = data
    return found


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 120))
@given(layers=st.lists(st.lists(MEMBERS, max_size=5), max_size=4))
def test_layers_agree_with_a_model_of_the_image_specification(
    tmp_path_factory: pytest.TempPathFactory, layers: list[list[Member]]
) -> None:
    into = tmp_path_factory.getbasetemp() / "modelled"
    shutil.rmtree(into, ignore_errors=True)
    try:
        layered(into, *(tar(*layer) for layer in layers))
    except ArchiveError as error:
        # The reader intentionally refuses names that occur with two types, and paths through files. The model knows neither.
        assert "occurs twice" in str(error) or "would be written through" in str(error) or "would reach" in str(error)
        return
    found = {
        path.relative_to(into).as_posix(): None if path.is_dir() else path.read_bytes() for path in into.rglob("*")
    }
    assert found == model(layers)
