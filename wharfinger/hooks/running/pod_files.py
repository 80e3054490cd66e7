"""The files of a hook that runs in a pod: a tar with its input, and a tar with its output.

The input contains the files of the run, and the hook's folder `cwd` with the hook's file and all files beside it. The kubeconfig
is left out, because a hook in a pod has the pod's service account. The output is foreign data. A file is taken from it only if it
is a plain file, has the name of one of the run's outputs, and is within the size limit. These files are written into the run's
folder, and read there as after a local run. All functions here block; they are for a worker thread.
"""

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from wharfinger.hooks.containment.hook_environment import HOME, KUBECONFIG
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.run_folder import RunFolder
from wharfinger.hooks.running.runner import HookRun, trace_variables
from wharfinger.hooks.watching.json_stream import MAX_BYTES
from wharfinger.pools.pods.pod_run import PodRun, environment_file

MAX_PROGRAM_BYTES: Final = 16 * 1024 * 1024
MAX_PROGRAM_FILES: Final = 2000
_MAX_RESULTS: Final = 64


def pack(run: HookRun, folder: RunFolder) -> PodRun:
    """Return the run as a pod needs it, including its input. Raises HookError if the files of the program are too many or too
    large, if they cannot be read, or if the program itself is not among them.
    """
    try:
        program = run.executable.relative_to(run.cwd)
    except ValueError as error:
        why = (
            f"expected its program below the folder {run.cwd.name}, because a pod gets only this folder, found "
            f"{run.executable}; remove workerPool from its configuration"
        )
        raise HookError(run.name, why) from error
    files = {**{name: file for name, file in folder.inputs().items() if name != KUBECONFIG}, **folder.outputs()}
    buffer = io.BytesIO()
    try:
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            variables = {**run.environment, **trace_variables(run)}
            _add(archive, "environment", environment_file(variables, {**files, HOME: "."}), 0o600)
            for name in sorted(set(files.values())):
                _add(archive, f"files/{name}", (folder.path / name).read_bytes(), 0o600)
            for path in _program_files(run):
                archive.add(path, f"program/{path.relative_to(run.cwd)}", recursive=False, filter=_anonymous)
    except OSError as error:
        raise HookError(run.name, f"its files cannot be read: {error}", transient=True) from error
    return PodRun(
        namespace=run.namespace,
        pool=run.worker_pool,
        owner=f"{run.owner} {run.name}",
        archive=buffer.getvalue(),
        argv=(f"./{program}", *run.argv),
        outputs=tuple(sorted(set(folder.outputs().values()))),
    )


def unpack(data: bytes, folder: RunFolder) -> None:
    """Write the outputs from a pod into the folder of the run, and remove the outputs that the pod did not return.

    Raises HookError.
    """
    found = dict(_results(data, folder)) if data else {}
    for name in set(folder.outputs().values()):
        path = folder.path / name
        try:
            if name not in found:
                path.unlink(missing_ok=True)
                continue
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(fd, "wb") as file:
                file.write(found[name])
        except OSError as error:
            raise HookError(folder.hook, f"its result {name} cannot be written: {error}", transient=True) from error


def _results(data: bytes, folder: RunFolder) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file in an archive that is one of the run's outputs. Raises HookError."""
    names = set(folder.outputs().values())
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for _ in range(_MAX_RESULTS):
                member = archive.next()
                if member is None:
                    return
                name = member.name.removeprefix("./")
                if name not in names or not member.isreg() or member.issparse():
                    continue
                if member.size > MAX_BYTES:
                    raise HookError(folder.hook, f"{name}: more than the limit of {MAX_BYTES} bytes")
                content = archive.extractfile(member)
                yield name, content.read(MAX_BYTES + 1) if content is not None else b""
    except HookError:
        raise
    except Exception as error:  # tarfile raises many kinds for malformed archives
        raise HookError(folder.hook, f"the archive of its results cannot be read: {error}") from error


def _program_files(run: HookRun) -> Iterator[Path]:
    """Yield the paths of the folders, the regular files and the relative links in the hook's folder. Links that lead out of the
    folder are skipped.

    Raises HookError if these are too many, or too large in total.
    """
    size = count = 0
    for folder, folders, names in os.walk(run.cwd):
        folders.sort()
        for name in (*folders, *sorted(names)):
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # removed meanwhile
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    if not path.resolve().is_relative_to(run.cwd.resolve()) or path.readlink().is_absolute():
                        continue
                elif not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                    continue
                size, count = size + status.st_size, count + 1
                if size > MAX_PROGRAM_BYTES or count > MAX_PROGRAM_FILES:
                    why = (
                        f"expected at most {MAX_PROGRAM_BYTES} bytes in {MAX_PROGRAM_FILES} files in its folder, found more; "
                        "move the hook to a folder of its own, or remove workerPool from its configuration"
                    )
                    raise HookError(run.name, why)
                yield path


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the archive member without its owner and modification time, which mean nothing in a pod."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))
