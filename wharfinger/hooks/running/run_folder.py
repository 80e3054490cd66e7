"""The files of one run of a hook (spec hook-protocol §1.6), in a folder of its own, which is created before the run and always
removed afterwards.

Every variable of the contract that names a file is set in every run, even if no binding of the hook uses this file, and every
file exists before the hook starts. The folder is 0700 and the files 0600, because values contain secrets. If the hook runs as a
user of its own, the folder and the files belong to that user, so only this user and root can read the folder.

After the run the files are under the hook's control: the hook may have replaced them with a pipe, a link or a huge file. So
the reader follows no links, does not wait, and reads at most a fixed number of bytes. The hook may also have left a tree that
ordinary functions cannot remove (:mod:`wharfinger.process.remove_tree`). All functions here block; they are for a worker
thread.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, canonical_json
from wharfinger.hooks.containment.contained_run import TEMPORARY
from wharfinger.hooks.containment.hook_environment import KUBECONFIG
from wharfinger.hooks.containment.spare_folders import SpareFolders
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.results import CONFIG_VALUES_PATCH, METRICS, OBJECT_PATCHES, VALUES_PATCH
from wharfinger.hooks.running.runner import HookRun
from wharfinger.hooks.watching.context_file import write_contexts
from wharfinger.hooks.watching.json_stream import MAX_BYTES
from wharfinger.process.command import User
from wharfinger.process.remove_tree import empty_tree, remove_tree

PREFIX: Final = "hook-"
_NAME_CHARS: Final = 40

INPUTS: Final[Mapping[str, str]] = {
    "BINDING_CONTEXT_PATH": "binding-context.json",
    "VALUES_PATH": "values.json",
    "CONFIG_VALUES_PATH": "config-values.json",
}
KUBECONFIG_FILE: Final = "kubeconfig"
OUTPUTS: Final[Mapping[str, str]] = {
    OBJECT_PATCHES: "object-patches",
    METRICS: "metrics.json",
    VALUES_PATCH: "values-patch.json",
    CONFIG_VALUES_PATCH: "config-values-patch.json",
    "ADMISSION_RESPONSE_PATH": "admission-response.json",
    "VALIDATING_RESPONSE_PATH": "admission-response.json",
    "CONVERSION_RESPONSE_PATH": "conversion-response.json",
}


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run of ``hook``. ``answers`` are variables that name further output files, in addition to OUTPUTS.

    ``has_kubeconfig`` is True if the folder contains a kubeconfig for the hook.
    """

    hook: str
    path: Path
    answers: tuple[str, ...] = ()
    user: User | None = None
    has_kubeconfig: bool = False

    def variables(self) -> dict[str, str]:
        """Return the variables that name the hook's files."""
        return {variable: str(self.path / name) for variable, name in {**self.inputs(), **self.outputs()}.items()}

    def inputs(self) -> dict[str, str]:
        """Return the names of the input files, which are written for the hook. Each key is the environment variable that names
        the file.
        """
        return {**INPUTS, **({KUBECONFIG: KUBECONFIG_FILE} if self.has_kubeconfig else {})}

    def outputs(self) -> dict[str, str]:
        """Return the names of the output files, which the hook may write. Each key is the environment variable that names the
        file.
        """
        return {**OUTPUTS, **{variable: f"answer-{number}" for number, variable in enumerate(self.answers, 1)}}

    def read(self, variable: str) -> bytes:
        """Read an output file of the hook. Raises HookError if it is not a plain file within the size limit."""
        path = self.path / self.outputs()[variable]
        try:
            # Without NONBLOCK, opening a pipe would wait for a writer.
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                self._check_own(os.fstat(fd), variable)
                with os.fdopen(fd, "rb", closefd=False) as file:
                    data = file.read(MAX_BYTES + 1)
            finally:
                os.close(fd)
        except OSError as error:
            found = "a link" if error.errno == errno.ELOOP else f"something that cannot be read ({error.strerror})"
            why = f"the hook replaced it with {found}; write into the existing file"
            raise HookError(self.hook, why, file=variable) from error
        if len(data) > MAX_BYTES:
            raise HookError(self.hook, f"more than the limit of {MAX_BYTES} bytes", file=variable)
        return data

    def _check_own(self, status: os.stat_result, variable: str) -> None:
        """Refuse a file that is not plain, or that the run's user does not own: the hook could have linked a file here that only
        this process may read. Raises HookError.
        """
        if not stat.S_ISREG(status.st_mode):
            raise HookError(self.hook, "the hook replaced it with something that is not a plain file", file=variable)
        if self.user is not None and status.st_uid != self.user.uid:
            raise HookError(
                self.hook, f"the hook replaced {variable} with a file that another user owns", file=variable
            )

    def remove_if_plain(self, spares: SpareFolders) -> bool:
        """Remove the folder quickly, if it contains only the files of the run; otherwise return False, so that `remove` must be
        called.

        Never raises, because `remove` reports the problems of a removal.
        """
        try:
            for name in {*self.inputs().values(), *self.outputs().values()}:
                (self.path / name).unlink(missing_ok=True)
            if any(self.path.iterdir()):
                return False
            if not spares.keep(self.path):
                self.path.rmdir()
        except OSError:
            return False
        return True

    def remove(self, spares: SpareFolders | None = None) -> None:
        """Remove the folder with its content, beginning with the input files; ``spares`` may keep the empty folder.

        Raises OSError if that is not possible.
        """
        empty_tree(self.path, first=self.inputs().values())
        if self.user is not None or spares is None or not spares.keep(self.path):
            self.path.rmdir()


