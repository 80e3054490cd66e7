"""The extra ``wharfinger[embedded]``, which installs the libraries of the embedded control plane."""

import tomllib

import pytest

from tests.programs import ROOT
from wharfinger.__main__ import main
from wharfinger.kube.embedded_extra import LIBRARIES, missing_libraries


def test_the_libraries_of_the_extra_are_installed() -> None:
    assert missing_libraries() == ""


def test_the_names_agree_with_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert len(extras["embedded"]) == len(LIBRARIES)


def test_missing_libraries_are_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.kube.embedded_extra.find_spec", lambda name: None if name == "re2" else object())
    assert missing_libraries() == (
        "libraries of the embedded control plane are not installed: re2; pip install 'wharfinger[embedded]'"
    )


def test_the_control_plane_refuses_to_start_without_its_libraries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wharfinger.kube.embedded_extra.find_spec", lambda _name: None)
    assert main(["control-plane"]) == 1
    assert "pip install 'wharfinger[embedded]'" in capsys.readouterr().err
