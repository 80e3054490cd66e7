"""The command ``wharfinger test`` as an author runs it."""

import json
from pathlib import Path

import pytest

from tests.offline.support import cli, cli_process, config_map, kustomization, write_tree
from tests.packages.support.charts import chart

TESTS = """
tests:
- name: the default
  expect:
  - object: ConfigMap/web
    matches: {data: {text: none}}
- name: a text
  values: {text: given}
  expect:
  - object: ConfigMap/web
    matches: {data: {text: given}}
  - count: 1
- name: a size is required
  values: {size: null}
  expect:
  - fails: name a size
"""
TEMPLATE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    'data: {text: {{ .Values.text | quote }}, size: {{ required "name a size" .Values.size | quote }}}\n'
)


@pytest.mark.slow
def test_a_chart_is_built_with_the_values_of_each_test(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", files={"templates/map.yaml": TEMPLATE})
    for path in (folder / "templates").iterdir():
        if path.name != "map.yaml":
            path.unlink()
    write_tree(folder, {"values.yaml": "text: none\nsize: 1\n", "tests/a.test.yaml": TESTS})
    done = cli_process("test", str(folder), cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "3 tests: 3 passed, 0 failed"
    (folder / "templates" / "map.yaml").write_text(TEMPLATE.replace(".Values.text | quote", '"fixed"'))
    done = cli_process("test", str(folder), "-o", "json", cache=tmp_path / "cache")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["passed"], document["failed"]) == (1, 2)
    assert document["tests"][1]["problems"] == ['ConfigMap/web: data.text: expected "given", found "fixed"']


def test_a_tree_is_tested_with_a_junit_report(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": config_map("x", a="1")})
    tests = write_tree(tmp_path, {"x.test.yaml": "tests: [{name: one, expect: [{kind: ConfigMap, count: 1}]}]"})
    done = cli("test", str(tree), "--tests", str(tests / "x.test.yaml"), "-o", "junit", cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")
    assert 'tests="1" failures="0"' in done.stdout


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        (None, "has no tests/*.test.yaml; add a file"),
        ("tests: []", "expected a list with at least one test"),
        ("tests: [{name: a, values: {}, expect: [{count: 1}]}]", "values are for one package or chart"),
    ],
)
def test_invalid_tests_are_refused(tests: str | None, told: str, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"a.yaml": config_map("x")})
    if tests is not None:
        write_tree(tree, {"tests/a.test.yaml": tests})
    done = cli("test", str(tree), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
