"""The scripts that can be started warm: scripts whose interpreter is a plain Python, named without options.

Workers are forked by a zygote (:mod:`~wharfinger.pools.interpreters.zygote`). A script is started warm only if a worker behaves
as a new process would. So the environment of the zygote has the variables that an interpreter reads when it starts, and scripts
with other values of these variables need another zygote. All other variables are set when the worker gets its script. The
functions of this module block, so they are called in a thread.

A zygote runs as this process's user, and imports modules before a worker switches to the user of a run. So if a run has a user of
its own, its interpreter and the variables that it reads must come from the user who runs this process and not from a package:
otherwise the package could run its code as the user of this process.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from wharfinger.process.command import Command
from wharfinger.process.errors import SpawnError
from wharfinger.process.launcher import check

READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_TUNABLES", "OPENSSL_", "__PYVENV_")
"""The prefixes of the environment variables that an interpreter, or a library that it uses, reads when it starts."""
_HARMLESS: Final = frozenset(
    {"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PYTHONUTF8"}
)
"""Variables that cannot make the interpreter load code, whatever their value is. This is also true for the variables of the
locale.
"""
_PYTHON: Final = re.compile(r"python3?(\.\d{1,3})?")
_FIRST_LINE: Final = 256  # BINPRM_BUF_SIZE of the kernel's include/uapi/linux/binfmts.h
_ELF: Final = b"\x7fELF"
_MAX_WORDS: Final = 2


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The interpreter of a zygote: its program, and the variables that it reads when it starts.

    ``identity`` distinguishes the program's file from a file that is installed in its place later.
    """

    program: str
    variables: tuple[tuple[str, str], ...]
    identity: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WarmStart:
    """A script that can run in a worker, which is forked from an interpreter that has already started.

    ``words`` are the interpreter as the command line names it. ``argv``, which follows them, is the script's file and its
    arguments.

    ``name`` is the name that the kernel gives the process: the name of the file that was executed last (execve(2)).
    """

    interpreter: Interpreter
    words: tuple[str, ...]
    argv: tuple[str, ...]
    name: str = ""


def warm_start(command: Command) -> WarmStart | None:
    """Return the data for running a command's script in a worker; None if the command must be started as a new process."""
    if command.wrapper or command.stdin or command.descriptors:
        return None
    try:
        found = _script_of(command)
        identity = _identity(found[0]) if found is not None else ()
        if found is not None and command.user is not None:
            check(command, Path(command.argv[0]))
    except (OSError, ValueError, SpawnError):
        return None  # the start of a new process will report the error
    if found is None:
        return None
    program, words, argv = found
    variables = sorted((name, value) for name, value in command.env.items() if name.startswith(READ_AT_START))
    if command.user is not None and not _is_trusted(program, variables):
        return None
    # If the script itself was executed, the kernel names the process after the script, unless its first line names env.
    executed = argv[0] if words[0] != command.argv[0] and words[0].startswith("/") else program
    return WarmStart(Interpreter(program, tuple(variables), identity), words, argv, Path(executed).name)


def _is_trusted(program: str, variables: Iterable[tuple[str, str]]) -> bool:
    """Return True if the interpreter is on the PATH of this process and each variable is harmless or has the value that it has
    in this process.
    """
    if str(Path(program).parent) not in os.environ.get("PATH", os.defpath).split(os.pathsep):
        return False
    return all(
        name in _HARMLESS or name.startswith(("LC_", "LANG")) or os.environ.get(name) == value
        for name, value in variables
    )


def _script_of(command: Command) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """Return the file of the Python interpreter that runs the command's script, the words by which the command line names this
    interpreter, and the script with its arguments. Return None if the command is not a Python script.
    """
    program, *arguments = command.argv
    if not program.startswith("/"):
        return None
    if _PYTHON.fullmatch(Path(program).name) and arguments and arguments[0].startswith("/"):
        if not stat.S_ISREG(Path(arguments[0]).stat().st_mode) or not _is_program(program, _identity(program)):
            return None
        return program, (program,), tuple(arguments)
    named = _interpreter_of(program)
    if named is None:
        return None
    words = named.split()
    if len(words) == 1 and _PYTHON.fullmatch(Path(words[0]).name) and words[0].startswith("/"):
        found: str | None = words[0]
    elif len(words) == _MAX_WORDS and Path(words[0]).name == "env" and _PYTHON.fullmatch(words[1]):
        words = words[1:]
        found = shutil.which(words[0], path=command.env.get("PATH", os.defpath))
    else:
        return None
    if found is None or not found.startswith("/") or not _is_program(found, _identity(found)):
        return None
    return found, tuple(words), command.argv


def _interpreter_of(path: str) -> str | None:
    """Return the first line of a script without its ``#!``; None for anything that is not a script."""
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode) or not mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        return None
    with Path(path).open("rb", buffering=0) as file:
        first = file.read(_FIRST_LINE)
    line, end, _ = first.partition(b"\n")
    return os.fsdecode(line[2:]) if end and line.startswith(b"#!") else None


def _identity(path: str) -> tuple[int, ...]:
    """Return the numbers that change if the file at a path is replaced. Raises OSError."""
    found = Path(path).stat()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _is_program(path: str, _identity: tuple[int, ...]) -> bool:
    """Return whether the file is a compiled program (ELF). The result is False for a script that starts an interpreter, because
    the script could also do other things before.
    """
    with Path(path).open("rb", buffering=0) as file:
        return file.read(len(_ELF)) == _ELF
