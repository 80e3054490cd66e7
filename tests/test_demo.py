"""The acceptance test: the demo with a real registry, kubectl and helm. It pushes a package, waits until it is Ready, and removes
it.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.programs import PATIENCE_S, ROOT, attempt, program, run
from tests.scale import FULL

pytestmark = pytest.mark.unmeasured

DEMO = (sys.executable, "examples/demo.py")
STAGES = (
    "ReadyOnFilesystem",
    "Loaded",
    "RequirementsMet",
    "Configured",
    "HooksProcessed",
    "ManifestsApplied",
    "Scaled",
)
NAMES = ("demo.web", "demo.reload", "demo.todo", "namespace-defaults")
STEPS = (
    "$ wharfinger run --embedded",
    "pushed ",
    "application.wharfinger.dev/web created",
    "module.wharfinger.dev/namespace-defaults created",
    "* Ready: version 1.0.0 is installed and ready",
    "module.wharfinger.dev/namespace-defaults condition met",
    "pushed    sha256:",
    "installed sha256:",
    "configmap/page created",
    "- name: hooks/reload.sh",
    "annotation reload.wharfinger.dev/page of Deployment web's pod template: ",
    "namespace/team labeled",
    "limitrange/namespace-defaults",
    "no process listens at 127.0.0.1:",
    "application.wharfinger.dev/web patched",
    "as it was since",
    "stages it went through: Configured, ManifestsApplied",
    "web    3        3",
    "$ helm list --all-namespaces",
    "Upgrade complete",
    "$ wharfinger get packages --output wide",
    "$ wharfinger dump demo.reload\n",
    "$ wharfinger queues dump",
    "$ wharfinger scheduler dump",
    "$ wharfinger render demo.reload",
    'application.wharfinger.dev "web" deleted',
    'module.wharfinger.dev "namespace-defaults" deleted',
    "nothing is left",
    "daemon: exit 0",
    "demo: done in",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder for the demo. The paths of pytest's folders are too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="demo-") as made:
        yield Path(made)


@pytest.mark.slow
def test_the_demo_prints_every_step_and_exits_with_zero(folder: Path) -> None:
    with program(*DEMO, env={"PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)}) as demo:
        demo.wait_line("demo: done in")
        assert demo.wait() == 0
    said = "\n".join(demo.lines)
    places = [said.find(step) for step in STEPS]
    assert -1 not in places, (STEPS[places.index(-1)], said)
    assert places == sorted(places)
    for name, stage in product(NAMES, STAGES):
        assert re.search(rf"^  {re.escape(name)} +{stage} +True$", said, re.MULTILINE), (name, stage)
    assert said.count('"GET /v2/packages/') == len(NAMES), "each package was requested by its digest"
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_the_demo_restarts_a_killed_daemon(folder: Path, tmp_path: Path) -> None:
    engine = tmp_path / "engine" / "wharfinger-engine"
    engine.parent.mkdir()
    engine.write_text("#!/bin/sh\nexit 1\n")
    engine.chmod(0o755)
    environment = {
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(folder),
        "PATH": f"{engine.parent}:{os.environ['PATH']}",
    }
    with program(*DEMO, "--stay", env=environment) as demo:
        assert str(engine.parent) in demo.wait_line("export PATH="), "`wharfinger doctor` finds the daemon's engine"
        (daemon,) = [process for process in processes_below(folder) if b"\0wharfinger\0run\0" in command_line(process)]
        os.kill(daemon, signal.SIGKILL)
        demo.wait_line("the daemon was ended by signal 9; it is started again")
        demo.wait_line("the daemon is up again")
        assert len(processes_below(folder)) >= 4, "the demo, the registry, the control plane and the daemon"
        demo.process.send_signal(signal.SIGTERM)
        assert demo.wait() == 0
    assert list(folder.iterdir()) == []
    assert processes_below(folder) == []


@pytest.mark.skipif(not FULL, reason="with the full figures; the daemon that is killed stays, too")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_staying_demo_stops_all_processes_on_a_signal(folder: Path, number: int) -> None:
    with program(*DEMO, "--stay", env={"PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)}) as demo:
        socket = demo.wait_line("export WHARFINGER_SOCKET=").partition("=")[2]
        listed = run(sys.executable, "-m", "wharfinger", "get", "packages", env={"WHARFINGER_SOCKET": socket})
        assert all(name in listed for name in NAMES)
        assert len(processes_below(folder)) >= 4, "the demo, the registry, the control plane and the daemon"
        demo.process.send_signal(number)
        assert demo.wait() == 0
    assert list(folder.iterdir()) == []
    assert processes_below(folder) == []


def test_a_signal_during_start_up_stops_all_processes(folder: Path) -> None:
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
import signal, sys
from pathlib import Path
sys.path.insert(0, "examples")
import demo, demo_processes
demo_processes.STOPS_WITHIN_S = 100_000

def run(self, *, stay):
    self.signals.start([sys.executable, "-c", {STUBBORN!r}], Path("/dev/stdout"), self.environment).wait()

demo.Demo.run = run
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.exit(demo.main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_kills_processes_that_do_not_end(folder: Path, number: int) -> None:
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


def test_a_killed_demo_leaves_no_processes(folder: Path) -> None:
    with program(sys.executable, "-c", WITH_A_STUBBORN_CHILD, env={"TMPDIR": str(folder)}) as demo:
        try:
            demo.wait_line("child up")
            demo.process.kill()
            demo.wait_line("asked to end")
        finally:
            for left in processes_below(folder):
                os.kill(left, signal.SIGKILL)


PRINTING = """\
import sys
sys.path.insert(0, "examples")
import demo
demo.Demo.run = lambda self, *, stay: print("step", flush=True)
sys.exit(demo.main())
"""


def test_an_ended_reader_stops_the_demo_without_a_traceback(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", PRINTING],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "demo: stopped, because the reader of its output has ended\n")
    assert list(folder.iterdir()) == []


def test_a_temporary_folder_with_a_long_path_is_refused(folder: Path) -> None:
    long = folder / ("x" * 100)
    long.mkdir()
    done = attempt(*DEMO, env={"TMPDIR": str(long)})
    assert (done.returncode, done.stdout) == (1, "")
    assert "bytes is too long for a socket (at most 107); set TMPDIR to a folder with a shorter path" in done.stderr
    assert list(long.iterdir()) == []


INTERRUPTED_WHILE_LOADING = """\
import os, runpy, signal, sys

