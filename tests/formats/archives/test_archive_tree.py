"""The model of the tree of files in an archive, without a disk."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.archives.archive_tree import ArchiveTree, Placed, TreeLimits
from wharfinger.formats.archives.tar_reader import Entry, Kind
from wharfinger.formats.errors import ArchiveError

LIMITS = TreeLimits(max_entries=200, max_depth=5, max_name_bytes=200)


def file(name: str) -> Entry:
    return Entry(Kind.FILE, name, "", 0, is_executable=False)


def folder(name: str) -> Entry:
    return Entry(Kind.DIRECTORY, name, "", 0, is_executable=False)


def link(name: str, target: str) -> Entry:
    return Entry(Kind.SYMLINK, name, target, 0, is_executable=False)


def hard(name: str, target: str) -> Entry:
    return Entry(Kind.HARD_LINK, name, target, 0, is_executable=False)


def place(*entries: Entry, limits: TreeLimits = LIMITS) -> list[Placed]:
    tree = ArchiveTree(limits, what="layer")
    placed = [tree.place(entry) for entry in entries]
    tree.check_links()
    return placed


def refused(*entries: Entry, limits: TreeLimits = LIMITS) -> str:
    with pytest.raises(ArchiveError) as caught:
        place(*entries, limits=limits)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a", ("a",)),
        ("./a", ("a",)),
        ("a//b/./c/", ("a", "b", "c")),
        ("a..b", ("a..b",)),
        ("..a/b..", ("..a", "b..")),
        ("...", ("...",)),
        ("a\\..\\b", ("a\\..\\b",)),
        ("caf\u00e9 \U0001f600", ("caf\u00e9 \U0001f600",)),
        ("C:", ("C:",)),
    ],
)
def test_legal_names_are_split_into_parts(name: str, path: tuple[str, ...]) -> None:
    assert place(file(name))[0].path == path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/etc/passwd", "is absolute"),
        ("//x", "is absolute"),
        ("..", "leads out of the tree with '..'"),
        ("../x", "leads out of the tree with '..'"),
        ("a/../b", "leads out of the tree with '..'"),
        ("a/..", "leads out of the tree with '..'"),
        ("a/./../b", "leads out of the tree with '..'"),
        ("a\0b", "has a control character"),
        ("a\nb", "has a control character"),
        ("a\x7f", "has a control character"),
        ("", "has no name"),
        (".", "has no name"),
        ("1/2/3/4/5/6", "is deeper than 5 levels"),
        ("a" * 201, "is longer than 200 bytes"),
        ("\u00e9" * 101, "is longer than 200 bytes"),
    ],
)
def test_invalid_names_are_refused(name: str, reason: str) -> None:
    assert refused(file(name)).endswith(reason)
    assert refused(hard("x", name)) if name not in {"", "."} else True


def test_a_name_longer_than_file_systems_allow_is_refused() -> None:
    limits = TreeLimits(100, 5, 1000)

    assert place(file("a" * 255), limits=limits)
    assert refused(file("a" * 256), limits=limits).endswith("has a path component of more than 255 bytes")
    assert refused(file("\u00e9" * 128), limits=limits).endswith("has a path component of more than 255 bytes")


def test_a_long_name_is_shortened_in_the_message() -> None:
    assert len(refused(file("a/" * 90 + "x"))) < 220


def test_the_root_is_always_an_existing_folder() -> None:
    assert place(folder("./")) == [Placed((), [], is_there=True)]
    assert "has no name" in refused(link(".", "x"))


def test_missing_parent_folders_are_created_once() -> None:
    first, second = place(file("a/b/c"), file("a/b/d"))

    assert first == Placed(("a", "b", "c"), [("a",), ("a", "b")], is_there=False)
    assert second == Placed(("a", "b", "d"), [], is_there=False)
    assert place(file("a/b"), folder("a"))[1] == Placed(("a",), [], is_there=True)


@pytest.mark.parametrize("parent", [file("a"), link("a", "b"), hard("a", "f")])
def test_entries_below_a_file_or_a_link_are_refused(parent: Entry) -> None:
    for child in (file("a/x"), folder("a/x/y"), link("a/x", "y"), hard("a/x", "f")):
        assert "would be written through 'a'" in refused(file("f"), parent, child)


def test_entries_below_a_link_to_a_folder_are_refused() -> None:
    assert "would be written through 'b', a symbolic link" in refused(folder("a"), link("b", "a"), file("b/x"))


def test_an_entry_may_occur_twice_with_the_same_type() -> None:
    for one, other in [(file("a"), file("./a")), (link("a", "x"), link("a", "y")), (folder("a"), folder("a/"))]:
        assert [placed.is_there for placed in place(one, other)] == [False, True]
    assert [placed.is_there for placed in place(file("a"), file("f"), hard("a", "f"))] == [False, False, True]


def test_an_entry_may_not_change_its_type() -> None:
    kinds = [file("a"), folder("a"), link("a", "x")]
    for one in kinds:
        for other in kinds:
            if one is not other:
                said = refused(one, other)
                assert said == f"layer: entry 'a' occurs twice: as {one.kind.value} and as {other.kind.value}"
    assert "occurs twice: as folder and as symbolic link" in refused(file("a/b"), link("a", "c"))


def test_hard_links_must_name_an_earlier_file() -> None:
    assert place(file("d/a"), hard("b", "./d/a"))[1].source == ("d", "a")
    for before, target in [((), "a"), ((folder("a"),), "a"), ((link("a", "b"),), "a"), ((file("a"),), "a/b"), ((), "")]:
        assert "which is not a file earlier" in refused(*before, hard("x", target))
    assert "is a hard link to itself" in refused(file("a"), hard("a", "a"))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a", "b"),
        ("a", "./b/./c"),
        ("d/a", "../b"),
        ("d/a", "../d/../b"),
        ("d/e/a", "../../b"),
        ("a", "."),
        ("d/a", ".."),
        ("a", "b..c"),
        ("a", "x/../b"),
        ("a", "missing/../b"),
    ],
)
def test_links_inside_the_tree_may_lack_a_target(name: str, target: str) -> None:
    assert place(link(name, target))
    assert place(link(name, target), file("b"))
    assert place(file("b"), link(name, target))


@pytest.mark.parametrize(
    ("name", "target"),
    [("a", ".."), ("a", "../b"), ("a", "b/../../c"), ("d/a", "../../b"), ("d/e/a", "../../../e"), ("a", "./.././b")],
)
def test_symbolic_links_that_leave_the_tree_are_refused(name: str, target: str) -> None:
    assert refused(link(name, target)) == (f"layer: entry {name!r} is a symbolic link out of the tree, to {target!r}")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/etc/passwd", "is a symbolic link to the absolute path '/etc/passwd'"),
        ("", "is a symbolic link to nothing"),
        ("a\0b", "has a control character"),
        ("a/" * 101, "has a target longer than 200 bytes"),
    ],
)
def test_invalid_link_targets_are_refused(target: str, reason: str) -> None:
    assert refused(link("x", target)).endswith(reason)


def test_a_link_through_a_link_is_followed_as_the_kernel_does() -> None:
    # The text of the link p/q/x leads to p. But p/q/d is a link to the root, so the link leads outside of the tree.
    assert "'p/q/x' is a symbolic link out of the tree" in refused(link("p/q/d", "../.."), link("p/q/x", "d/../.."))


def test_links_are_checked_again_after_later_links() -> None:
    assert place(link("p/q/x", "d/../.."))
    assert "'p/q/x' is a symbolic link out of the tree" in refused(link("p/q/x", "d/../.."), link("p/q/d", "../.."))
    assert "out of the tree" in refused(link("p/d", "e"), link("p/x", "d/../.."), link("p/d", ".."))


def test_loops_of_symbolic_links_are_refused() -> None:
    assert "'a' leads over more than 40 symbolic links" in refused(link("a", "a"))
    assert "leads over more than 40 symbolic links" in refused(link("a", "b"), link("b", "a"))
    assert "leads over more than 40 symbolic links" in refused(link("a", "b/x"), link("b", "a/y"))
    chain = [link(f"l{n}", f"l{n + 1}") for n in range(39)]
    assert place(*chain, file("l39"))


def test_links_that_take_too_many_steps_are_refused() -> None:
    limits = TreeLimits(max_entries=60, max_depth=5, max_name_bytes=4000)
    chain = [link(f"l{n}", f"l{n + 1}/{'x/../' * 600}y") for n in range(30)]

    assert "takes too many steps" in refused(*chain, limits=limits)


def test_parents_count_as_entries() -> None:
    limits = TreeLimits(max_entries=6, max_depth=5, max_name_bytes=100)

    assert place(file("a/b/c"), file("a/d"), folder("e/f"), limits=limits)
    assert refused(file("a/b/c"), file("d/e/f"), file("g"), limits=limits) == (
        "layer: more than 6 files, folders and links"
    )


PARTS = st.sampled_from(["a", "b", "c", "..", "."])
PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
ENTRIES = st.one_of(st.builds(link, PATHS, PATHS), st.builds(folder, PATHS), st.builds(file, PATHS))


@given(st.lists(ENTRIES, max_size=12))
def test_the_kernel_resolves_admitted_links_inside_the_tree(entries: list[Entry]) -> None:
    tree = ArchiveTree(LIMITS, what="layer")
    admitted: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        try:
            placed = tree.place(entry)
        except ArchiveError:
            return  # an extraction would end here, too
        for parent in placed.new_parents:
            admitted[parent] = folder("/".join(parent))
        admitted[placed.path] = entry
    try:
        tree.check_links()
    except ArchiveError:
        return
    _check_on_disk(admitted)


def _check_on_disk(admitted: dict[tuple[str, ...], Entry]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as base:
        # The tree is so deep that a link may climb out of it without reaching the real root.
        root = Path(base, "1", "2", "3", "4", "5", "6", "root")
        root.mkdir(parents=True)
        for path, entry in sorted(admitted.items(), key=lambda item: len(item[0])):
            at = root.joinpath(*path)
            match entry.kind:
                case Kind.DIRECTORY:
                    at.mkdir(exist_ok=True)
                case Kind.SYMLINK:
                    at.symlink_to(entry.target)
                case _:
                    at.touch()
        for path, entry in admitted.items():
            if entry.kind is Kind.SYMLINK:
                resolved = os.path.realpath(root.joinpath(*path))
                assert Path(resolved).is_relative_to(os.path.realpath(root)), (path, entry.target)
