"""The command `wharfinger package rights`: its receipt, added rights, and wrong usage."""

import json
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from wharfinger.__main__ import main

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: planted}\nstringData: {a: b}\n"


@pytest.mark.slow
@pytest.mark.unmeasured
def test_added_rights_are_reported_for_each_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = chart(tmp_path / "old", "web", "1.0.0")
    new = chart(tmp_path / "new", "web", "1.1.0", {"templates/secret.yaml": SECRET})
    (tmp_path / "objects.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\n")
    arguments = ["package", "rights", str(new), "--against", str(old), "--objects", str(tmp_path / "objects.yaml")]
    assert main([*arguments, "-o", "json"]) == 2
    grown = json.loads(capsys.readouterr().out)["grown"]
    assert {(part, each["resource"], each["verb"]) for part, found in grown.items() for each in found} == {
        ("upgrade", "secrets", "get"),
        ("upgrade", "secrets", "create"),
        ("upgrade", "secrets", "patch"),
        ("removal", "secrets", "get"),
        ("removal", "secrets", "delete"),
    }


@pytest.mark.slow
@pytest.mark.unmeasured
def test_the_same_package_needs_no_added_rights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    assert main(["package", "rights", str(folder), "--against", str(folder), "--resource-names"]) == 0
    out = capsys.readouterr().out
    assert "kind: Role" in out
    assert 'resourceNames: ["web"]' in out
    assert "# No rights are needed beyond those of" in out


@pytest.mark.slow
def test_a_package_of_both_kinds_is_installed_as_the_requested_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    assert main(["package", "rights", str(folder), "--module", "-n", "platform"]) == 0
    out = capsys.readouterr().out
    assert "of the package web 1.0.0, as Module web" in out
    assert "namespace: platform" in out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--helm", "no-such-helm"], "no 'no-such-helm' on PATH"),
        (["--timeout", "0"], "expected a number of seconds above 0"),
        (["--objects", "absent.yaml"], "absent.yaml: cannot be read"),
        (["--settings", "absent.yaml"], "absent.yaml: cannot be read"),
        (["--against", "absent"], "absent: no such folder"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    assert main(["package", "rights", str(folder), *more]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_another_package_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = chart(tmp_path / "web", "web", "1.0.0"), chart(tmp_path / "db", "db", "1.0.0")
    (tmp_path / "objects.yaml").write_text("- not an object\n")
    assert main(["package", "rights", str(one), "--against", str(other)]) == 1
    assert "is Application default/db" in capsys.readouterr().err
    assert main(["package", "rights", str(one), "--objects", str(tmp_path / "objects.yaml")]) == 1
    assert "objects.yaml, line 1" in capsys.readouterr().err
