"""The demo is the main job's acceptance: real registry, kubectl and helm, from push to Ready to gone, exit code 0."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.programs import program, run

DEMO = (sys.executable, "examples/demo.py")


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


def test_it_stays_until_ctrl_c_and_takes_everything_down() -> None:
    with program(*DEMO, "--stay", env={"PYTHONUNBUFFERED": "1"}) as demo:
        exported = demo.wait_line("export WHARFINGER_SOCKET=")
        folder = exported.partition("=")[2].partition("/state/")[0]
        listed = run(
            sys.executable,
            "-m",
            "wharfinger",
            "get",
            "packages",
            env={"WHARFINGER_SOCKET": f"{folder}/state/run/debug.sock"},
        )
        assert "demo.web" in listed
        demo.process.send_signal(signal.SIGINT)
        assert demo.wait() == 0
    assert not Path(folder).exists()
    left = subprocess.run(["pgrep", "--full", folder], capture_output=True, text=True, check=False)
    assert left.stdout == ""
