"""The containment of one run of a hook: its user, and its command line with all measures that contain it.

A *cell* is the contained environment of one run of a hook, whether the hook does its work or prints its configuration::

    async with open_cell(containment, hook) as cell:
        command = await cell.command(argv, cwd, environment, folder)
        outcome = await run_child(command, containment.limits(limits))
        cell.ended(outcome)

If the run has a user of its own and a folder, the home and the temporary files of the hook are in that folder, and are removed
with it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.containment.hook_users import Lease, open_tree, package_tree
from wharfinger.hooks.containment.sandbox import sandboxed
from wharfinger.hooks.errors import HookError
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, Outcome, User
from wharfinger.process.errors import ProcessError

_TRIAL: Final = "containment"
_TRIAL_S: Final = 30.0
TEMPORARY: Final = "tmp"
"""The folder for temporary files and caches, in the folder of a run that has a user of its own."""


class Cell:
    """The containment of one run of a hook: its user and its sandbox, if it has them."""

    def __init__(self, containment: Containment, hook: str, lease: Lease | None) -> None:
        self._containment = containment
        self._hook = hook
        self._lease = lease

    @property
    def user(self) -> User | None:
        """The user that the hook runs as; None if the hook runs as the same user as this process."""
        return self._lease.user if self._lease is not None else None

    async def command(
        self, argv: tuple[str, ...], cwd: Path, environment: Mapping[str, str], folder: Path | None = None
    ) -> Command:
        """Return the command that runs ``argv``, which begins with the full path of a program. ``folder`` is the folder of the
        run, and stays writable in a sandbox.

        Raises HookError.
        """
        held = self._containment
        if held.sandbox is None and (self.user is None or held.state_dir is None):
            return Command(argv, cwd, {**environment, **self._places(folder)}, user=self.user)
        try:
            return await trio.to_thread.run_sync(self._prepared, argv, cwd, environment, folder)
        except OSError as error:
            why = f"the user that it runs as cannot be given access to its package: {error}"
            raise HookError(self._hook, why, transient=True) from error

    def ended(self, outcome: Outcome) -> None:
        """Record whether processes of the run's user may remain; ``outcome`` is the outcome of the run."""
        if outcome.survivors_left or outcome.survivors_killed:
            self.processes_may_remain()

    def processes_may_remain(self) -> None:
        """Record that processes of this run's user may still exist. They are ended before another run gets this user."""
        if self._lease is not None:
            self._lease.suspect = True

    def _prepared(
        self, argv: tuple[str, ...], cwd: Path, environment: Mapping[str, str], folder: Path | None
    ) -> Command:
        """Return the command that runs ``argv`` in the sandbox and as the user of this run, as far as there are any. Blocking.
        Raises OSError.
        """
        held = self._containment
        program, cwd = Path(argv[0]), cwd.resolve()
        program = program.parent.resolve() / program.name
        if self.user is not None and held.state_dir is not None:
            for path in (program, cwd):
                open_tree(path, held.state_dir)
        wrapper: tuple[str, ...] = ()
        if held.sandbox is not None:
            wrapper = sandboxed(
                held.sandbox,
                state_dir=held.state_dir,
                shown=self._shown(program, cwd, *(Path(word) for word in argv[1:] if word.startswith("/"))),
                writable=folder,
                extra_binds=held.extra_binds,
                cwd=cwd,
                socket=self._socket(),
            )
        places = self._places(folder)
        return Command((str(program), *argv[1:]), cwd, {**environment, **places}, user=self.user, wrapper=wrapper)

    def _shown(self, program: Path, cwd: Path, *others: Path) -> tuple[Path, ...]:
        """Return the folders that a sandbox must show: the folder of each package that contains one of the paths. If no path is
        in a package, return the program's folder and the working folder.
        """
        state_dir = self._containment.state_dir
        trees = {package_tree(path, state_dir) if state_dir is not None else None for path in (program, cwd, *others)}
        found = {tree for tree in trees if tree is not None}
        return tuple(sorted(found)) if found else tuple(sorted({program.parent, cwd}))

    def _socket(self) -> Path | None:
        """Return the daemon's socket if a sandbox must hide it from the hook; None if no socket exists, or if the run has a
        user of its own, who cannot open the socket.
        """
        socket = self._containment.socket
        return socket if socket is not None and self.user is None and socket.is_socket() else None

    def _places(self, folder: Path | None) -> dict[str, str]:
        if self.user is not None and folder is not None:
            own = str(folder / TEMPORARY)
            return {"HOME": own, "TMPDIR": own}
        return {"TMPDIR": "/tmp"} if self._containment.sandbox is not None else {}  # noqa: S108 - the sandbox's own


async def try_cell(containment: Containment) -> None:
    """Test the containment before any hook depends on it: run ``/bin/true`` contained. Raises HookError if the run fails."""
    async with open_cell(containment, _TRIAL) as cell:
        command = await cell.command(("/bin/true",), Path("/usr"), {})
        try:
            outcome = await run_child(command, containment.limits(Limits(wall_s=_TRIAL_S, stdout_bytes=0)))
        except ProcessError as error:
            raise HookError(_TRIAL, str(error)) from error
        cell.ended(outcome)
        if not outcome.ok:
            said = outcome.stderr.decode(errors="replace").strip()
            raise HookError(_TRIAL, f"no program can run in this containment: {outcome.describe()}: {said}")


@asynccontextmanager
async def open_cell(containment: Containment, hook: str) -> AsyncIterator[Cell]:
    """Yield the containment of one run of ``hook``. Raises HookError if the run needs a user of its own, and none is free."""
    if containment.users is None:
        yield Cell(containment, hook, None)
        return
    async with containment.users.lease(hook) as lease:
        yield Cell(containment, hook, lease)
