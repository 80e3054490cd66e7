"""The files of cached renders: they are limited and private, and damaged ones are not used."""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wharfinger.packages.rendering.render_entry import write_entry
from wharfinger.packages.rendering.render_folder import RenderFolder

A, B, C = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "renders"


def open_folder(place: Path, entries: int = 10, size: int = 10_000) -> RenderFolder:
    return RenderFolder(place, entries, size)


def file_of(place: Path, key: str) -> Path:
    return place / f"{key}.render"


def test_a_stored_entry_is_read_by_the_next_daemon(place: Path) -> None:
    folder = open_folder(place)
    assert folder.get(A) is None
    folder.put(A, b"one")
    assert folder.get(A) == b"one"
    again = open_folder(place)
    assert again.get(A) == b"one"
    assert again.get(B) is None
    assert again.statistics().entries == 1
    assert again.statistics().bytes == file_of(place, A).stat().st_size == folder.statistics().bytes


def test_entries_are_not_readable_by_other_users(place: Path) -> None:
    place.mkdir(parents=True, mode=0o755)
    open_folder(place).put(A, b"secret")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE(file_of(place, A).stat().st_mode) == 0o600
    assert [path.name for path in place.iterdir()] == [f"{A}.render"]


def test_the_least_recently_used_entry_is_deleted_first(place: Path) -> None:
    folder = open_folder(place, entries=2)
    folder.put(A, b"one")
    folder.put(B, b"two")
    assert folder.get(A) == b"one"
    folder.put(C, b"three")
    assert (folder.get(A), folder.get(B), folder.get(C)) == (b"one", None, b"three")
    assert not file_of(place, B).exists()


def test_the_order_of_use_is_known_after_a_restart(place: Path) -> None:
    folder = open_folder(place)
    for key in (A, B, C):
        folder.put(key, b"x")
    for seconds, key in enumerate((A, B, C)):
        os.utime(file_of(place, key), (seconds, seconds))
    assert folder.get(A)
    again = open_folder(place, entries=2)
    assert (again.get(B), again.get(A), again.get(C)) == (None, b"x", b"x")


def test_the_bytes_are_bounded(place: Path) -> None:
    size = len(write_entry(A, bytes(1000)))
    folder = open_folder(place, size=2 * size)
    for key in (A, B, C):
        folder.put(key, bytes(1000))
    assert (folder.statistics().entries, folder.statistics().bytes) == (2, 2 * size)
    folder.put(A, bytes(3 * size))
    assert folder.get(A) is None
    assert folder.get(C)


def test_replacing_an_entry_counts_once(place: Path) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")
    folder.put(A, b"other")
    assert folder.get(A) == b"other"
    assert folder.statistics().entries == 1
    assert folder.statistics().bytes == file_of(place, A).stat().st_size


def test_a_folder_limited_to_zero_entries_stores_nothing(place: Path) -> None:
    folder = open_folder(place, entries=0)
    folder.put(A, b"one")
    assert not place.exists()


