"""The comparison of an install by the daemon with an install by helm. If helm refuses a chart, the comparison fails."""

from pathlib import Path

import pytest

from tests.corpus.charts import unpack
from tests.corpus.installs import main
from tests.packages.support.charts import chart

pytestmark = pytest.mark.unmeasured


@pytest.mark.slow
def test_the_daemon_installs_what_helm_installs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    version, _ = unpack("assorted", tmp_path)
    folder = version.folder.rename(tmp_path / "assorted-chart")
    assert main(["--quiet-seconds=1", str(folder)]) == 0, capfd.readouterr()
    assert "| assorted-chart | " in capfd.readouterr().out


@pytest.mark.slow
def test_values_drawn_at_random_are_left_out_and_others_are_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    templates = {
        "templates/drawn.yaml": (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\nstringData: {word: '{{ randAlphaNum 12 }}'}\n"
        ),
        "templates/told.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: told}\ndata: {by: '{{ .Values.by }}'}\n"
        ),
    }
    folder = chart(tmp_path / "drawn", "drawn", "1.0.0", templates)
    (tmp_path / "drawn.values.yaml").write_text("by: me\n")
    assert main(["--quiet-seconds=1", str(folder)]) == 0
    assert "0 (1 random values left out)" in capfd.readouterr().out


def test_a_chart_that_helm_refuses_is_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = chart(tmp_path / "bad", "bad", "1.0.0", {"templates/bad.yaml": "{{ fail `on purpose` }}"})
    assert main(["--quiet-seconds=1", str(folder)]) == 1
    said = capfd.readouterr().out
    assert "**failed** | helm:" in said
    assert "on purpose" in said
