"""The memory of real processes, and the limits of control groups."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wharfinger.pools.memory import footprint as module
from wharfinger.pools.memory.footprint import footprint, footprints_below, memory_of_machine

MIB = 1024**2
HOLDING = "import sys; kept = bytearray(b'x') * 50_000_000; print('there', flush=True); sys.stdin.read()"


def test_private_memory_is_that_of_one_process_and_shared_memory_counts_by_its_share() -> None:
    """After a fork, two processes share 50 MB. Their shares add up to these 50 MB, and neither has them as private memory."""
    text = (
        "import os, sys\nkept = bytearray(b'x') * 50_000_000\nread, write = os.pipe()\n"
        "if os.fork() == 0:\n    os.close(write)\n    os.read(read, 1)\n    os._exit(0)\n"
        "print(os.getpid(), open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read(), flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        sizes = [footprint(pid) for pid in pids]
        process.communicate()
    first, second = sizes
    assert first is not None
    assert second is not None
    assert 50 * 10**6 < first.total + second.total < 80 * 10**6
    assert first.private < 30 * 10**6
    assert second.private < 30 * 10**6


def test_memory_that_only_one_process_has_is_private() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = footprint(process.pid)
        process.communicate()
    assert found is not None
    assert 50 * 10**6 < found.private <= found.total < 90 * 10**6
    assert footprint(process.pid) is None


def test_all_processes_below_one_are_counted_by_program() -> None:
    """Grandchildren are found, and so are children that a thread has started."""
    text = (
        "import subprocess, sys, threading\n"
        "def start(): kept.append(subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()']))\n"
        "kept = []\nthread = threading.Thread(target=start)\nthread.start()\nthread.join()\n"
        "print('there', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found, below = footprints_below(os.getpid()), footprints_below(process.pid)
        process.communicate()
    name = Path(sys.executable).resolve().name
    assert len(found[name]) >= 2
    assert [len(sizes) for sizes in below.values()] == [1]
    assert all(size.total > 0 for size in found[name])
    assert footprints_below(process.pid) == {}


def test_an_ended_thread_hides_no_children_of_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: [path / "4000000", *tasks(path)])
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process.pid in module._children(os.getpid())
        process.communicate(b"\n")


def test_the_peak_memory_is_that_of_this_program_only() -> None:
    """After an `exec`, ``getrusage`` still reports the peak memory of the program that was replaced."""
    told = "from wharfinger.pools.memory.footprint import peak_memory; print(peak_memory())"
    text = f"import os, sys\nlarge = b'x' * (200 << 20)\nos.execv(sys.executable, [sys.executable, '-c', {told!r}])"
    found = int(subprocess.run([sys.executable, "-c", text], capture_output=True, check=True, timeout=300).stdout)
    assert 1 << 20 < found < 150 << 20


def test_without_shares_from_the_kernel_all_resident_pages_count(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = footprint(os.getpid())

    def refuse(_: bytes) -> module.Footprint:
        raise PermissionError

    monkeypatch.setattr(module, "_shares", refuse)
    resident = footprint(os.getpid())
    assert shares is not None
    assert resident is not None
    assert resident.total >= shares.total * 0.9


def test_the_memory_limit_is_at_most_the_memory_of_the_machine() -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory_of_machine() <= machine


@pytest.mark.parametrize(
    ("own", "files", "limits"),
    [
        ("0::/a/b\n", {"a/memory.max": "1000\n", "a/b/memory.max": "max\n"}, [1000]),
        ("0::/a/b\n", {"a/memory.max": "1000\n", "a/b/memory.max": "500\n"}, [500, 1000]),
        ("0::/\n", {}, []),
        ("4:cpu:/x\n3:memory:/x\n", {"memory/x/memory.limit_in_bytes": "700\n", "x/memory.max": "1\n"}, [700]),
    ],
)
def test_limits_of_control_groups(tmp_path: Path, own: str, files: dict[str, str], limits: list[int]) -> None:
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(text)
    (tmp_path / "own").write_text(own)
    assert module._limits_of_groups(tmp_path / "root", tmp_path / "own") == limits


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert module._limits_of_groups(tmp_path, tmp_path / "missing") == []
