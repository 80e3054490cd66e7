"""The measures that contain hooks: resource limits that the kernel enforces, a user for each run, and a sandbox.

Each measure is optional. `Containment.enforced` returns for each measure whether it is enforced on this machine and, if not, why.
Often the limit on processes cannot be enforced, because the kernel counts processes by user, and never counts those of root
(setrlimit(2), RLIMIT_NPROC). So the limit is enforced if each run has a user of its own, or if this process is not root and each
run has a user namespace (the sandbox creates one). Otherwise the limit is left out: it would have no effect on root, and for
another user it would also count the daemon's own processes.

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
    """One measure in words, such as ``at most 64 processes``; ``why`` is the reason why it is not enforced, empty if it is
    enforced.
    """

    what: str
    why: str = ""

    @property
    def holds(self) -> bool:
        """True if this measure of containment is enforced."""
        return not self.why


@dataclass(frozen=True, slots=True)
class Containment:
    """The containment of hooks. ``sandbox`` is the path of the bubblewrap program.

    ``state_dir`` is the daemon's state folder. A hook in a sandbox sees only two of the folders in it: its package and the
    folder of its run. A hook that runs as a user of its own gets access to the same two folders; after that, all users of the
    machine can read the package. ``socket`` is the daemon's debug socket, which may be in the state folder or elsewhere.
    ``extra_binds`` are additional read-only mounts of a sandbox: a map from the place in the sandbox to the path that is mounted
    there.
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
        """Return ``limits`` with the configured resource limits added, as far as they can be enforced."""
        return replace(
            limits,
            memory_bytes=self.memory_bytes,
            processes=None if self._processes_why() else self.processes,
            open_files=self.open_files,
            file_bytes=self.file_bytes,
        )

    def enforced(self) -> tuple[Measure, ...]:
        """Return the configured measures, and whether each is enforced. If nothing is configured, return an empty tuple."""
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
            return "hooks run as root, and the kernel does not limit the number of root's processes; use --hook-users"
        return "hooks run as the daemon's user, so the limit would also count this user's other processes; use --hook-sandbox"


NO_CONTAINMENT: Final = Containment()
"""The containment of hooks that run like the daemon itself, without any measure."""
