"""Whose a hook is, on its author's disk."""

from pathlib import Path

import pytest

from tests.hooks.linting import package
from wharfinger.hooks.config import HookScope
from wharfinger.hooks.own_package import hook_files_of, package_around, section_of_hook
from wharfinger.packages.errors import PackageError


def test_a_hook_is_its_packages_whose_hooks_folder_is_nearest(tmp_path: Path) -> None:
    folder = package(tmp_path, {"hooks/deep/a.sh": "#!/bin/bash\n"}, name="web")
    assert package_around(folder / "hooks/deep/a.sh") == folder
    assert section_of_hook(folder / "hooks/deep/a.sh") == "web"
    assert (
        section_of_hook(package(tmp_path, {"package.yaml": "name: two-words\n"}, name="x") / "hooks/a.sh") == "twoWords"
    )
    assert package_around(tmp_path / "a.sh") is None
    assert section_of_hook(tmp_path / "a.sh") == ""


def test_a_package_that_says_nothing_of_itself_has_no_section(tmp_path: Path) -> None:
    assert section_of_hook(package(tmp_path, {"package.yaml": "zzz: 1\n"}) / "hooks/a.sh") == ""


def test_the_hooks_of_a_folder(tmp_path: Path) -> None:
    folder = package(tmp_path, {"hooks/a.sh": "#!/bin/bash\n", "hooks/off.sh": ""})
    files = hook_files_of(folder)
    assert [file.name for file in files.hooks] == ["hooks/a.sh"]
    assert len(files.warnings) == 1
    lone = tmp_path / "global-hooks"
    lone.mkdir()
    with pytest.raises(PackageError, match="nothing says what it is"):
        hook_files_of(lone)
    assert hook_files_of(lone, HookScope.GLOBAL).hooks == ()
