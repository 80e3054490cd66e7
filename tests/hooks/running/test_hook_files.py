"""The files that are hooks, and the commands that start them. The tests use real folders. The only program that they run is an
interpreter.
"""

import os
import socket
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.hooks.support.scripts import bash, write_hook
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import hook_files
from wharfinger.hooks.running.hook_files import GLOBAL_FOLDER, HookFile, find_hook_files, hook_file
from wharfinger.packages.definition.definition import Layout


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    folder = tmp_path / "package" / "hooks"
    folder.mkdir(parents=True)
    return folder


def names(hooks: Path, layout: Layout = Layout.PACKAGE) -> list[str]:
    return [hook.name for hook in find_hook_files(hooks.parent, layout).hooks]


def warnings(hooks: Path) -> tuple[str, ...]:
    return find_hook_files(hooks.parent, Layout.PACKAGE).warnings


def program(hooks: Path, name: str, *, mode: int = 0o755) -> Path:
    (hooks / name).parent.mkdir(parents=True, exist_ok=True)
    return write_hook(hooks, "#!/bin/sh\n", name=name, mode=mode)


def test_package_without_hooks_has_no_files_and_no_warnings(tmp_path: Path) -> None:
    found = find_hook_files(tmp_path, Layout.PACKAGE)
    assert (found.hooks, found.warnings) == ((), ())


def test_hooks_are_sorted_by_path_as_bytes(hooks: Path) -> None:
    for name in ("b.sh", "a/z.sh", "a.sh", "B.sh", "a-b/x.sh", "ä", "002-prom/startup_hook"):
        program(hooks, name)
    assert names(hooks) == [
        f"hooks/{name}" for name in ("002-prom/startup_hook", "B.sh", "a-b/x.sh", "a.sh", "a/z.sh", "b.sh", "ä")
    ]
    assert warnings(hooks) == ()


def test_excluded_files_and_folders_are_skipped_at_any_depth(hooks: Path) -> None:
    for name in (
        ".hidden.sh",
        ".git/hook.sh",
        "a/.cache/hook.sh",
        "a/lib/hook.sh",
        "a/venv/bin/python3",
        "values.yaml",
        "a.json",
        "README.md",
        "notes.txt",
        ".gitkeep",
    ):
        program(hooks, name)
    assert (names(hooks), warnings(hooks)) == ([], ())


def test_files_with_names_similar_to_excluded_ones_are_hooks(hooks: Path) -> None:
    for name in ("a.yml", "b.YAML", "libs/c.sh", "venv2/d", "lib2", "e.txt.sh"):
        program(hooks, name)
    assert len(names(hooks)) == 6


def test_file_that_is_not_executable_is_a_warning(hooks: Path) -> None:
    program(hooks, "a.sh", mode=0o644)
    program(hooks, "b.sh", mode=0o654)
    program(hooks, "values.yaml", mode=0o644)
    assert names(hooks) == ["hooks/b.sh"]
    assert warnings(hooks) == ("hooks/a.sh: no executable permissions, chmod +x is required to run this hook",)


def test_executables_in_the_top_lib_folder_are_a_warning(hooks: Path) -> None:
    program(hooks, "lib/common/x.sh")
    program(hooks, "lib/y.sh", mode=0o644)
    program(hooks, "a/lib/z.sh")
    assert names(hooks) == []
    assert warnings(hooks) == (
        "hooks/lib/common/x.sh: it has executable permissions and is in the ignored 'lib' folder",
    )


def test_links_to_files_as_in_a_mounted_config_map_are_hooks(hooks: Path) -> None:
    program(hooks, "..2024_01_01/hook.sh")
    (hooks / "..data").symlink_to("..2024_01_01")
    (hooks / "hook.sh").symlink_to("..data/hook.sh")
    assert names(hooks) == ["hooks/hook.sh"]
    assert warnings(hooks) == ()


def test_links_to_folders_and_dangling_links_are_not_hooks(hooks: Path) -> None:
    other = hooks.parent / "other"
    other.mkdir()
    program(other, "x.sh")
    (hooks / "folder").symlink_to(other)
    (hooks / "nothing").symlink_to("gone")
    (hooks / "lib").symlink_to(other)
    assert names(hooks) == []
    assert warnings(hooks) == tuple(
        f"hooks/{name}: the link does not lead to a file; it is not used as a hook"
        for name in ("folder", "lib", "nothing")
    )


