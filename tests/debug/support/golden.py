"""Golden transcripts: files with the output of commands, in which texts that differ between two runs are replaced.

`WHARFINGER_REWRITE=1` rewrites the files. Commands are written as a user types them. FOLDER stands for a folder of the test.
"""

import difflib
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from tests.programs import ROOT

GOLDEN: Final = ROOT / "tests" / "debug" / "testdata"
REWRITES: Final = bool(os.environ.get("WHARFINGER_REWRITE"))
_CHANGES: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\d\d:\d\d:\d\d UTC \([0-9a-z.]+\)"), "TIME (AGE)"),
    (re.compile(r"sha256:[0-9a-f]{64}"), "DIGEST"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "DIGEST"),
    (re.compile(r"\((?!\d+\.\d+\.\d+\))\d[0-9a-z.]*\)"), "(AGE)"),
)


class Run(Protocol):
    """A function that runs one command of wharfinger."""

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]: ...


def transcript_of(commands: Sequence[str], run: Run, folder: Path) -> str:
    """Return the output of commands, with their exit codes."""
    return unchanging("\n".join(ran(line, run(*words_of(line, folder))) for line in commands), folder)


def ran(line: str, done: subprocess.CompletedProcess[str]) -> str:
    """Return a command and its output as text. Lines of stderr begin with an exclamation mark."""
    err = "".join(f"! {each}\n" for each in done.stderr.splitlines())
    code = f"exit code {done.returncode}\n" if done.returncode else ""
    out = done.stdout if done.stdout.endswith("\n") or not done.stdout else f"{done.stdout}\n"
    return f"$ wharfinger {line}\n{out}{err}{code}"


def words_of(line: str, folder: Path = Path("FOLDER")) -> list[str]:
    """Split a command line as a shell does, and replace FOLDER in its words."""
    return [word.replace("FOLDER", str(folder)) for word in shlex.split(line)]


def unchanging(text: str, folder: Path) -> str:
    """Replace texts that differ between two runs. Several spaces become one, because the width of columns depends on such
    texts.
    """
    text = text.replace(str(folder), "FOLDER")
    for pattern, word in _CHANGES:
        text = pattern.sub(word, text)
    return re.sub(r"(?<=[^\s+]) {2,}", "  ", text)


def check_golden(name: str, text: str) -> None:
    """Compare a text with a golden file. If golden files are to be rewritten, write the file first."""
    path = GOLDEN / name
    if REWRITES:
        path.write_text(text)
    kept = path.read_text() if path.exists() else ""
    different = [*difflib.unified_diff(kept.splitlines(), text.splitlines(), name, "found", lineterm="")]
    assert different == [], "\n".join(different)
