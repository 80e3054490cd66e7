"""Helpers for tests that run hooks with real containment: a state folder that other users can enter, unused user ids, and a
check whether sandboxes work.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from tests.process.children import PATH
from tests.scale import scaled
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.containment.hook_users import TREES, HookUsers
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.process.command import Limits

IS_ROOT: Final = os.geteuid() == 0
REPETITIONS: Final = scaled(50, 3)
LIMITS: Final = Limits(wall_s=60.0, stdout_bytes=1_000_000, term_grace_s=0.05, drain_s=0.05)
_FIRST: Final = 1_000_000_000


def users(count: int = 1) -> HookUsers:
    """Return user ids that neither the machine nor another run of these tests uses at the same time."""
    first = _FIRST + os.getpid() * 16
    return HookUsers(first, first + count - 1)


@contextmanager
def state_folder() -> Iterator[Path]:
    """Yield a new state folder for a daemon. It is not below pytest's temporary folder, which other users may not enter."""
    folder = Path(tempfile.mkdtemp(prefix="wharfinger-state-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def package_in(state: Path, name: str = "0" * 64) -> Path:
    """Create a package in the state folder, and return its hooks folder. Only the daemon's user can read the package, as in a
    real store.
    """
    package = state / TREES / name / "package" / "hooks"
    package.mkdir(parents=True)
    for folder in (package, *package.parents):
        if folder.is_relative_to(state):
            folder.chmod(0o700)
    return package


def runner(state: Path, containment: Containment, limits: Limits = LIMITS) -> ProcessHookRunner:
    """Return a runner whose scratch folder is in the state folder."""
    return ProcessHookRunner(state / "scratch", limits, environment={"PATH": PATH}, containment=containment)


@cache
def sandbox() -> Path | None:
    """Return the path of bubblewrap, if it is installed."""
    found = shutil.which("bwrap")
    return Path(found) if found else None


@cache
def no_sandbox() -> str:
    """Return the reason why no sandbox can be made here, or an empty text if one can be made."""
    program = sandbox()
    if program is None:
        return "bubblewrap is not installed"
    argv = [str(program), "--ro-bind", "/", "/", "--unshare-pid", "--", "/bin/true"]
    said = subprocess.run(argv, capture_output=True, text=True, check=False)
    return f"the kernel forbids it: {said.stderr.strip()}" if said.returncode else ""
