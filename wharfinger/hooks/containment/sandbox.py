"""The command line of bubblewrap: what a hook in a sandbox sees of the machine. Pure but for a look at what is in ``/``.

It sees the machine's files read-only, its own processes only, ``/tmp`` of its own, of the daemon's state nothing but its
package and the folder of its run, and that folder it may write. It keeps the network: hooks talk to clusters. What it
started ends with it, whatever that did, since the first process of a PID namespace takes all others with it.

A socket that is shown read-only can be spoken to all the same, so the daemon's own is covered where it lies outside of its state.
Others in ``/run`` are as reachable as for any program of the user that the hook runs as.

``--die-with-parent`` is not used: that signal comes when the *thread* that started the child ends (prctl(2)).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

SCRATCH_BYTES: Final = 256 * 1024 * 1024
"""Of each folder that is the sandbox's own: they are in memory, which no other limit counts. Needs bubblewrap 0.7."""
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
    """What is put in front of the hook's command line. ``shown`` is what may be read of what is hidden, none of it a link.

    ``socket`` is the daemon's; None where there is none to be seen.
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
    """All that is in ``/``, entry by entry, so that `extra_binds` can stand beside it."""
    for entry in sorted(Path("/").iterdir()):
        if entry.name in _MADE:
            continue
        if entry.is_symlink():
            yield from ("--symlink", str(entry.readlink()), str(entry))
        else:
            yield from ("--ro-bind", str(entry), str(entry))
