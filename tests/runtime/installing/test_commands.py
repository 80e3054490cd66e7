"""The command lines of `wharfinger install` and `wharfinger uninstall`, with valid and invalid arguments."""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import attempt, program, wharfinger
from tests.runtime.support.killing import embedded_daemon
from wharfinger.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["install", "Web"], 2, "expected a folder, such as ./chart"),
        (["install", "web", "--set", "a"], 2, "--set 'a': expected path.to.key=value"),
        (["install", "web", "--name", "A_B"], 2, "--name 'A_B': expected a name of lower-case letters"),
        (["install", "web", "--kubeconfig", "/nonexistent"], 1, "no such file"),
        (["install", "web", "--context", "x", "--kubeconfig", "/nonexistent"], 1, "no such file"),
        (["uninstall", "web", "--kubeconfig", "/nonexistent", "-n", "prod", "--timeout", "5"], 1, "no such file"),
    ],
)
def test_each_error_is_one_line(
    arguments: list[str],
    code: int,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    said = capsys.readouterr()
    assert (said.out, why in said.err, said.err.count("\n")) == ("", True, 1)


@pytest.mark.parametrize("limit", ["nan", "-1", "inf", "1 m", ""])
def test_a_time_limit_is_a_duration_or_a_number_of_seconds(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["uninstall", "web", f"--timeout={limit}"])
    assert f"argument --timeout: duration '{limit}': " in capsys.readouterr().err


def test_a_folder_is_checked_before_the_cluster_is_contacted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    (folder / "Chart.yaml").write_text("name: web\n")
    assert main(["install", str(folder), "--kubeconfig", "/nonexistent"]) == 2
    assert "Chart.yaml: version" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.measured
def test_a_folder_is_installed_and_removed_by_commands(tmp_path: Path) -> None:
    """The commands run as programs, with a real daemon and its embedded control plane."""
    folder = chart(tmp_path / "web", "web", "1.0.0")
    with embedded_daemon(tmp_path) as running:
        running.wait_line("ready:")
        config = str(next((tmp_path / "state").rglob("kubeconfig*")))
        done = attempt(
            *wharfinger("install", str(folder), "--kubeconfig", config, "--name", "shop", "--set", "replicas=2")
        )
        assert done.returncode == 0, done.stderr
        state, warning = done.stderr.splitlines()[-2:]
        assert state.startswith("Ready")
        assert warning == "warning: spec.settings.replicas: no template of the chart reads this setting"
        late = attempt(*wharfinger("install", str(folder), "--kubeconfig", config, "--name", "a.b", "--timeout", "0"))
        assert (late.returncode, "the daemon continues; see `wharfinger why default.a.b`" in late.stderr) == (3, True)
        made = attempt(*wharfinger("install", str(folder), "--kubeconfig", config, "--name", "other", "--no-wait"))
        assert made.returncode == 0, made.stderr
        scoped = attempt(
            *wharfinger("install", str(folder), "--kubeconfig", config, "--name", "shop", "--cluster-scope")
        )
        assert "its Applications may change objects in the whole cluster" in scoped.stderr
        missing = attempt(
            *wharfinger("install", "web", "--repository", "none", "--kubeconfig", config, "--timeout", "1")
        )
        assert missing.returncode != 0
        for name in ("shop", "other"):
            gone = attempt(*wharfinger("uninstall", name, "--kubeconfig", config))
            assert (gone.returncode, gone.stdout) == (0, f"default/{name}: removed\n"), gone.stderr
        again = attempt(*wharfinger("uninstall", "shop", "--kubeconfig", config))
        assert (again.returncode, "there is no such Application" in again.stderr) == (1, True)
        dotted = attempt(*wharfinger("uninstall", "default.shop", "--kubeconfig", config))
        assert "did you mean `wharfinger uninstall shop -n default`?" in dotted.stderr


@pytest.mark.slow
def test_a_cluster_without_the_definitions_is_reported(tmp_path: Path) -> None:
    config = str(tmp_path / "kubeconfig")
    with program(*wharfinger("control-plane", "--no-tls", "--kubeconfig", config)) as serving:
        serving.wait_line("ready")
        done = attempt(*wharfinger("install", str(chart(tmp_path / "web", "web", "1.0.0")), "--kubeconfig", config))
    assert done.returncode == 1
    assert done.stderr.endswith("; start the daemon, which installs its CustomResourceDefinitions\n")
