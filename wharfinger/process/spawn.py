"""The start of a child, which either succeeds completely or leaves no process behind. Blocking, for a worker thread.

* The child has its own session, and so its own process group. It has no controlling terminal and no shell, and inherits only
  the descriptors that the command names.
* The child has no parent-death signal (prctl(2), PR_SET_PDEATHSIG). The kernel would send that signal when the *thread* that
  started the child ends, and a worker thread may end long before the daemon. The processes of a dead daemon are found through
  the ledger and the marker.
* The marker (:mod:`wharfinger.process.descendants`) is in the environment before the program runs. The row of the child is in the
  ledger (:mod:`wharfinger.process.ledger`) before the child exists.
* ``Spawned.popen`` is kept until the child is reaped. If it were dropped earlier, the next Popen of any other code would reap
  the child (``subprocess._cleanup``), and its pid could be reused while signals are still sent to it.
"""

import errno
import math
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from wharfinger.process.command import Command, Limits
from wharfinger.process.descendants import Mark, read_stat
from wharfinger.process.errors import FileBusyError, LedgerError, SpawnError
from wharfinger.process.launcher import check, launched, needs_launcher
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.proc_stat import MARKER, marker_value
from wharfinger.process.sweep import sweep

ABORT_SWEEP_S: Final = 5.0
_TRY_AGAIN: Final = "try again when other processes have ended"


@dataclass(slots=True)
class Spawned:
    """A child that is not reaped, with open non-blocking descriptors. ``stdin`` is None if the child's stdin is /dev/null."""

    popen: subprocess.Popen[bytes]
    mark: Mark
    pidfd: int
    stdin: int | None
    stdout: int
    stderr: int

    def close_stdin(self) -> None:
        """Close the child's input, so that the child reads the end of the input."""
        if self.popen.stdin is not None:
            self.popen.stdin.close()

    def close(self) -> None:
        """Close all descriptors; no task may wait on them any more."""
        self.close_stdin()
        for stream in (self.popen.stdout, self.popen.stderr):
            if stream is not None:
                stream.close()
        os.close(self.pidfd)

    def reaped(self, returncode: int) -> None:
        """Record that the child was reaped, so that the Popen does not wait for its pid any more."""
        self.popen.returncode = returncode

    def reap_when_dead(self) -> None:
        """Wait until the child has ended, and reap it. Blocking, for as long as the child hangs in the kernel."""
        self.popen.wait()


@dataclass(slots=True)
class Adopted:
    """A child of this process that another process forked (with CLONE_PARENT); in all other respects, it is like `Spawned`.
    The child's stdin is /dev/null. `wharfinger.pools.interpreters.zygote` forks such children.
    """

    mark: Mark
    pidfd: int
    stdout: int
    stderr: int
    stdin: None = None

    def close_stdin(self) -> None:
        """Do nothing: the child has no input."""

    def close(self) -> None:
        """Close all descriptors; no task may wait on them any more."""
        for fd in (self.stdout, self.stderr, self.pidfd):
            os.close(fd)

    def reaped(self, returncode: int) -> None:
        """Do nothing. `Spawned.reaped` records the exit status in Popen, and an adopted child has no Popen object."""

    def reap_when_dead(self) -> None:
        """Wait until the child has ended, and reap it. Blocking: a child that hangs in the kernel blocks the caller until it
        ends.
        """
        with suppress(ChildProcessError):
            os.waitpid(self.mark.pid, 0)


Child: TypeAlias = Spawned | Adopted


def spawn(
    command: Command,
    token: str,
    ledger: ProcessLedger | None,
    *,
    limits: Limits | None = None,
    open_stdin: bool = False,
) -> Spawned:
    """Start ``command``, marked with ``token`` and recorded in ``ledger``; with ``open_stdin`` its stdin is always a pipe.

    Of ``limits``, only those that the kernel enforces are used. Blocking.

    Raises SpawnError or LedgerError. In both cases no process runs, and the row is removed from the ledger if that is possible.
    """
    argv = _command_line(command, limits)
    if ledger is not None:
        ledger.intend(token)
    try:
        popen = _popen(command, argv, token, open_stdin=open_stdin)
    except BaseException:
        _forget(ledger, token)
        raise
    try:
        return _take(popen, _uid(command), token, ledger)
    except BaseException as error:
        _abort(popen, _uid(command), token)
        _forget(ledger, token)
        if isinstance(error, OSError):
            raise _refusal(command, error) from error
        raise


def _forget(ledger: ProcessLedger | None, token: str) -> None:
    """Delete the row of an attempt that failed. A remaining row would do no harm, because no process has its token."""
    if ledger is not None:
        with suppress(LedgerError):
            ledger.forget(token)


def _uid(command: Command) -> int:
    return command.user.uid if command.user is not None else 0


def _command_line(command: Command, limits: Limits | None) -> tuple[str, ...]:
    """Return the command line to start. Raises SpawnError if it is empty, or if a launcher could not start the program."""
    if not command.argv or not command.argv[0]:
        raise SpawnError("a program", "the command line is empty", "name a program")
    bounds = limits or Limits(wall_s=math.inf, stdout_bytes=0)
    if not needs_launcher(command, bounds):
        return command.argv
    try:
        check(command, _find(command))
    except OSError as error:
        raise _refusal(command, error) from error
    return launched(command, bounds)