def name_run_folder(
    scratch: Path, run: HookRun, user: User | None = None, *, has_kubeconfig: bool = False
) -> RunFolder:
    """Return the folder for a run below ``scratch``, not created yet; `fill_run_folder` creates it."""
    safe = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")[:_NAME_CHARS]
    return RunFolder(
        run.name, scratch.absolute() / f"{PREFIX}{safe}-{secrets.token_hex(8)}", run.answers, user, has_kubeconfig
    )


def make_run_folder(
    scratch: Path, run: HookRun, user: User | None = None, spares: SpareFolders | None = None
) -> RunFolder:
    """Create a new folder below ``scratch`` with all files of the run; see `fill_run_folder`."""
    folder = name_run_folder(scratch, run, user)
    fill_run_folder(folder, run, spares)
    return folder


def fill_run_folder(
    folder: RunFolder, run: HookRun, spares: SpareFolders | None = None, kubeconfig: bytes = b""
) -> None:
    """Create the folder (and missing parents) with all files of the run. If the run has a user, the files belong to this user.

    A folder of ``spares`` is used if one is available. Raises HookError, and leaves nothing behind in that case.
    """
    path, user = folder.path, folder.user
    contents: dict[str, Callable[[BinaryIO], object]] = {
        "BINDING_CONTEXT_PATH": lambda file: write_contexts(file, run.contexts),
        "VALUES_PATH": lambda file: _write_json(file, run.values),
        "CONFIG_VALUES_PATH": lambda file: _write_json(file, run.config_values),
        KUBECONFIG: lambda file: file.write(kubeconfig),
    }
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if spares is None or not spares.take(path):
            path.mkdir(mode=0o700)
    except OSError as error:
        raise _unprepared(run, error) from error
    try:
        for variable, name in folder.inputs().items():
            _make(path / name, contents[variable])
        for name in set(folder.outputs().values()):
            os.close(_new(path / name))
        if user is not None:
            _hand_over(path, user)
    except BaseException as error:
        with suppress(OSError):
            remove_tree(path)
        if isinstance(error, OSError | FormatError | ValueError):
            raise _unprepared(run, error) from error
        raise


def _make(path: Path, write: Callable[[BinaryIO], object]) -> None:
    with os.fdopen(_new(path), "wb") as file:
        write(file)


def _new(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _write_json(file: BinaryIO, value: JsonValue) -> None:
    file.write(canonical_json(value) + b"\n")


def _hand_over(path: Path, user: User) -> None:
    """Make the user the owner of all files, and of the folder last, so that only this process can see the content until
    then.
    """
    (path / TEMPORARY).mkdir(mode=0o700)
    for entry in path.iterdir():
        os.chown(entry, user.uid, user.gid, follow_symlinks=False)
    os.chown(path, user.uid, user.gid)


def _unprepared(run: HookRun, error: Exception) -> HookError:
    transient = isinstance(error, OSError)
    return HookError(run.name, f"its files could not be prepared: {error}", transient=transient)
