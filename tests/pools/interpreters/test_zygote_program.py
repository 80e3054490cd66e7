"""The program of a zygote: it reports whether it can serve, and ends when its socket is closed."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from wharfinger.pools.interpreters import zygote_program
from wharfinger.process.proc_stat import MARKER

PROGRAM = str(Path(zygote_program.__file__))


def started(environment: dict[str, str], *words: str) -> tuple[dict[str, object], int]:
    """Start the program. Return its report, and its exit status after its socket was closed."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with own, other:
        argv = [sys.executable, *words, PROGRAM, str(other.fileno())]
        with subprocess.Popen(argv, env={"PATH": os.defpath, **environment}, pass_fds=[other.fileno()]) as process:
            other.close()
            own.settimeout(30)
            report = json.loads(own.recv(4096))
            own.close()
            return report, process.wait(30)


def test_a_zygote_reports_its_version_and_ends_with_its_socket() -> None:
    report, status = started({MARKER: "a" * 32})
    assert (report.pop("version"), status) == (sys.version.split()[0], 0)
    folders = report.pop("folders")
    assert report == {}
    assert isinstance(folders, dict)
    assert folders == {folder: Path(folder).stat().st_mtime_ns for folder in folders}
    assert not any(folder.startswith(str(Path(json.__file__).parent)) for folder in folders)


@pytest.mark.parametrize("marker", [{}, {MARKER: "short"}])
def test_a_zygote_without_a_marker_cannot_serve(marker: dict[str, str]) -> None:
    report, _ = started(marker)
    assert report == {"unfit": "its environment has no marker of this daemon's processes"}


def test_a_module_that_starts_a_thread_makes_a_zygote_unusable(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n"
    )
    report, _ = started({MARKER: "a" * 32, "PYTHONPATH": str(tmp_path)})
    assert report == {"unfit": "one of the modules that it loads at its start has started a thread"}


def test_the_folder_of_the_program_is_not_on_the_search_path(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text(
        "import sys\nassert not any('interpreters' in each for each in sys.path), sys.path\n"
    )
    report, _ = started({MARKER: "a" * 32, "PYTHONPATH": str(tmp_path)})
    assert "version" in report
