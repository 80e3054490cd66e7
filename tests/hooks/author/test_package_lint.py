"""Checks that concern several parts of a package."""

from pathlib import Path

import pytest

from tests.hooks.support.linting import SETTINGS, asking, lint, package
from tests.programs import ROOT


@pytest.mark.sampled(3)
@pytest.mark.parametrize("example", ["namespace-defaults", "reloader", "todo-api", "web-service"])
def test_examples_have_no_findings(capsys: pytest.CaptureFixture[str], example: str) -> None:
    code, found = lint(capsys, ROOT / "examples" / example)
    assert (code, found) == (0, [])


def test_lint_reports_every_finding_of_package_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "openapi/settings.yaml": f"{SETTINGS}x-kubernetes-validations:\n- rule: 'self.no >'\n",
        "openapi/conversions/v1.yaml": "version: 1\nconversions: ['.a |']\n",
    }
    _, found = lint(capsys, package(tmp_path, files))
    assert any(line.startswith("openapi/") and ": error: " in line for line in found), found


def test_scripts_of_an_unreadable_package_are_checked_but_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "note"
    files = {
        "package.yaml": "name: web\nversion: x\n",
        "hooks/a.sh": f"#!/bin/bash\ntouch {note}\n",
        "hooks/b.sh": "echo\n",
    }
    code, found = lint(capsys, package(tmp_path, files))
    assert (code, [line.partition(": error")[0] for line in found]) == (1, ["hooks/b.sh:1", "package.yaml:2"])
    assert not note.exists()


def test_a_module_folder_is_linted_as_a_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "values.yaml": "web:\n  a: 1\nwebEnabled: true\n",
        "hooks/a.sh": asking("configVersion: v1\nbeforeHelm: 1"),
        "enabled": "#!/bin/bash\necho true > $MODULE_ENABLED_RESULT\n",
        "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Values.web.a }}'}\n",
    }
    folder = package(tmp_path, files, name="012-web")
    (folder / "package.yaml").unlink()
    assert lint(capsys, folder) == (0, [])


def test_a_hooks_folder_beyond_the_limits_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(tmp_path, {"hooks/a.sh": asking("configVersion: v1\nonStartup: 1")})
    deep = folder.joinpath("hooks", *"d" * 40)
    deep.mkdir(parents=True)
    code, (told,) = lint(capsys, folder, "--no-templates")
    assert (code, told.startswith("hooks: error: hook hooks: folders nested deeper than")) == (1, True), told