def corrupt(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def cut(path: Path) -> None:
    path.write_bytes(b"")


def other(path: Path) -> None:
    path.write_bytes(write_entry(B, b"one"))


def link(path: Path) -> None:
    aside = path.parent.parent / "aside"
    path.rename(aside)
    path.symlink_to(aside)


def hard_link(path: Path) -> None:
    os.link(path, path.parent.parent / "aside")


def open_to_all(path: Path) -> None:
    path.chmod(0o644)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def grow(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(1_000_000)


HARMS = (corrupt, cut, other, link, hard_link, open_to_all, pipe, make_folder, grow)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("restart", [True, False])
def test_damaged_entries_are_removed(harm: Callable[[Path], None], place: Path, *, restart: bool) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")
    harm(file_of(place, A))
    folder = open_folder(place) if restart else folder
    assert folder.get(A) is None
    assert not os.path.lexists(file_of(place, A))
    assert folder.statistics().entries == folder.statistics().bytes == 0
    folder.put(A, b"one")
    assert folder.get(A) == b"one"


def test_the_target_of_a_link_is_not_deleted(place: Path) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")
    link(file_of(place, A))
    assert folder.get(A) is None
    assert (place.parent / "aside").exists()
    assert folder.statistics().refused + folder.statistics().faults == 1


def test_a_folder_in_place_of_an_entry_is_replaced(place: Path) -> None:
    folder = open_folder(place)
    folder.get(A)
    file_of(place, A).mkdir()
    folder.put(A, b"one")
    assert folder.get(A) == b"one"


def test_only_leftovers_of_a_crash_are_removed(place: Path) -> None:
    place.mkdir(parents=True)
    for name in (".abc-1.part", "short.render", "README"):
        (place / name).write_text("x")
    os.utime(place / ".abc-1.part", (1, 1))
    open_folder(place).get(A)
    assert [path.name for path in place.iterdir()] == ["README"]


def test_files_being_written_by_another_process_are_not_removed(place: Path) -> None:
    place.mkdir(parents=True)
    (place / ".abc-1.part").write_text("x")
    open_folder(place).put(A, b"one")
    assert (place / ".abc-1.part").exists()


@pytest.mark.parametrize("scan_first", [True, False])
def test_entries_of_another_process_are_found(place: Path, *, scan_first: bool) -> None:
    folder = RenderFolder(place, 10, 10_000, scan_first=scan_first)
    assert folder.get(A) is None
    open_folder(place).put(A, b"one")
    assert folder.get(A) == b"one"
    folder.put(B, b"two")
    assert folder.statistics().entries == 2
    assert folder.statistics().bytes == sum(path.stat().st_size for path in place.iterdir())


def test_an_entry_removed_during_the_first_scan_is_not_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_folder(place).put(A, b"one")
    scandir = os.scandir

    @contextmanager
    def slow(path: Path) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(path) as entries:
            found = list(entries)
        file_of(place, A).unlink()
        yield found

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", slow)
        folder = open_folder(place)
        folder.put(B, b"two")
    assert (folder.statistics().entries, folder.statistics().faults) == (1, 0)


def test_a_deleted_file_is_not_found_and_is_no_fault(place: Path) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")
    file_of(place, A).unlink()
    assert folder.get(A) is None
    assert folder.statistics().entries == folder.statistics().faults == 0


def test_a_deleted_folder_is_created_again(place: Path) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")
    file_of(place, A).unlink()
    place.rmdir()
    folder.put(B, b"two")
    assert folder.statistics().faults == 1
    assert folder.get(B) is None
    folder.put(B, b"two")
    assert folder.get(B) == b"two"
    assert folder.statistics().entries == 1


@pytest.mark.parametrize("what", ["file", "link"])
def test_a_file_or_link_instead_of_the_folder_is_not_used(what: str, place: Path, tmp_path: Path) -> None:
    place.parent.mkdir()
    if what == "file":
        place.write_text("x")
    else:
        place.symlink_to(tmp_path)
    folder = open_folder(place)
    folder.put(A, b"one")
    assert folder.get(A) is None
    statistics = folder.statistics()
    assert (statistics.faults, statistics.entries) == (2, 0)
    assert statistics.last_fault
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_write_error_loses_only_the_new_entry(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")

    def full(_: Path, __: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        folder.put(B, b"two")
    assert (folder.statistics().faults, folder.statistics().last_fault) == (1, "No space left on device")
    assert [path.name for path in place.iterdir()] == [f"{A}.render"]
    assert (folder.get(A), folder.get(B)) == (b"one", None)


def test_a_dropped_entry_is_deleted(place: Path) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")
    folder.drop(A)
    assert folder.get(A) is None
    assert not file_of(place, A).exists()
    assert folder.statistics().refused == 0


def test_a_reader_of_a_replaced_file_reads_a_complete_entry(place: Path) -> None:
    """Even if two daemons use the same folder by mistake, neither of them reads a partly written file."""
    writing, reading = open_folder(place), open_folder(place)
    wanted = {bytes([number]) * 3000 for number in range(2)}
    writing.put(A, b"\0" * 3000)
    assert reading.get(A)

    def write() -> None:
        for number in range(200):
            writing.put(A, bytes([number % 2]) * 3000)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen = {reading.get(A) for _ in range(200)}
    finally:
        thread.join()
    assert seen <= wanted


def test_a_read_error_is_retried_at_the_next_request(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_folder(place)
    folder.put(A, b"one")

    def broken(*_: object, **__: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", broken)
        assert folder.get(A) is None
    assert folder.statistics().last_fault == "Input/output error"
    assert folder.get(A) == b"one"
