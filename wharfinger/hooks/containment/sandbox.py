"""The command line of bubblewrap, which determines what a hook in a sandbox sees of the machine. Pure, except that it lists
``/``.

The hook sees the machine's files read-only, only its own processes, and a ``/tmp`` of its own. Of the daemon's state, the hook
sees only its package and the folder of its run. It may write into the folder of its run. The hook has the network of the machine,
because hooks talk to clusters. All processes that the hook started end with it, because the kernel kills all processes of a PID
namespace when the first one ends.

A socket can be used even if it is mounted read-only, so the daemon's socket is covered if it is outside of the state folder. A
hook can use other sockets in ``/run`` like any program of the same user.

``--die-with-parent`` is not used: its signal is sent when the *thread* that started the child ends (prctl(2)), and hooks are
started in worker threads, which may end earlier than the hook.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

SCRATCH_BYTES: Final = 256 * 1024 * 1024
"""The size limit of each temporary folder of a sandbox. These folders are in memory (tmpfs), and no other limit counts this
memory. The option ``--size`` needs bubblewrap 0.7.
"""
LEAST_VERSION: Final = (0, 7)
_MADE: Final = frozenset({"dev", "proc", "tmp"})
_ALONE: Final = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL")


def sandboxed(
    bubblewrap: Path,
    *,
    state_dir: Path | None,
    shown: tuple[Path, ...],
    writable: Path | None,
    extra_binds: Mapping[str, Path],
    cwd: Path,
    socket: Path | None = None,
) -> tuple[str, ...]:
    """Return the command line to put before the hook's own.

    The sandbox hides the contents of ``state_dir``, ``/tmp`` and ``/var/tmp``. ``shown`` are paths that the hook may read
    although they are in one of these folders; none of them may be a link. ``writable`` is a folder into which the hook may
    write. ``socket`` is the daemon's socket if the sandbox must hide it, too, or None.
    """
    hidden = (Path("/var/tmp"), *((state_dir,) if state_dir is not None else ()))  # noqa: S108 - it gets one of its own
    options = [str(bubblewrap), *_ALONE, *_machine()]
    options += ["--dev", "/dev", "--proc", "/proc"]
    for folder in (Path("/tmp"), *hidden):  # noqa: S108
        options += ["--size", str(SCRATCH_BYTES), "--tmpfs", str(folder)]
    if socket is not None and not any(socket.is_relative_to(folder) for folder in (Path("/tmp"), *hidden)):  # noqa: S108
        options += ["--ro-bind", "/dev/null", str(socket)]
    for path in shown:
        options += ["--ro-bind", str(path), str(path)]
    if writable is not None:
        options += ["--bind", str(writable), str(writable)]
    for place, source in extra_binds.items():
        options += ["--ro-bind", str(source), place]
    return (*options, "--remount-ro", "/", "--chdir", str(cwd), "--")


def _machine() -> Iterator[str]:
    """Yield the options that mount each entry of ``/``. A single read-only mount of ``/`` is not enough, because then
    ``extra_binds`` could not add entries to ``/``.
    """
    for entry in sorted(Path("/").iterdir()):
        if entry.name in _MADE:
            continue
        if entry.is_symlink():
            yield from ("--symlink", str(entry.readlink()), str(entry))
        else:
            yield from ("--ro-bind", str(entry), str(entry))
