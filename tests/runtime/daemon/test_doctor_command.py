"""`wharfinger doctor` as users run it: its exit codes, and the findings that it prints."""

import json
from pathlib import Path

import pytest

from tests.packages.rendering.test_chart_engine import engine_program
from tests.packages.support.charts import tool
from tests.programs import attempt, wharfinger
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.daemon.test_rights import as_user, without_definitions
from tests.runtime.support.killing import Kubectl
from wharfinger.__main__ import main
from wharfinger.runtime.daemon.doctor import Finding, Verdict
from wharfinger.runtime.daemon.doctor_command import finding_text


@pytest.mark.slow
@pytest.mark.unmeasured
def test_doctor_succeeds_on_a_sound_machine_and_reports_missing_rights(tmp_path: Path) -> None:
    with control_plane(tmp_path) as admin:
        words = ("--state-dir", str(tmp_path / "state"), "--helm", str(tool("helm")))
        environment = {"PATH": f"{engine_program().parent}:/usr/bin:/bin"}
        with daemon(tmp_path, admin) as running:
            running.wait_line("ready:")
            done = attempt(*wharfinger("doctor", "--kubeconfig", str(admin), *words), env=environment)
            assert done.returncode == 0, done.stdout
            assert [line.split(":")[0].split(maxsplit=1) for line in done.stdout.splitlines()] == [
                ["ok", subject]
                for subject in (
                    *("helm", "chart engine", "bash", "jq", "state folder", "daemon"),
                    *("kubeconfig", "API server", "clock", "rights", "definitions", "registries"),
                )
            ]
        weak = as_user(Kubectl(admin), tmp_path, "weak", without_definitions("weak"))
        done = attempt(*wharfinger("doctor", "--kubeconfig", str(weak), *words, "-o", "json"), env=environment)
        assert done.returncode == 1
        found = {each["subject"]: each for each in json.loads(done.stdout)}
        assert found["daemon"]["verdict"] == "warning"
        assert found["rights"]["verdict"] == "failed"
        assert "create, patch customresourcedefinitions" in found["rights"]["message"]
        assert "workerpools" not in found["rights"]["message"]
        more = ("--worker-pools", "--admission", "--require-service-account")
        done = attempt(*wharfinger("doctor", *more, "--kubeconfig", str(weak), *words), env=environment)
        assert done.returncode == 1
        for needed in ("workerpools", "validatingwebhookconfigurations", "impersonate"):
            assert needed in done.stdout, needed


def test_doctor_reports_everything_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ["doctor", "--state-dir", str(tmp_path / "state"), "--kubeconfig", str(tmp_path / "none")]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAILED  helm: no 'helm' on PATH\n        remedy: install Helm 3.14 or newer")
    assert f"warning daemon: no daemon answers on {tmp_path}/state/run/debug.sock: no such socket" in out
    assert out.count("\nskipped ") == 5
    assert main([*words, "--admission", "--require-service-account", "-o", "json"]) == 1
    assert {each["verdict"] for each in json.loads(capsys.readouterr().out)} == {"failed", "warning", "ok", "skipped"}


@pytest.mark.parametrize("verdict", Verdict)
def test_findings_are_escaped_for_a_terminal(verdict: Verdict) -> None:
    text = finding_text(Finding("rights", verdict, "a\x1b[31mb", "do\nthis"))
    assert text.count("\n") == 2
    assert "\x1b" not in text
    assert text.lower().startswith(f"{verdict} ")
