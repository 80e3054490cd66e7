"""Which commands can be started warm."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wharfinger.pools.interpreters.scripts import WarmStart, warm_start
from wharfinger.process.command import Command

PYTHON = os.path.realpath(sys.executable)


def bin_of(folder: Path) -> Path:
    """A folder for PATH, with a ``python3`` that is a program, and one that only starts it."""
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
def test_everything_else_is_started_as_a_new_process(tmp_path: Path, line: str) -> None:
    assert start_of(tmp_path, line) is None


def test_a_file_that_is_no_program_is_left_to_the_start_of_a_process(tmp_path: Path) -> None:
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


def test_variables_that_an_interpreter_reads_tell_zygotes_apart(tmp_path: Path) -> None:
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
