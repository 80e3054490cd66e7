"""Checks of custom resource definitions without an API server."""

from pathlib import Path

import pytest

from tests.hooks.support.linting import lint, package

SOUND = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pages.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: pages, kind: Page}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("", ""), []),
        (
            ("name: pages.example.com", "name: page"),
            ['3: error: metadata.name: Invalid value: "page": must be spec.names'],
        ),
        (
            ("group: example.com", "group: [a]"),
            ['4: error: CustomResourceDefinition in version "v1" cannot be handled as a'],
        ),
        (("scope: Namespaced", "scop: x"), ["4: error: spec.scope: Required value"]),
        (
            ("storage: true", "storage: false"),
            ['8: error: spec.versions: Invalid value: [{"Name":"v1",'],
        ),
        (
            ("served: true", "served: false"),
            ["8: warning: spec.versions: no version is served, so the kind cannot be used"],
        ),
        (
            ("spec: {type: object}", "spec: {tpye: object}"),
            [
                "16: error: spec.validation.openAPIV3Schema.properties[spec].type: Required",
                "16: warning: tpye: not a keyword",
            ],
        ),
        (
            ("type: object\n", "type: objekt\n"),
            ['14: error: spec.validation.openAPIV3Schema.type: Invalid value: "objekt": must be object', "*"],
        ),
        (("definition/v1", "x"), []),
        (("k8s.io/v1", "k8s.io/v1beta1"), ["1: error: apiVersion: apiextensions.k8s.io/v1beta1 is not served by any"]),
        (
            ("CustomResourceDefinition", "Page"),
            ["2: warning: Page is not a CustomResourceDefinition, but it is applied before"],
        ),
        (("  versions:", "  - versions:"), ["*"]),
    ],
)
def test_definitions_that_a_server_would_refuse_are_reported_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], found: list[str]
) -> None:
    folder = package(tmp_path, {"crds/a.yaml": SOUND.replace(*change)})
    _, told = lint(capsys, folder)
    lines = [line.removeprefix("crds/a.yaml:") for line in told]
    assert all(line.startswith(end) for line, end in zip(lines, found, strict=False) if end != "*"), told
    assert bool(lines) == bool(found)


def test_each_document_has_its_own_lines_and_other_files_are_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = f"---\n---\n{SOUND}---\n{SOUND.replace('scope: Namespaced', 'scope: 1')}"
    files = {"crds/deep/two.yaml": two, "crds/doc-ru.yaml": "a", "crds/x.txt": "a", "crds/list.yaml": "kind: Page\n"}
    code, told = lint(capsys, package(tmp_path, files))
    assert code == 1
    assert [line.partition(": error: ")[0] for line in told] == ["crds/deep/two.yaml:23", "crds/list.yaml:1"]
