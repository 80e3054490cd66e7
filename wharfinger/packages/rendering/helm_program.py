"""The program Helm, run within limits, and its version.

A chart decides how much memory its templates take, so a run has a limit: RLIMIT_DATA, which the kernel compares with the heap
that Go has mapped (RLIMIT_AS would also count memory that Go only reserves). A shell sets the limit, and becomes Helm by exec. It
also limits the processor time, so that an endless template ends even if the daemon is killed and cannot stop it.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from math import ceil
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.helm_command import helm_environment
from wharfinger.packages.rendering.helm_output import clean_message
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, Outcome
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

NOT_RUN: Final = frozenset({126, 127})
"""The exit codes of a shell that cannot start Helm."""

_LIMITED: Final = 'ulimit -d "$0" 2>/dev/null; ulimit -t "$1" 2>/dev/null; shift; exec "$@"'
"""A shell script that runs a program with limits; it keeps stricter limits that are set already."""
_VERSION: Final = re.compile(r"v\d{1,4}\.\d{1,4}\.\d{1,4}[-+0-9A-Za-z.]{0,100}\Z")
_VERSION_LIMITS: Final = Limits(wall_s=30, stdout_bytes=4096)


class HelmProgram:
    """One ``helm`` program; a run may take ``memory_bytes`` of memory. If the version is stored in ``versions``, ``helm`` is
    not run to get it.
    """

    def __init__(
        self, path: Path, memory_bytes: int, ledger: ProcessLedger | None, versions: ProgramVersions | None = None
    ) -> None:
        self._versions = versions
        self.path = path
        self._memory_bytes = memory_bytes
        self._ledger = ledger
        self._asking = trio.Lock()
        self._version: tuple[tuple[int, ...], str] | None = None

    async def run(
        self, arguments: Sequence[str], work: Path, limits: Limits, kubeconfig: JsonObject | None = None
    ) -> Outcome:
        """Run Helm in the folder ``work``. Raises ProcessError."""
        processor_s = ceil(limits.wall_s) * (os.cpu_count() or 1) + 1  # more than a run can use within wall_s
        run = (
            *("/bin/sh", "-c", _LIMITED, str(self._memory_bytes // 1024), str(processor_s)),
            *(str(self.path), *arguments),
        )
        command = Command(run, work, helm_environment(work, self._memory_bytes, kubeconfig))
        return await run_child(command, limits, ledger=self._ledger)

    async def version(self, work: Callable[[], AbstractAsyncContextManager[Path]]) -> str:
        """Return the version, such as ``v4.3.1+gc0d08d0``; it is read again if the program changed. Raises RenderError.

        ``work`` opens a folder for a run; it is called only if the program has to be run.
        """
        known = self.known_version()
        if known:
            return known
        async with self._asking:  # many renders may begin together; only the first of them runs helm for its version
            known = self.known_version()
            if not known:
                stamp = self._stamp()
                ask = partial(self._ask_version, work)
                known = await (ask() if self._versions is None else self._versions.version_of(self.path, ask))
                self._version = stamp, known
            return known

    def known_version(self) -> str:
        """Return the version if it was determined before and the program has not changed, else "". Raises RenderError."""
        return self._version[1] if self._version is not None and self._version[0] == self._stamp() else ""

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = self.path.stat()
        except OSError as error:
            raise _not_run(str(error.strerror)) from error
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    async def _ask_version(self, work: Callable[[], AbstractAsyncContextManager[Path]]) -> str:
        try:
            async with work() as folder:
                outcome = await self.run(("version", "--short"), folder, _VERSION_LIMITS)
        except ProcessError as error:
            raise _not_run(str(error)) from error
        said = outcome.stdout.decode(errors="replace").strip()
        if not outcome.ok or not _VERSION.match(said):
            told = clean_message(outcome.stderr.decode(errors="replace"), {})
            raise _not_run(f"helm version: {told or said[:100] or outcome.describe()}")
        return said


def _not_run(why: str) -> RenderError:
    """Return the error for a Helm program that cannot be run. The error is transient, because the chart is not at fault."""
    return RenderError(f"helm cannot be run: {why}; check --helm", transient=True)
