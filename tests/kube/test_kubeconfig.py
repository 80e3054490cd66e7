"""The check whether an existing kubeconfig file may be replaced."""

from pathlib import Path

import pytest

from wharfinger.kube.kubeconfig import USER, check_replaceable


@pytest.mark.parametrize("content", ["", f'{{"current-context": "{USER}"}}'])
def test_empty_files_and_own_files_are_replaceable(content: str, tmp_path: Path) -> None:
    check_replaceable(tmp_path / "absent")
    (tmp_path / "config").write_text(content)
    check_replaceable(tmp_path / "config")


@pytest.mark.parametrize("content", ['{"current-context": "work"}', "not: json", "{"])
def test_files_of_other_writers_are_not_replaceable(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ValueError, match="was not written by a control plane; remove it, or choose another path"):
        check_replaceable(path)
    assert path.read_text() == content
