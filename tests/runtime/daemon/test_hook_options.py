"""The options for hooks: the folders of modules and of global hooks, from options or from the environment, and errors."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest

from wharfinger.hooks.containment.cluster_access import CredentialsPolicy
from wharfinger.hooks.containment.hook_environment import AskedVariable
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.daemon.hook_options import AddonFolders, add_hooks, addon_folders, folders_problem
from wharfinger.runtime.lifecycle.restart_policy import Repeat
from wharfinger.runtime.resources.resources import CONFIG_MAP


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_hooks(parser)
    return parser.parse_args(arguments)


def folders(*arguments: str, environment: Mapping[str, str] | None = None) -> AddonFolders:
    return addon_folders(parsed(*arguments), environment or {})


def test_no_folders_are_used_by_default() -> None:
    args = parsed()
    assert not addon_folders(args, {})
    assert folders_problem(addon_folders(args, {})) == ""
    assert (args.on_startup, args.synchronization) == (Repeat.LAYOUT, Repeat.LAYOUT)


def test_folders_are_given_by_options_or_the_environment(tmp_path: Path) -> None:
    for name in ("a", "b", "g"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text("something")
    a, b, g = (tmp_path / name for name in ("a", "b", "g"))
    given = folders("--modules-dir", f"{a}:{b}", "--modules-dir", f"{a}", "--global-hooks-dir", f"{g}")
    assert given == AddonFolders((a, b), g)
    assert given.folders() == (a, b, g)
    assert folders_problem(given) == ""
    for modules, global_hooks in (
        ("ADDON_OPERATOR_MODULES_DIR", "ADDON_OPERATOR_GLOBAL_HOOKS_DIR"),
        ("MODULES_DIR", "GLOBAL_HOOKS_DIR"),
    ):
        assert folders(environment={modules: f"{a}:{b}", global_hooks: f"{g}"}) == given
    both = {"MODULES_DIR": f"{b}", "ADDON_OPERATOR_MODULES_DIR": f"{a}"}
    assert folders(environment=both).modules == (a,)
    assert folders("--modules-dir", f"{b}", environment=both).modules == (b,)


def test_invalid_folders_are_reported(tmp_path: Path) -> None:
    assert "not a folder" in folders_problem(folders("--modules-dir", str(tmp_path / "none")))
    alone = folders("--config-map", "ns/addon-operator")
    assert alone.config_map == ObjectKey(CONFIG_MAP, "ns", "addon-operator")
    assert "there is no folder of either" in folders_problem(alone)


@pytest.mark.parametrize("arguments", [("--config-map", "x"), ("--on-startup", "never"), ("--synchronization", "")])
def test_invalid_values_are_refused(arguments: tuple[str, str]) -> None:
    with pytest.raises(SystemExit):
        parsed(*arguments)


def test_an_empty_folder_of_global_hooks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    empty = folders("--global-hooks-dir", str(tmp_path))
    assert "expected hooks, found no file" in folders_problem(empty)
    (tmp_path / "hooks" / "a.sh").write_text("#!/bin/sh\n")
    assert folders_problem(empty) == ""


def test_the_variables_of_addon_operator_name_the_config_map(tmp_path: Path) -> None:
    environment = {"ADDON_OPERATOR_NAMESPACE": "ns", "ADDON_OPERATOR_CONFIG_MAP": "settings"}
    named = folders("--modules-dir", str(tmp_path), environment=environment)
    assert named.config_map == ObjectKey(CONFIG_MAP, "ns", "settings")
    assert folders(environment=environment).config_map is None
    alone = {"ADDON_OPERATOR_CONFIG_MAP": "settings"}
    assert folders("--modules-dir", str(tmp_path), environment=alone).config_map is None


def test_variables_and_credentials_of_hooks_are_read() -> None:
    args = parsed()
    assert (args.hook_env, args.hook_credentials) == ([], CredentialsPolicy.MODULES)
    args = parsed("--hook-env", "A", "--hook-env", "B=1", "--hook-credentials", "all")
    assert args.hook_env == [AskedVariable("A"), AskedVariable("B", "1")]
    assert args.hook_credentials is CredentialsPolicy.ALL


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--hook-credentials", "some"), "'some' is not one of modules, all, none"),
        (("--hook-env", "A B"), "'A B' is not NAME, NAME=VALUE"),
    ],
)
def test_invalid_variables_and_credentials_of_hooks_are_refused(
    arguments: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*arguments)
    assert why in capsys.readouterr().err


def test_the_memory_of_pools_is_read_as_a_quantity() -> None:
    assert parsed().pool_memory == 0
    assert parsed("--pool-memory", "512Mi").pool_memory == 512 * 1024**2


@pytest.mark.parametrize("size", ["none", "16Mi", "0", "many", "512MB"])
def test_an_invalid_or_too_small_memory_of_pools_is_refused(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--pool-memory", size)
    assert size in capsys.readouterr().err
