"""Checks of templates rendered with default settings."""

from pathlib import Path

import pytest

from tests.hooks.support.linting import lint, package
from wharfinger.__main__ import main

PAGE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\n"
CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"templates/a.yaml": PAGE}, []),
        ({"templates/a.yaml": f"{PAGE}data: {{{{ .Values.nope.deeper }}}}\n"}, ["templates/a.yaml:4: error: "]),
        ({"templates/a.yaml": PAGE, "templates/_h.tpl": "\n{{ define }}"}, ["templates/_h.tpl:2: error: "]),
        ({"templates/a.yaml": "a: b: c\n"}, [".: error: "]),
        ({"templates/a.yaml": "{{ if false }}{{ end }}"}, [".: warning: its templates render to nothing"]),
        ({"images_digests.json": "{}"}, []),
        (
            {"templates/a.yaml": PAGE, "values.yaml": "Application: 1\n"},
            [
                ".: warning: the templates were not rendered: ",
                "values.yaml:1: error: Application: this name is reserved",
            ],
        ),
    ],
)
def test_templates_that_helm_refuses_are_reported_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], found: list[str]
) -> None:
    _, told = lint(capsys, package(tmp_path, files))
    assert len(told) == len(found), told
    assert all(line.startswith(beginning) for line, beginning in zip(told, found, strict=True)), told


def test_a_plain_chart_is_rendered_with_its_own_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "Chart.yaml": CHART,
        "values.yaml": "a: {b: x}\n",
        "templates/a.yaml": f"{PAGE}data: {{c: {{{{ .Values.a.b }}}}}}",
    }
    folder = package(tmp_path, files)
    (folder / "package.yaml").unlink()
    assert lint(capsys, folder) == (0, [])
    (folder / "templates" / "a.yaml").write_text("\n\n{{ .Values.a.b.c }}")
    code, (told,) = lint(capsys, folder)
    assert (code, told.startswith("templates/a.yaml:3: error: ")) == (1, True), told


def test_templates_see_the_given_kubernetes_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = f'{{{{ if semverCompare ">=1.40" .Capabilities.KubeVersion.Version }}}}{{{{ fail "too new" }}}}{{{{ end }}}}{PAGE}'
    folder = package(tmp_path, {"templates/a.yaml": template})
    assert lint(capsys, folder) == (0, [])
    code, (told,) = lint(capsys, folder, "--kubernetes-version", "v1.41.0")
    assert (code, "too new" in told) == (1, True)
    assert main(["package", "lint", str(folder), "--kubernetes-version", "new"]) == 1
    assert "'new' is not a valid version of Kubernetes" in capsys.readouterr().out
