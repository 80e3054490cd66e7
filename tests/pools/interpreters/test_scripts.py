"""The commands whose script can be started warm, that is, in a worker that a zygote has forked."""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wharfinger.pools.interpreters import scripts
from wharfinger.pools.interpreters.scripts import WarmStart, warm_start
from wharfinger.process.command import Command, User

PYTHON = os.path.realpath(sys.executable)


def bin_of(folder: Path) -> Path:
    """Create a folder for PATH, which has a ``python3`` program and a script that only starts this program."""
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(PYTHON)
    shim = folder / "bin" / "python3.9"
    shim.write_text("#!/bin/sh\nexec python3 $@\n")
    shim.chmod(0o755)
    return folder / "bin"


def start_of(folder: Path, first_line: str, *arguments: str, mode: int = 0o755) -> WarmStart | None:
    script = folder / "hook"
    script.write_text(f"{first_line}\npass\n")
    script.chmod(mode)
    return warm_start(Command((str(script), *arguments), folder, {"PATH": str(bin_of(folder))}))


def test_a_script_of_env_is_started_by_the_python_on_its_path(tmp_path: Path) -> None:
    start = start_of(tmp_path, "#!/usr/bin/env python3", "run")
    assert start is not None
    assert start.interpreter.program == str(tmp_path / "bin" / "python3")
    assert (start.words, start.argv) == (("python3",), (str(tmp_path / "hook"), "run"))


def test_a_script_that_names_its_interpreter(tmp_path: Path) -> None:
    start = start_of(tmp_path, f"#! {PYTHON} ")
    assert start is not None
    assert (start.interpreter.program, start.words) == (PYTHON, (PYTHON,))


@pytest.mark.parametrize(
    "line",
    [
        "#!/bin/bash",
        "#!/usr/bin/env bash",
        f"#!{PYTHON} -u",
        f"#!{PYTHON} -I -S",
        "#!/usr/bin/env -S python3 -u",
        "#!/usr/bin/env python3.9",
        "#!/usr/bin/env python3 -u",
        "#!/usr/bin/env python2",
        "#!/no/such/python3",
        "#!python3",
        "import os",
        "\x7fELF",
        "",
    ],
)
def test_other_commands_are_started_as_a_new_process(tmp_path: Path, line: str) -> None:
    assert start_of(tmp_path, line) is None


def test_a_file_that_is_not_a_program_is_started_as_a_new_process(tmp_path: Path) -> None:
    assert start_of(tmp_path, f"#!{PYTHON}", mode=0o644) is None
    assert warm_start(Command((str(tmp_path / "missing"),), tmp_path, {})) is None
    assert warm_start(Command((str(tmp_path),), tmp_path, {})) is None
    assert warm_start(Command(("hook",), tmp_path, {})) is None


def test_an_interpreter_with_a_script(tmp_path: Path) -> None:
    python, script = bin_of(tmp_path) / "python3", tmp_path / "hook.py"
    script.touch()
    start = warm_start(Command((str(python), str(script), "run"), tmp_path, {}))
    assert start is not None
    assert (start.interpreter.program, start.argv) == (str(python), (str(script), "run"))
    for arguments in ((), ("-c", "pass"), ("hook.py",), (str(tmp_path),), (str(tmp_path / "missing"),)):
        assert warm_start(Command((str(python), *arguments), tmp_path, {})) is None


def test_only_variables_of_the_interpreter_select_the_zygote(tmp_path: Path) -> None:
    script = tmp_path / "hook"
    script.write_text(f"#!{PYTHON}\n")
    script.chmod(0o755)
    command = Command((str(script),), tmp_path, {"PATH": "/bin", "B": "1", "PYTHONPATH": "/x", "LC_ALL": "C"})
    start = warm_start(command)
    assert start is not None
    assert start.interpreter.variables == (("LC_ALL", "C"), ("PYTHONPATH", "/x"))
    other = warm_start(replace(command, env={**command.env, "B": "2", "PATH": "/usr/bin"}))
    assert other is not None
    assert other.interpreter == start.interpreter


