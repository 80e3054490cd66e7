"""The files in which authors write tests of a build."""

from pathlib import Path

import pytest

from tests.offline.support import write_tree
from wharfinger.offline.testing import case_file
from wharfinger.offline.testing.case_file import (
    Absent,
    CaseFileError,
    Count,
    Fails,
    Matches,
    ObjectName,
    files_with_tests,
    read_tests,
)

SOUND = """
tests:
- name: three replicas
  values: {replicas: 3}
  expect:
  - object: Deployment/web
    matches: {spec: {replicas: 3}}
  - object: apps/Secret/web
    absent: true
  - kind: ConfigMap
    count: 2
  - count: 4
- name: a colour is required
  expect:
  - fails: name a colour
"""


def test_all_kinds_of_expectations_are_read(tmp_path: Path) -> None:
    path = write_tree(tmp_path, {"a.test.yaml": SOUND}) / "a.test.yaml"
    first, second = read_tests(path)
    assert (first.name, first.values, first.file) == ("three replicas", {"replicas": 3}, str(path))
    assert first.expectations == (
        Matches(ObjectName("", "Deployment", "web"), {"spec": {"replicas": 3}}),
        Absent(ObjectName("apps", "Secret", "web")),
        Count("ConfigMap", 2),
        Count("", 4),
    )
    assert (second.values, second.expectations) == (None, (Fails("name a colour"),))
    assert str(ObjectName("", "Deployment", "web")) == "Deployment/web"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tests: []", "expected a list with at least one test"),
        ("cases: []", "unknown field 'cases'; known are tests"),
        ("[1", "not readable|cannot be read|line"),
        ("tests: [{name: a}]", r"tests\[0\].expect: expected a list"),
        ("tests: [{expect: [{count: 1}]}]", r"tests\[0\].name: expected a text"),
        ("tests: [{name: a, expects: [1]}]", "unknown field 'expects'"),
        ("tests: [{name: a, expect: [{object: web, absent: true}]}]", "expected KIND/NAME or NAMESPACE/KIND/NAME"),
        ("tests: [{name: a, expect: [{object: A/b, absent: false}]}]", "found absent, object"),
        ("tests: [{name: a, expect: [{object: A/b, match: {}}]}]", "found match, object"),
        ("tests: [{name: a, expect: [{kind: A, count: true}]}]", "a whole number from 0 as count"),
        ("tests: [{name: a, expect: [{}]}]", "found nothing"),
        ("tests: [{name: a, expect: [{count: 1}]}, {name: a, expect: [{count: 1}]}]", "two tests have the name 'a'"),
    ],
)
def test_invalid_case_files_are_refused(text: str, told: str, tmp_path: Path) -> None:
    path = write_tree(tmp_path, {"a.test.yaml": text}) / "a.test.yaml"
    with pytest.raises(CaseFileError, match=told):
        read_tests(path)


def test_files_with_tests_are_in_a_folder_beside_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files_with_tests(tmp_path) == ()
    write_tree(tmp_path, {"tests/b.test.yml": "", "tests/a.test.yaml": "", "tests/c.yaml": "", "a.test.yaml": ""})
    assert [path.name for path in files_with_tests(tmp_path)] == ["a.test.yaml", "b.test.yml"]
    assert files_with_tests(tmp_path / "a.test.yaml") == files_with_tests(tmp_path)
    monkeypatch.setattr(case_file, "MAX_FILE", 3)
    (tmp_path / "tests" / "a.test.yaml").write_text("tests: []")
    with pytest.raises(CaseFileError, match="more than 3 bytes"):
        read_tests(tmp_path / "tests" / "a.test.yaml")
    with pytest.raises(CaseFileError, match="cannot be read"):
        read_tests(tmp_path / "absent")
