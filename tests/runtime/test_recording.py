"""The flight recorder of a daemon process: it reports past states, and its recording is replayed offline."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import attempt, run, wharfinger
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl, application


@pytest.mark.slow
@pytest.mark.unmeasured
def test_recorded_events_are_reported_and_replayed(tmp_path: Path) -> None:
    chart(tmp_path / "packages" / "web", "web", "1.0.0")
    flight = tmp_path / "flight"
    source = f"{{folder: {{path: '{tmp_path}/packages'}}}}"
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(
            tmp_path, kubeconfig, "--local-packages", str(tmp_path), "--flight-recorder", str(flight)
        ) as running:
            running.wait_line("ready:")
            socket = ("--socket", str(tmp_path / "state" / "run" / "debug.sock"))
            kubectl.apply(tmp_path / "app.yaml", application("web", source))
            kubectl("wait", "--for=condition=Ready", "application/app", "--timeout=50s")
            ready = datetime.now(UTC)
            kubectl("patch", "application", "app", "--type=merge", "-p", '{"spec":{"packageVersion":"9.9.9"}}')
            kubectl("wait", "--for=condition=Ready=False", "application/app", "--timeout=50s")
            reason = kubectl.value("application/app", '.status.conditions[?(@.type=="Ready")].reason')
            told = run(*wharfinger("history", "default.app", *socket))
            document = json.loads(run(*wharfinger("history", "default.app", "--all", "-o", "json", *socket)))
            at_ready = attempt(*wharfinger("why", "default.app", "--at", ready.isoformat(), *socket))
            now = attempt(*wharfinger("why", "default.app", *socket))
            metrics = run(*wharfinger("statistics", "-o", "prometheus", *socket))
            running.process.terminate()
            assert running.wait() == 0, running.lines
    assert "update begins" in told
    assert "requires update, version" in told
    assert reason in told
    machines = {event["machine"] for event in document["events"]}
    assert machines == {"lifecycle", "scheduler", "queue", "status", "journal", "package"}
    assert at_ready.returncode == 0, at_ready.stdout
    assert "ready; nothing blocks it" in at_ready.stdout
    assert now.returncode == 3
    assert "wharfinger_flight_recorder_failing 0" in metrics
    assert "wharfinger_recorder_failures_total 0" in metrics
    replayed = attempt(*wharfinger("replay", str(flight)))
    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert replayed.stdout.endswith(" package: identical\n"), replayed.stdout
    recorded = json.loads(run(*wharfinger("history", "default.app", "--all", "-o", "json", "--recording", str(flight))))
    assert recorded["events"][: len(document["events"])] == document["events"]
    then = attempt(*wharfinger("why", "default.app", "--at", ready.isoformat(), "--recording", str(flight)))
    assert (then.returncode, then.stdout) == (0, at_ready.stdout)
    later = datetime.fromtimestamp(time.time(), UTC).isoformat()
    broken = attempt(*wharfinger("why", "default.app", "--at", later, "--recording", str(flight)))
    assert broken.returncode == 3
    assert reason in broken.stdout