def test_a_sandbox_and_an_input_need_a_new_process(tmp_path: Path) -> None:
    script = tmp_path / "hook"
    script.write_text(f"#!{PYTHON}\n")
    script.chmod(0o755)
    command = Command((str(script),), tmp_path, {})
    assert warm_start(command) is not None
    assert warm_start(replace(command, wrapper=("bwrap",))) is None
    assert warm_start(replace(command, stdin=b"x")) is None
    assert warm_start(replace(command, descriptors=(5,))) is None


def test_a_replaced_interpreter_needs_another_zygote(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    shutil.copy(os.path.realpath(sys.executable), python)
    script = tmp_path / "script"
    script.write_text(f"#!{python}\n")
    script.chmod(0o755)
    before = warm_start(Command((str(script),), tmp_path, {}))
    shutil.copy(os.path.realpath(sys.executable), tmp_path / "new")
    (tmp_path / "new").replace(python)
    after = warm_start(Command((str(script),), tmp_path, {}))
    assert before is not None
    assert after is not None
    assert before.interpreter != after.interpreter


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (f"#!{PYTHON}", "hook"),
        ("#!/usr/bin/env python3", "python3"),
    ],
)
def test_the_name_of_the_process_is_that_of_the_file_that_is_executed_last(
    tmp_path: Path, found: str, name: str
) -> None:
    start = start_of(tmp_path, found)
    assert start is not None
    assert start.name == name


def test_an_interpreter_with_a_script_keeps_its_own_process_name(tmp_path: Path) -> None:
    python, script = bin_of(tmp_path) / "python3", tmp_path / "hook.py"
    script.touch()
    start = warm_start(Command((str(python), str(script)), tmp_path, {}))
    assert start is not None
    assert start.name == "python3"


@pytest.mark.parametrize(
    ("variables", "trusted"),
    [
        ({}, True),
        ({"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C", "LANG": "de_DE", "LANGUAGE": "de"}, True),
        ({"PYTHONPATH": "/daemons"}, True),
        ({"PYTHONPATH": "/packages"}, False),
        ({"PYTHONHOME": "/packages"}, False),
        ({"PYTHONSTARTUP": "/packages"}, False),
        ({"LD_PRELOAD": "/packages/x.so"}, False),
        ({"OPENSSL_CONF": "/packages/openssl.cnf"}, False),
    ],
)
def test_code_of_a_package_is_not_loaded_by_a_zygote_if_its_runs_have_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, trusted: bool
) -> None:
    """The zygote would run the code of the package as the daemon's user instead of the hook's user."""
    monkeypatch.setattr(scripts, "check", lambda *_: None)  # The hook's user may not enter the folder of this test.
    monkeypatch.setenv("PATH", str(bin_of(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", "/daemons")
    (tmp_path / "package").mkdir()
    script = tmp_path / "package" / "hook"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    command = Command((str(script),), tmp_path, {"PATH": os.environ["PATH"], **variables}, user=User(1, 1))
    assert (warm_start(command) is not None) == trusted
    assert warm_start(replace(command, user=None)) is not None


def test_the_interpreter_of_a_package_is_no_zygote_if_its_runs_have_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "check", lambda *_: None)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    own = bin_of(tmp_path) / "python3"
    script = tmp_path / "hook"
    script.write_text(f"#!{own}\n")
    script.chmod(0o755)
    (tmp_path / "hook.py").touch()
    for argv, path in (
        ((str(script),), "/bin"),
        ((str(own), str(tmp_path / "hook.py")), "/bin"),
        ((str(script),), str(own.parent)),
    ):
        command = Command(argv, tmp_path, {"PATH": path}, user=User(1, 1))
        assert warm_start(command) is None
        assert warm_start(replace(command, user=None)) is not None
