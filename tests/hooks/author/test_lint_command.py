"""The command `wharfinger package lint`, called as from a shell."""

import json
import os
from pathlib import Path

import pytest

from tests.hooks.support.linting import SETTINGS, asking, lint, package
from wharfinger.__main__ import main

CHART = {"templates/page.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\n"}
SOUND = {
    **CHART,
    "openapi/settings.yaml": SETTINGS,
    "hooks/a.sh": asking("configVersion: v1\nonStartup: 1"),
}


def test_a_valid_package_has_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["package", "lint", str(package(tmp_path, SOUND))]) == 0
    assert capsys.readouterr().out == "web 1.0.0: no errors, no warnings\n"


def test_all_faults_are_reported_at_once_in_file_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "templates/page.yaml": "a: b\nc: {{ .Values.a.b.c }}\n",
        "openapi/settings.yaml": "type: object\nx-config-version: 1\nproperties:\n  a:\n    type: string\n    defualt: x\n",
        "openapi/values.yaml": "type: object\nproperties:\n  inner: {type: integer}\n",
        "values.yaml": "# own\n\ninner: 1\n",
        "crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n",
        "enabled": "#!/bin/bash\nif\n",
        "hooks/a.sh": "echo\n",
        "hooks/b.sh": "#!/bin/bash\r\n",
        "hooks/c.sh": "#!/bin/bash\n\nfoo() {\n",
        "hooks/d.sh": asking("configVersion: v1\n\nschedule:\n- crontab: '61 * * * *'"),
        "hooks/off.sh": "#!/bin/bash\n",
    }
    code, found = lint(capsys, package(tmp_path, files))
    assert code == 1
    assert [line.split(": ")[:2] for line in found] == [
        ["crds/a.yaml:1", "error"],
        ["enabled:3", "error"],
        ["hooks/a.sh:1", "error"],
        ["hooks/b.sh:1", "error"],
        ["hooks/c.sh:4", "error"],
        ["hooks/d.sh --config:4", "error"],
        ["hooks/off.sh:1", "warning"],
        ["openapi/settings.yaml:6", "warning"],
        ["templates/page.yaml:2", "error"],
    ]


def test_warnings_fail_the_command_only_with_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(tmp_path, {**SOUND, "hooks/off.sh": "#!/bin/bash\n"})
    wanted = "hooks/off.sh:1: warning: no executable permissions, chmod +x is required to run this hook"
    assert lint(capsys, folder) == (0, [wanted])
    assert lint(capsys, folder, "--strict") == (1, [wanted])
    assert main(["package", "lint", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "web 1.0.0: no errors, 1 warning"


def test_json_output_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(tmp_path, {**SOUND, "hooks/b.sh": "echo\n", "package.yaml": "name: web\nversion: 1.0.0\nzzz: 1\n"})
    assert main(["package", "lint", str(folder), "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["package"], found["errors"], found["warnings"]) == (None, 2, 0)
    assert [(each["file"], each["line"], each["severity"]) for each in found["findings"]] == [
        ("hooks/b.sh", 1, "error"),
        ("package.yaml", 3, "error"),
    ]
    assert found["findings"][1]["message"].startswith("zzz: unknown key; known keys: apiVersion, ")


def test_settings_are_validated_and_used_for_rendering(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "templates/page.yaml": '{{ if ne .Values.Application.Settings.host "x" }}\n{{ fail "no host" }}\n{{ end }}',
        "openapi/settings.yaml": "type: object\nx-config-version: 1\nrequired: [host]\nproperties:\n  host: {type: string}\n",
    }
    folder = package(tmp_path, files)
    code, found = lint(capsys, folder)
    assert (code, len(found)) == (0, 1)
    assert found[0].startswith(".: warning: the templates were not rendered: ")
    assert found[0].endswith("; give settings with --settings")
    for host, code, severity in (("x", 0, ""), ("y", 1, "error"), ("1", 1, "error")):
        (tmp_path / "settings.yaml").write_text(f"host: {host}\n")
        got, found = lint(capsys, folder, "--settings", str(tmp_path / "settings.yaml"))
        assert (got, [line.split(": ")[1] for line in found if ": error: " in line][:1]) == (
            code,
            [severity] if severity else [],
        ), found


def test_no_hooks_and_no_templates_options_skip_those_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "note"
    files = {"templates/page.yaml": "{{ fail `no` }}", "hooks/a.sh": f"#!/bin/bash\ntouch {note}\n"}
    assert lint(capsys, package(tmp_path, files), "--no-hooks", "--no-templates") == (0, [])
    assert not note.exists()


def test_invalid_input_gives_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: str) -> str:
        assert main(["package", "lint", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        return err

    folder = str(package(tmp_path, SOUND))
    assert refused(str(tmp_path / "no")).startswith(f"error: {tmp_path / 'no'}: no such folder; name the folder")
    (tmp_path / "file").write_text("")
    assert "file: it is a file, not a folder; name the folder" in refused(str(tmp_path / "file"))
    assert "cannot be read" in refused(folder, "--settings", str(tmp_path / "no"))
    assert refused(folder, "--helm", "no-such-helm").startswith("error: no 'no-such-helm' on PATH; install Helm")
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\nkill -9 $$\n")
    helm.chmod(0o755)
    assert refused(folder, "--helm", str(helm)).startswith("error: the package cannot be checked now: ")
    with pytest.raises(SystemExit) as usage:
        main(["package", "lint"])
    assert usage.value.code == 2
    monkeypatch.setenv("PATH", os.devnull)
    assert "--no-templates" in refused(folder)