class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == "demo_processes":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, CtrlC())
runpy.run_path("examples/demo.py", run_name="__main__")
"""


def test_ctrl_c_during_imports_ends_the_demo_without_a_traceback() -> None:
    done = attempt(sys.executable, "-c", INTERRUPTED_WHILE_LOADING)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def processes_below(folder: Path) -> list[int]:
    """Return the processes, in any session, whose environment contains the path of ``folder``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:  # The process has ended, or belongs to another user.
            continue
        if os.fsencode(folder) in environment:
            found.append(int(process.name))
    return found


def command_line(process: int) -> bytes:
    """Return the arguments of a process, each ended by a zero byte, or b"" if the process has ended."""
    try:
        return (Path("/proc") / str(process) / "cmdline").read_bytes()
    except OSError:
        return b""


def tour() -> str:
    """Return the shell blocks of the tour in the README, as one script."""
    page = (ROOT / "README.md").read_text().partition("## A tour")[2].partition("\n## ")[0]
    return "".join(re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


@pytest.mark.skipif(not FULL, reason="a minute: with the full figures")
def test_the_tour_of_the_readme_works(folder: Path) -> None:
    (folder / "demo").mkdir()
    (folder / "tour").mkdir()
    with program(*DEMO, "--stay", env={"PYTHONUNBUFFERED": "1", "TMPDIR": str(folder / "demo")}) as demo:
        demo.wait_line("export PATH=")
        exports = "".join(f"{line}\n" for line in demo.lines if line.startswith("  export "))
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-x", "-c", exports + tour()],
            cwd=folder / "tour",
            env={**os.environ, "TMPDIR": str(folder / "tour")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "5 replicas\nsucceeded: true" in done.stdout
        assert "fleet-1.0.0" in done.stdout  # This is the version of the package, as helm lists it.
        assert "token: must have at least 8 characters" in done.stdout
        assert "correct-horse" not in "".join(line for line in done.stdout.splitlines() if not line.startswith("+"))
        demo.process.send_signal(signal.SIGTERM)
        assert demo.wait() == 0


def test_the_tour_has_commands() -> None:
    assert len(tour().splitlines()) > 50
