"""Which kubeconfig files may be replaced."""

from pathlib import Path

import pytest

from wharfinger.kube.kubeconfig import USER, check_replaceable


@pytest.mark.parametrize("content", ["", f'{{"current-context": "{USER}"}}'])
def test_an_empty_one_and_one_of_ours_may_be(content: str, tmp_path: Path) -> None:
    check_replaceable(tmp_path / "absent")
    (tmp_path / "config").write_text(content)
    check_replaceable(tmp_path / "config")


@pytest.mark.parametrize("content", ['{"current-context": "work"}', "not: json", "{"])
def test_one_of_another_writer_may_not(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ValueError, match="was not written by a control plane; remove it, or choose another path"):
        check_replaceable(path)
    assert path.read_text() == content
