"""The file template_types.json and its generator. The file has every type that the hash of a pod template needs."""

import json

import pytest

from tools.kubernetes.generate_template_types import GO_PROGRAM, OUTPUT, main


def test_every_type_of_the_table_is_defined() -> None:
    table = json.loads(OUTPUT.read_bytes())
    plain = {"bool", "string", "int32", "int64"} | {"resource.Quantity", "intstr.IntOrString", "v1.Time", "v1.FieldsV1"}
    for fields in table["structs"].values():
        for _, _, kind in fields:
            names = kind.replace("map[", "").replace("]", " ").replace("[", " ").replace("*", " ").split()
            for name in names:
                assert name in plain or name in table["structs"] or name in table["named"], kind


def test_missing_go_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", ["generate", "--minor", "36", "--patch", "1"])
    assert main() == 1
    assert "the go command is missing" in capsys.readouterr().err
    assert "PodTemplateSpec" in GO_PROGRAM