def _popen(command: Command, argv: tuple[str, ...], token: str, *, open_stdin: bool) -> subprocess.Popen[bytes]:
    # The marker extends the marker of this process, and replaces a marker in ``command.env``, because the parent of this
    # process must be able to find the child, whatever the command sets.
    env = {MARKER: marker_value(os.environ.get(MARKER, ""), token)}
    env |= {name: value for name, value in command.env.items() if name != MARKER}
    try:
        return subprocess.Popen(
            argv,
            bufsize=0,
            stdin=subprocess.PIPE if command.stdin or open_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=env,
            close_fds=True,
            pass_fds=command.descriptors,
            start_new_session=True,
        )
    except OSError as error:
        raise _refusal(command, error) from error
    except ValueError as error:  # NUL bytes, "=" in a variable's name, characters that the system's encoding lacks
        raise SpawnError(
            command.argv[0], f"an argument or a variable cannot be passed on: {error}", "remove NUL bytes from them"
        ) from error


def _take(popen: subprocess.Popen[bytes], uid: int, token: str, ledger: ProcessLedger | None) -> Spawned:
    """Open the pidfd of a child, and complete its row in the ledger. The child is not reaped yet, so no other process has its
    pid.
    """
    stat = read_stat(popen.pid)
    if stat is None or popen.stdout is None or popen.stderr is None:
        raise SpawnError(str(popen.args), "/proc does not show its process", "mount /proc without hidepid")
    if ledger is not None:
        ledger.complete(token, popen.pid, stat.start_ticks)
    stdin = popen.stdin.fileno() if popen.stdin is not None else None
    for fd in (stdin, popen.stdout.fileno(), popen.stderr.fileno()):
        if fd is not None:
            os.set_blocking(fd, False)
    return Spawned(
        popen=popen,
        mark=Mark(token, popen.pid, stat.start_ticks, held=True, uid=uid),
        pidfd=os.pidfd_open(popen.pid),
        stdin=stdin,
        stdout=popen.stdout.fileno(),
        stderr=popen.stderr.fileno(),
    )


def _abort(popen: subprocess.Popen[bytes], uid: int, token: str) -> None:
    """Kill a child process that was started but cannot be supervised, and everything that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, signal.SIGKILL)
    sweep([Mark(token, popen.pid, held=True, uid=uid)], ABORT_SWEEP_S)
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        if stream is not None:
            stream.close()
    popen.wait()


def _refusal(command: Command, error: OSError) -> SpawnError:
    """Return the SpawnError for an OSError, with the cause and the remedy in words for the author of the package."""
    program, cwd = command.argv[0], command.cwd
    if error.filename is not None and os.fspath(error.filename) == os.fspath(cwd) and not _is_folder(cwd):
        return SpawnError(program, f"its working folder {cwd} {_folder_fault(cwd)}", "create it, or name another one")
    found = _find(command)
    match error.errno:
        case errno.ENOENT if found is None and "/" not in program:
            where = _search_path(command.env)
            return SpawnError(program, f"it is not on PATH ({where})", "install it, or put its folder on PATH")
        case errno.ENOENT if found is None:
            return SpawnError(program, "there is no such file", "check its name and the package's content")
        case errno.ENOENT:
            interpreter = f"{found} exists, but the interpreter that it names (first line, or ELF loader) does not"
            return SpawnError(program, interpreter, "install the interpreter, or correct the first line")
        case errno.EACCES if found is not None and found.is_dir():
            return SpawnError(program, "it is a folder", "name a file in it")
        case errno.EACCES:
            return SpawnError(
                program,
                "it is not executable for this user",
                f"chmod +x {found or program}, and check that its file system is not mounted noexec",
            )
        case errno.ENOEXEC:
            return SpawnError(
                program,
                "it is not a program for this machine (exec format error)",
                "give a script a first line like #!/bin/sh, or build the program for this architecture",
            )
        case errno.E2BIG:
            return SpawnError(
                program, "its arguments and environment are too large together", "pass large values in files"
            )
        case errno.ETXTBSY:
            return FileBusyError(program)
        case errno.EAGAIN | errno.ENOMEM | errno.EMFILE | errno.ENFILE:
            why = f"the system is out of processes, memory or file descriptors ({error.strerror})"
            return SpawnError(program, why, _TRY_AGAIN, transient=True)
        case _:
            return SpawnError(
                program, f"the system refused: {error.strerror or error}", "check the program and its folder"
            )


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path) and os.access(path, os.X_OK)  # noqa: PTH112 - Path.is_dir raises without permission


def _folder_fault(path: Path) -> str:
    if not os.path.lexists(path):
        return "does not exist"
    return "may not be entered by this user" if path.is_dir() else "is not a folder"


def _search_path(env: Mapping[str, str]) -> str:
    return os.pathsep.join(os.get_exec_path(dict(env)))


def _find(command: Command) -> Path | None:
    """Return the command's program file, executable or not; None if it does not exist. A name with a slash is relative to
    ``cwd``.
    """
    program = command.argv[0]
    if "/" in program:
        path = command.cwd / program
        return path if path.exists() else None
    found = shutil.which(program, mode=os.F_OK, path=_search_path(command.env))
    return Path(found) if found else None