def test_pipes_and_sockets_are_not_hooks(hooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(hooks / "pipe", 0o777)
    monkeypatch.chdir(hooks)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert names(hooks) == []
        assert [warning.partition(":")[0] for warning in warnings(hooks)] == ["hooks/pipe", "hooks/socket"]


def test_file_with_a_name_that_is_not_utf_8_is_not_a_hook(hooks: Path) -> None:
    program(hooks, os.fsdecode(b"\xff.sh"))
    assert names(hooks) == []
    assert warnings(hooks)[0].endswith("its name is not UTF-8; it is not used as a hook")


@pytest.mark.parametrize(
    ("bound", "said"),
    [("MAX_HOOKS", "3 executables, over the limit of 2 hooks"), ("MAX_ENTRIES", "more than 2 files and folders")],
)
def test_tree_with_too_many_files_is_refused(
    hooks: Path, bound: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_files, bound, 2)
    for name in ("a", "b"):
        program(hooks, name)
    assert len(names(hooks)) == 2
    program(hooks, "c")
    with pytest.raises(HookError, match=said):
        find_hook_files(hooks.parent, Layout.PACKAGE)


def test_nesting_of_folders_is_limited(hooks: Path) -> None:
    program(hooks, "d/" * hook_files.MAX_DEPTH + "x.sh")
    assert len(names(hooks)) == 1
    program(hooks, "d/" * (hook_files.MAX_DEPTH + 1) + "x.sh")
    with pytest.raises(HookError, match="nested deeper than 32"):
        find_hook_files(hooks.parent, Layout.PACKAGE)


@pytest.mark.parametrize("layout", Layout)
def test_working_folder_of_a_hook_depends_on_the_layout(hooks: Path, layout: Layout) -> None:
    path = program(hooks, "a/x.sh")
    (hook,) = find_hook_files(hooks.parent, layout).hooks
    of_a_module = layout is Layout.MODULE_FOLDER
    assert hook == HookFile(
        "hooks/a/x.sh",
        path,
        (),
        cwd=hooks.parent if of_a_module else hooks / "a",
        config_cwd=hooks.parent if of_a_module else hooks,
    )


def test_linked_package_is_resolved_to_its_real_path(hooks: Path, tmp_path: Path) -> None:
    path = program(hooks, "x.sh")
    (tmp_path / "deployed").symlink_to(hooks.parent)
    (hook,) = find_hook_files(tmp_path / "deployed", Layout.CHART).hooks
    assert hook.executable == path


def test_a_python_hook_without_an_environment_is_run_directly(hooks: Path) -> None:
    path = program(hooks, "x.py")
    (hook,) = find_hook_files(hooks.parent, Layout.PACKAGE).hooks
    assert (hook.executable, hook.argv, hook.environment) == (path, (), {})
    assert warnings(hooks) == ()


def test_python_hook_runs_in_the_virtual_environment_beside_it(hooks: Path) -> None:
    path = program(hooks, "a/x.py")
    program(hooks, "a/y.sh")
    venv.create(hooks / "venv", symlinks=True)
    hook, other = find_hook_files(hooks.parent, Layout.PACKAGE).hooks
    assert (hook.executable, hook.argv, hook.environment) == (hooks / "venv/bin/python3", (str(path),), {})
    assert other.argv == ()
    assert warnings(hooks) == ()
    path.write_text("import sys; print(sys.prefix)")
    assert said(hook) == str(hooks / "venv")


def test_copied_virtual_environment_gets_pythonhome(hooks: Path) -> None:
    """A copied environment has its own standard library, and its interpreter finds this library only through PYTHONHOME."""
    path = program(hooks, "x.py")
    (hooks / "venv/bin").mkdir(parents=True)
    (hooks / "venv/bin/python3").symlink_to(Path(sys.executable).resolve())
    (hooks / "venv/lib").mkdir()
    (hooks / f"venv/lib/{Path(os.__file__).parent.name}").symlink_to(Path(os.__file__).parent)
    (hook,) = find_hook_files(hooks.parent, Layout.PACKAGE).hooks
    assert hook.environment == {"PYTHONHOME": str(hooks / "venv")}
    path.write_text("import sys, json; print(sys.prefix)")
    assert said(hook) == str(hooks / "venv")


def test_interpreter_that_is_not_executable_is_ignored(hooks: Path) -> None:
    program(hooks, "x.py")
    program(hooks, "venv/bin/python3", mode=0o644)
    (hook,) = find_hook_files(hooks.parent, Layout.PACKAGE).hooks
    assert hook.argv == ()


def said(hook: HookFile) -> str:
    """Run the hook with the command and the environment that a runner uses, and return its output."""
    environment = {"PATH": os.environ["PATH"], **hook.environment}
    command = [str(hook.executable), *hook.argv]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_single_hook_file_is_resolved_without_a_package(
    hooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = bash(tmp_path, ":")
    assert hook_file(lone) == HookFile("10-hook.sh", lone, (), tmp_path, tmp_path)
    path = program(hooks, "a/x.py")
    program(hooks, "venv/bin/python3")
    monkeypatch.chdir(hooks)
    assert hook_file(Path("a/x.py")) == HookFile(
        "x.py", hooks / "venv/bin/python3", (str(path),), cwd=hooks / "a", config_cwd=hooks
    )


ELF = b"\x7fELF and more"


def batches(hooks: Path, *declared: str) -> list[str]:
    return [hook.name for hook in find_hook_files(hooks.parent, Layout.PACKAGE, batch=declared).hooks if hook.batch]


def test_compiled_files_without_extension_are_batches(hooks: Path) -> None:
    for name in ("main", "main.bin", "a/v1.2", "a/elf"):
        program(hooks, name).write_bytes(ELF)
    program(hooks, "script")
    program(hooks, "empty").write_bytes(b"")
    (hooks / "link").symlink_to("main.bin")
    assert batches(hooks) == ["hooks/a/elf", "hooks/link", "hooks/main"]


def test_declared_batch_files_are_batches(hooks: Path) -> None:
    for name in ("main.py", "a/b", "plain"):
        program(hooks, name)
    assert batches(hooks, "hooks/main.py", "hooks/a/b") == ["hooks/a/b", "hooks/main.py"]


@pytest.mark.parametrize("name", ["gone", "no-mode", "lib/x", ".hidden", "a.json", "a", "venv/x"])
def test_declared_batch_that_is_not_a_hook_is_refused(name: str, hooks: Path) -> None:
    for there in ("lib/x", ".hidden", "a.json", "a/b", "venv/x"):
        program(hooks, there)
    program(hooks, "no-mode", mode=0o644)
    with pytest.raises(HookError, match=f"hook hooks/{name}: it is declared in batchHooks but is not a hook"):
        batches(hooks, "hooks/a/b", f"hooks/{name}")


def test_declared_batch_in_a_package_without_hooks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HookError, match="hook hooks/main: it is declared"):
        find_hook_files(tmp_path, Layout.PACKAGE, batch=("hooks/main",))


def test_unreadable_program_is_one_ordinary_hook(hooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(hooks, "main").write_bytes(ELF)

    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, mode, str(path))

    monkeypatch.setattr(Path, "open", refuse)
    assert (batches(hooks), names(hooks)) == ([], ["hooks/main"])


def global_names(folder: Path) -> list[tuple[str, Path]]:
    found = find_hook_files(folder, Layout.MODULE_FOLDER, scope=HookScope.GLOBAL)
    return [(hook.name, hook.cwd) for hook in found.hooks]


def test_global_hooks_are_found_in_the_folder_itself(tmp_path: Path) -> None:
    for name in ("b.sh", "a/x", "lib/y", ".z", "openapi/values.yaml"):
        program(tmp_path, name)
    assert global_names(tmp_path) == [(f"{GLOBAL_FOLDER}/a/x", tmp_path), (f"{GLOBAL_FOLDER}/b.sh", tmp_path)]
    found = find_hook_files(tmp_path, Layout.MODULE_FOLDER, scope=HookScope.GLOBAL)
    assert [warning.partition(":")[0] for warning in found.warnings] == [f"{GLOBAL_FOLDER}/lib/y"]


def test_global_hooks_are_found_in_the_hooks_subfolder_if_it_exists(tmp_path: Path) -> None:
    program(tmp_path, "b.sh")
    (tmp_path / "hooks").mkdir()
    assert global_names(tmp_path) == []
    program(tmp_path, "hooks/a")
    assert global_names(tmp_path) == [("hooks/a", tmp_path)]
    assert global_names(tmp_path / "gone") == []
