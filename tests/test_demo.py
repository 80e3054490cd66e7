"""The demo is the main job's acceptance: real registry, kubectl and helm, from push to Ready to gone, exit code 0."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import PATIENCE_S, program, run

DEMO = (sys.executable, "examples/demo.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the demo makes its own folder; pytest's folders have names too long for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="demo-") as made:
        yield Path(made)


def test_it_shows_the_main_job_and_ends_well() -> None:
    said = run(*DEMO)
    steps = [
        "pushed ",
        "application.wharfinger.dev/web created",
        "  Ready: version 1.0.0 is installed and ready",
        "deployed",
        "demo.web",
        "nothing is left",
        "daemon: exit 0",
        "demo: done in",
    ]
    places = [said.find(step) for step in steps]
    assert -1 not in places, (steps[places.index(-1)], said)
    assert places == sorted(places)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stays_until_it_is_told_to_stop_and_takes_everything_down(folder: Path, number: int) -> None:
    with program(*DEMO, "--stay", env={"PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)}) as demo:
        socket = demo.wait_line("export WHARFINGER_SOCKET=").partition("=")[2]
        listed = run(sys.executable, "-m", "wharfinger", "get", "packages", env={"WHARFINGER_SOCKET": socket})
        assert "demo.web" in listed
        assert len(processes_below(folder)) >= 4, "the demo, the registry, the control plane and the daemon"
        demo.process.send_signal(number)
        assert demo.wait() == 0
    assert list(folder.iterdir()) == []
    assert processes_below(folder) == []


def test_a_signal_half_way_takes_down_what_is_up(folder: Path) -> None:
    with program(*DEMO, env={"PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)}) as demo:
        demo.wait_line("registry at")
        demo.process.send_signal(signal.SIGTERM)
        assert demo.wait() == 128 + signal.SIGTERM
    assert "demo: stopped" in demo.lines
    assert list(folder.iterdir()) == []
    assert processes_below(folder) == []


STUBBORN = """\
import signal
signal.signal(signal.SIGTERM, lambda *_: print("asked to end", flush=True))
print("child up", flush=True)
while True:
    signal.pause()
"""
WITH_A_STUBBORN_CHILD = f"""\
import importlib.util, os, signal, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("demo", "examples/demo.py")
demo = importlib.util.module_from_spec(spec)
spec.loader.exec_module(demo)
demo.STOPS_WITHIN_S = 100_000

def run(self, *, stay):
    self.signals.start([sys.executable, "-c", {STUBBORN!r}], Path("/dev/stdout"), self.environment).wait()

demo.Demo.run = run
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.exit(demo.main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_kills_what_does_not_end(folder: Path, number: int) -> None:
    with program(sys.executable, "-c", WITH_A_STUBBORN_CHILD, env={"TMPDIR": str(folder)}) as demo:
        try:
            demo.wait_line("child up")
            demo.process.send_signal(number)
            demo.wait_line("asked to end")
            demo.process.send_signal(number)
            assert demo.process.wait(PATIENCE_S) == 128 + number
            assert processes_below(folder) == []
        finally:
            for left in processes_below(folder):
                os.kill(left, signal.SIGKILL)
    assert list(folder.iterdir()) == []


def processes_below(folder: Path) -> list[int]:
    """Processes that were given ``folder`` in their environment: whatever a program started with it leaves, in any session."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        if os.fsencode(folder) in environment:
            found.append(int(process.name))
    return found
