"""One run's containment: the user it has for its time, and its command line inside of everything that holds it.

Whoever runs a hook, for its work or for its configuration, does it in a cell::

    async with open_cell(containment, hook) as cell:
        command = await cell.command(argv, cwd, environment, folder)
        outcome = await run_child(command, containment.limits(limits))
        cell.ended(outcome)

With a user of its own, a hook has its home and its temporary files in the folder of its run, where there is one: they are its own
and end with it.
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
    """Where one run of a hook goes on."""

    def __init__(self, containment: Containment, hook: str, lease: Lease | None) -> None:
        self._containment = containment
        self._hook = hook
        self._lease = lease

    @property
    def user(self) -> User | None:
        """Whom it runs as; None for this process's own user."""
        return self._lease.user if self._lease is not None else None

    async def command(
        self, argv: tuple[str, ...], cwd: Path, environment: Mapping[str, str], folder: Path | None = None
    ) -> Command:
        """The command that runs ``argv``, which names its program with its whole path; ``folder`` is what it may write.

        Raises HookError.
        """
        held = self._containment
        if held.sandbox is None and (self.user is None or held.state_dir is None):
            return Command(argv, cwd, {**environment, **self._places(folder)}, user=self.user)
        try:
            return await trio.to_thread.run_sync(self._prepared, argv, cwd, environment, folder)
        except OSError as error:
            why = f"its package cannot be opened to the user it runs as: {error}"
            raise HookError(self._hook, why, transient=True) from error

    def ended(self, outcome: Outcome) -> None:
        """To be told how the run ended."""
        if outcome.survivors_left or outcome.survivors_killed:
            self.left_something()

    def left_something(self) -> None:
        """To be told that something of its user may still be there: it is looked for before another run has that user."""
        if self._lease is not None:
            self._lease.suspect = True

    def _prepared(
        self, argv: tuple[str, ...], cwd: Path, environment: Mapping[str, str], folder: Path | None
    ) -> Command:
        """Blocking."""
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
        """What of the places that a sandbox hides it has to show: the package, or else the folders that were named."""
        state_dir = self._containment.state_dir
        trees = {package_tree(path, state_dir) if state_dir is not None else None for path in (program, cwd, *others)}
        found = {tree for tree in trees if tree is not None}
        return tuple(sorted(found)) if found else tuple(sorted({program.parent, cwd}))

    def _socket(self) -> Path | None:
        """The daemon's, where its mode lets the hook in: a user of the run's own has no way to it, and none to cover it."""
        socket = self._containment.socket
        return socket if socket is not None and self.user is None and socket.is_socket() else None

    def _places(self, folder: Path | None) -> dict[str, str]:
        if self.user is not None and folder is not None:
            own = str(folder / TEMPORARY)
            return {"HOME": own, "TMPDIR": own}
        return {"TMPDIR": "/tmp"} if self._containment.sandbox is not None else {}  # noqa: S108 - of the sandbox


async def try_cell(containment: Containment) -> None:
    """Run a program that does nothing in a cell, before any hook depends on it. Raises HookError where that fails."""
    async with open_cell(containment, _TRIAL) as cell:
        command = await cell.command(("/bin/true",), Path("/usr"), {})
        try:
            outcome = await run_child(command, containment.limits(Limits(wall_s=_TRIAL_S, stdout_bytes=0)))
        except ProcessError as error:
            raise HookError(_TRIAL, str(error)) from error
        cell.ended(outcome)
        if not outcome.ok:
            said = outcome.stderr.decode(errors="replace").strip()
            raise HookError(_TRIAL, f"nothing can be run in it here: {outcome.describe()}: {said}")


@asynccontextmanager
async def open_cell(containment: Containment, hook: str) -> AsyncIterator[Cell]:
    """The cell of a run of ``hook``. Raises HookError where no user can be had for it."""
    if containment.users is None:
        yield Cell(containment, hook, None)
        return
    async with containment.users.lease(hook) as lease:
        yield Cell(containment, hook, lease)
