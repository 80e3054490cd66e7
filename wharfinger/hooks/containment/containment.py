"""What a hook may not do to the machine: limits of the kernel, a user of its own, a sandbox; and which of these really hold here.

Everything is optional, and what cannot be enforced is not pretended: `Containment.enforced` says of each measure whether it
holds and, where not, why. A limit on processes is the one that mostly does not: the kernel counts them by user and never counts
root's (setrlimit(2), RLIMIT_NPROC), so it holds where each run has a user of its own, or where this process is not root and each
run has a user namespace (the sandbox makes one). Anywhere else it is left out: it would count the daemon's own processes.

docs/decisions/0011-hook-containment.md has the reasons.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from wharfinger.hooks.containment.hook_users import HookUsers
from wharfinger.process.command import Limits


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure, in words for people: ``at most 64 processes``; ``why`` it does not hold, empty where it does."""

    what: str
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is enforced."""
        return not self.why


@dataclass(frozen=True, slots=True)
class Containment:
    """How hooks are contained. ``sandbox`` is bubblewrap's program.

    ``state_dir`` is the daemon's: a sandbox shows nothing of it but the hook's package and the folder of its run, and with users
    of their own hooks are let through it to these two. ``socket`` is the daemon's, too, wherever it lies. ``extra_binds`` is what
    else stands in a sandbox: place there to what is shown there, read-only.
    """

    users: HookUsers | None = None
    sandbox: Path | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    file_bytes: int | None = None
    state_dir: Path | None = None
    socket: Path | None = None
    extra_binds: Mapping[str, Path] = field(default_factory=dict)

    def limits(self, limits: Limits) -> Limits:
        """``limits`` with those of the kernel that can be enforced."""
        return replace(
            limits,
            memory_bytes=self.memory_bytes,
            processes=None if self._processes_why() else self.processes,
            open_files=self.open_files,
            file_bytes=self.file_bytes,
        )

    def enforced(self) -> tuple[Measure, ...]:
        """What was asked for, and whether it holds. Nothing where nothing was asked for."""
        measures: list[Measure] = []
        if self.users is not None:
            measures.append(Measure(f"each run as a user of its own ({self.users.first} to {self.users.last})"))
        if self.sandbox is not None:
            measures.append(Measure(f"each run in a sandbox of {self.sandbox}"))
        for value, what in (
            (self.memory_bytes, "bytes of address space for each process"),
            (self.open_files, "open files for each process"),
            (self.file_bytes, "bytes in each file"),
        ):
            if value is not None:
                measures.append(Measure(f"at most {value} {what}"))
        if self.processes is not None:
            measures.append(Measure(f"at most {self.processes} processes of each run", self._processes_why()))
        return tuple(measures)

    def _processes_why(self) -> str:
        if self.users is not None or (self.sandbox is not None and os.geteuid() != 0):
            return ""
        if os.geteuid() == 0:
            return "hooks run as root, whose processes the kernel does not count; give them users of their own"
        return "hooks run as the daemon's user, whose other processes count too; give them a sandbox"


NO_CONTAINMENT: Final = Containment()
"""Hooks run as the daemon does."""
