"""`wharfinger dashboard`, run as a process."""

import os
import re
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
import trio

from tests.debug.support.dashboard_samples import inspector
from tests.debug.support.running import captured, parsed
from tests.programs import ROOT, attempt, wharfinger
from wharfinger.debug.dashboard import dashboard_command
from wharfinger.debug.dashboard.dashboard_command import add_dashboard
from wharfinger.debug.server.server import open_debug_server

pytestmark = pytest.mark.measured


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_dashboard_is_served_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "s"

    def visit() -> int:
        with subprocess.Popen(
            [*wharfinger("dashboard"), "--port", "0", "--socket", str(path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as process:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/\?token=[\w-]{43}", address):
                process.kill()
                raise AssertionError(address, *process.communicate())
            with httpx.Client(follow_redirects=True, timeout=300) as client:
                assert "prod.shop" in client.get(address).text
            process.send_signal(number)
            _, err = process.communicate(timeout=300)
            assert "it works once" in err
            return process.returncode

    async with open_debug_server(path, inspector()):
        assert await trio.to_thread.run_sync(visit) == 0


@pytest.mark.slow
def test_without_a_daemon_the_dashboard_is_not_started(tmp_path: Path) -> None:
    done = attempt(*wharfinger("dashboard"), "--socket", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no daemon answers")


def test_a_missing_library_is_reported_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_command, "find_spec", lambda _name: None)
    args = parsed(add_dashboard, [], tmp_path / "none")
    code, _, err = captured(lambda: dashboard_command._dashboard(args))
    assert (code, err) == (1, "error: the library jinja2 is not installed; pip install 'wharfinger[dashboard]'\n")


@pytest.mark.parametrize("port", ["65536", "0000065536", "-1", "x", "1e3", "", "\uff19"])
def test_invalid_ports_are_refused(port: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        parsed(add_dashboard, [f"--port={port}"], tmp_path)
