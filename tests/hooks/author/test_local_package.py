"""The search for the package of a hook file on the disk of its author."""

from pathlib import Path

import pytest

from tests.hooks.support.linting import package
from wharfinger.hooks.author.local_package import (
    check_hook_files,
    hook_files_of,
    package_around,
    section_of_hook,
    values_of_hook,
)
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.packages.author.package_check import Severity
from wharfinger.packages.errors import PackageError


def test_a_hook_belongs_to_the_package_of_the_nearest_hooks_folder(tmp_path: Path) -> None:
    folder = package(tmp_path, {"hooks/deep/a.sh": "#!/bin/bash\n"}, name="web")
    assert package_around(folder / "hooks/deep/a.sh") == folder
    assert section_of_hook(folder / "hooks/deep/a.sh") == "web"
    assert (
        section_of_hook(package(tmp_path, {"package.yaml": "name: two-words\n"}, name="x") / "hooks/a.sh") == "twoWords"
    )
    assert package_around(tmp_path / "a.sh") is None
    assert section_of_hook(tmp_path / "a.sh") == ""


def test_a_package_with_an_invalid_package_yaml_has_no_section(tmp_path: Path) -> None:
    assert section_of_hook(package(tmp_path, {"package.yaml": "zzz: 1\n"}) / "hooks/a.sh") == ""


def test_hook_files_of_a_folder_need_a_package_unless_global(tmp_path: Path) -> None:
    folder = package(tmp_path, {"hooks/a.sh": "#!/bin/bash\n", "hooks/off.sh": ""})
    files = hook_files_of(folder)
    assert [file.name for file in files.hooks] == ["hooks/a.sh"]
    assert len(files.warnings) == 1
    lone = tmp_path / "global-hooks"
    lone.mkdir()
    with pytest.raises(PackageError, match=r"expected package\.yaml"):
        hook_files_of(lone)
    assert hook_files_of(lone, HookScope.GLOBAL).hooks == ()


def test_package_check_warns_about_files_that_are_not_executable(tmp_path: Path) -> None:
    folder = package(tmp_path, {"hooks/a.sh": "#!/bin/bash\n", "hooks/off.sh": "", "enabled": ""})
    (folder / "enabled").chmod(0o644)
    assert [str(finding) for finding in check_hook_files(folder)] == [
        "hooks/off.sh: no executable permissions, chmod +x is required to run this hook",
        "enabled: it is not executable, so it is ignored; run chmod +x to use it",
    ]
    assert {finding.severity for finding in check_hook_files(folder)} == {Severity.WARNING}
    declared = {"package.yaml": "name: web\nversion: 1.0.0\nbatchHooks: [hooks/gone]\n", "hooks/a.sh": ""}
    (finding,) = check_hook_files(package(tmp_path, declared, name="other"))
    assert finding.severity is Severity.ERROR
    assert "declared in batchHooks" in finding.message


def test_a_hook_outside_of_a_package_has_no_values_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "Not A Name" / "hooks"
    folder.mkdir(parents=True)
    for hook in (folder / "a.sh", tmp_path / "a.sh"):
        own = values_of_hook(hook, {"web": {"a": 1}})
        assert (own.values, own.config_values) == ({}, {"web": {"a": 1}})
