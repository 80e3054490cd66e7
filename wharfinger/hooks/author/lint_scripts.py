"""Checks of executable files without running them: permission, first line, line ends, and the syntax of shell scripts.

If a hook never runs, its file usually has one of three faults: it is not executable, its first line does not name the
interpreter, or its lines end with CRLF, so that the first line names a program that does not exist. Shell scripts are
parsed by their own shell (``bash -n``), which executes nothing and knows the syntax best. Findings about the syntax have the line
numbers that the shell prints.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from wharfinger.hooks.author.lint_sources import PACKAGE, LintFinding, finding
from wharfinger.hooks.running.enabled_script import SCRIPT as ENABLED
from wharfinger.hooks.running.enabled_script import why_not_run
from wharfinger.hooks.running.hook_files import HookFile, HookFiles
from wharfinger.packages.author.package_check import Severity
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits
from wharfinger.process.environment import NO_BYTECODE
from wharfinger.process.errors import ProcessError

MAX_SCRIPT: Final = 1024 * 1024
"""The largest size of a script in bytes. A larger file counts as a compiled program, and is not checked."""
_ELF: Final = b"\x7fELF"
_LIMITS: Final = Limits(wall_s=10.0, stdout_bytes=64 * 1024)
_SHELLS: Final = re.compile(rb"#!\s*(?:/usr/bin/env\s+(?:-S\s+)?)?(?:\S*/)?(bash|sh|dash)\b")
_SAID_OF_LINE: Final = re.compile(r"^[^\n]*?: (?:line )?(\d+): ([^\n]*)$", re.MULTILINE)


async def lint_scripts(folder: Path, files: HookFiles) -> list[LintFinding]:
    """Check the hooks of a package, and the files beside them that look like hooks."""
    found = [_of_warning(warning) for warning in files.warnings]
    for file in files.hooks:
        path = Path(file.argv[0]) if file.argv else file.executable
        found += await lint_script(path, _relative(folder, path, file))
    return found


async def lint_enabled(folder: Path) -> list[LintFinding]:
    """Check the enabled script of a package."""
    path = folder / ENABLED
    if not path.is_file():
        return []
    if why := why_not_run(path):
        return [finding(ENABLED, 1, Severity.WARNING, why)]
    return await lint_script(path, ENABLED)


async def lint_script(path: Path, name: str) -> list[LintFinding]:
    """Check one executable file."""
    try:
        text = await trio.to_thread.run_sync(_beginning, path)
    except OSError as error:
        return [finding(name, 0, Severity.ERROR, f"it cannot be read: {error.strerror}")]
    if text.startswith(_ELF) or len(text) > MAX_SCRIPT:
        return []
    found = list(_first_line_faults(text, name))
    if not found and (shell := _SHELLS.match(text)):
        found += await _syntax(shell[1].decode(), path, name)
    return found


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_SCRIPT + 1)


def _first_line_faults(text: bytes, name: str) -> Iterator[LintFinding]:
    first = text.partition(b"\n")[0]
    if not text.strip():
        yield finding(
            name, 1, Severity.ERROR, "it is empty; a hook must print its bindings when it is run with --config"
        )
    elif not text.startswith(b"#!"):
        why = "no shebang: it cannot be started (exec format error); begin it with a line such as #!/usr/bin/env bash"
        yield finding(name, 1, Severity.ERROR, why)
    elif first.endswith(b"\r"):
        why = "its lines end with CRLF, so the program named in the first line is not found; save the file with LF"
        yield finding(name, 1, Severity.ERROR, why)
    elif b"\r\n" in text:
        number = text[: text.index(b"\r\n")].count(b"\n") + 1
        yield finding(
            name, number, Severity.WARNING, "the line ends with CRLF, which most programs read as part of the line"
        )


async def _syntax(shell: str, path: Path, name: str) -> list[LintFinding]:
    """Return the shell's findings about the script's syntax; empty if the shell is not installed."""
    program = shutil.which(shell)
    if program is None:
        return []
    command = Command((program, "-n", str(path)), path.parent, {"LC_ALL": "C", **NO_BYTECODE})
    try:
        outcome = await run_child(command, _LIMITS)
    except ProcessError as error:
        return [finding(name, 1, Severity.WARNING, f"its syntax was not checked: {error}")]
    said = outcome.stderr.decode(errors="replace")
    found = [
        finding(name, int(line), Severity.ERROR, f"{shell}: {why}") for line, why in _SAID_OF_LINE.findall(said)[:5]
    ]
    if outcome.ok:
        return [finding(each.file, each.line, Severity.WARNING, each.message) for each in found]
    return found or [
        finding(name, 1, Severity.ERROR, f"{shell} reports a syntax error: {said.strip() or 'no details'}")
    ]


def _of_warning(warning: str) -> LintFinding:
    """Return a finding for a warning. The search for a package's hooks warns of each file that looks like a hook but is
    none.
    """
    name, _, why = warning.partition(": ")
    return finding(name, 1, Severity.WARNING, why) if why else finding(PACKAGE, 0, Severity.WARNING, warning)


def _relative(folder: Path, path: Path, file: HookFile) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file.name
