"""The command lines of install and uninstall."""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart
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
def test_one_line_says_what_is_wrong(
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


def test_the_folder_is_read_before_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    (folder / "Chart.yaml").write_text("name: web\n")
    assert main(["install", str(folder), "--kubeconfig", "/nonexistent"]) == 2
    assert "Chart.yaml: version" in capsys.readouterr().err
