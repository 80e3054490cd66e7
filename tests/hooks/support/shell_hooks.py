"""Helpers that write and run real hooks in bash. The hooks source the shell library. `sandbox` makes the library available at
``/shell_lib.sh``, as in an image.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.hooks.support.scripts import write_hook
from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.shell_library import FOLDER, FRAMEWORK_DIR, binds

PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a run."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Return the printed lines. The run must have succeeded; otherwise the test fails with the reason."""
        assert self.status == 0, self.err
        return self.out.splitlines()


def write_shell_hook(folder: Path, body: str, *, library: str = f"${FRAMEWORK_DIR}/shell_lib.sh") -> Path:
    """Write a hook that sources the library, has this body, and calls ``hook::run``."""
    return write_hook(folder, f'#!/usr/bin/env bash\nsource {library}\n{body}\nhook::run "$@"\n')


def run_hook(
    hook: Path,
    contexts: Sequence[JsonValue] = ({"binding": "onStartup"},),
    *,
    argv: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> Ran:
    """Run the hook with these contexts. The words in ``before``, such as ``env`` and its arguments, are put before the hook on
    the command line.
    """
    path = hook.parent / "contexts.json"
    path.write_text(json.dumps(contexts))
    env = {**os.environ, FRAMEWORK_DIR: str(FOLDER), "BINDING_CONTEXT_PATH": str(path), **(environment or {})}
    done = subprocess.run(
        [*before, str(hook), *argv],
        check=False,
        capture_output=True,
        text=True,
        env=env,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def run_body(folder: Path, body: str, *contexts: JsonValue) -> Ran:
    """Write and run a hook with this body."""
    return run_hook(write_shell_hook(folder, body), contexts or ({"binding": "onStartup"},))


@cache
def sandbox() -> tuple[str, ...] | None:
    """Return a command prefix that mounts the library at the root, as in an image, or None if the machine has no sandbox."""
    if (bubblewrap := shutil.which("bwrap")) is None:
        return None
    # The root is a new tmpfs, because missing mount points would otherwise be created in the real root.
    command = [bubblewrap, "--tmpfs", "/"]
    for path in sorted(Path("/").iterdir()):
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            command += ["--dev-bind", str(path), str(path)]
    for place, source in binds().items():
        command += ["--ro-bind", str(source), place]
    works = subprocess.run([*command, "true"], check=False, capture_output=True, timeout=PATIENCE_S).returncode == 0
    return tuple(command) if works else None


def counting_jq(folder: Path) -> tuple[dict[str, str], Path]:
    """Return environment variables whose PATH leads to a jq that counts its starts, and the file to which each start adds a
    line.
    """
    jq = shutil.which("jq")
    assert jq, "jq is not installed; the hooks of this test use it"
    tools, count = folder / "tools", folder / "jq-starts"
    tools.mkdir()
    count.touch()
    write_hook(tools, f'#!/bin/sh\necho started >>"{count}"\nexec "{jq}" "$@"\n', name="jq")
    return {"PATH": f"{tools}:{os.environ['PATH']}"}, count
