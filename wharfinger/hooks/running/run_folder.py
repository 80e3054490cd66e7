"""The files of one run of a hook (spec hook-protocol §1.6): a folder of its own, made before and removed after, always.

Every variable of the contract that names a file is set on every run, whether the hook has such a binding or not, and every
file exists before the hook starts. The folder is 0700 and the files 0600, because values hold secrets; where the hook runs as a
user of its own they are that user's, so that nobody else but root can look into the folder. After the run the files are the
hook's: it may have put a pipe, a link or a terabyte in their place, so reading them back neither follows, nor waits, nor reads
more than a bound; and it may have left a tree that nobody could remove by ordinary means
(:mod:`wharfinger.process.remove_tree`). All functions here block; they are for a worker thread.
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
    """The folder of one run of ``hook``; ``answers`` are the variables of the output files it has beside OUTPUTS.

    With ``has_kubeconfig`` there is one among its inputs.
    """

    hook: str
    path: Path
    answers: tuple[str, ...] = ()
    user: User | None = None
    has_kubeconfig: bool = False

    def variables(self) -> dict[str, str]:
        """The variables that tell the hook where its files are."""
        return {variable: str(self.path / name) for variable, name in {**self.inputs(), **self.outputs()}.items()}

    def inputs(self) -> dict[str, str]:
        """The files that are written for the hook: variable to name in the folder."""
        return {**INPUTS, **({KUBECONFIG: KUBECONFIG_FILE} if self.has_kubeconfig else {})}

    def outputs(self) -> dict[str, str]:
        """The files the hook may write: variable to name in the folder."""
        return {**OUTPUTS, **{variable: f"answer-{number}" for number, variable in enumerate(self.answers, 1)}}

    def read(self, variable: str) -> bytes:
        """What the hook left in an output file. Raises HookError where that is no plain file of a bearable size."""
        path = self.path / self.outputs()[variable]
        try:
            # Without NONBLOCK, opening a pipe would wait for somebody to write into it.
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                self._check_own(os.fstat(fd), variable)
                with os.fdopen(fd, "rb", closefd=False) as file:
                    data = file.read(MAX_BYTES + 1)
            finally:
                os.close(fd)
        except OSError as error:
            found = "a link" if error.errno == errno.ELOOP else f"something that cannot be read ({error.strerror})"
            why = f"the hook put {found} in its place; write into the file that is there"
            raise HookError(self.hook, why, file=variable) from error
        if len(data) > MAX_BYTES:
            raise HookError(self.hook, f"more than the limit of {MAX_BYTES} bytes", file=variable)
        return data

    def _check_own(self, status: os.stat_result, variable: str) -> None:
        """Raises HookError for what this process might read and the hook might not: it could have linked it to its name."""
        if not stat.S_ISREG(status.st_mode):
            raise HookError(self.hook, "the hook put something else than a plain file in its place", file=variable)
        if self.user is not None and status.st_uid != self.user.uid:
            raise HookError(self.hook, "the hook put a file of somebody else in its place", file=variable)

    def remove_if_plain(self, spares: SpareFolders) -> bool:
        """Remove it where nothing is in it but its own files, which takes a moment; False where `remove` has to be asked.

        Never raises: what is in the way here is for `remove` to tell.
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
        """Remove the folder with all that is in it, what the daemon wrote first; ``spares`` may have it when it is empty.

        Raises OSError where that cannot be done.
        """
        empty_tree(self.path, first=self.inputs().values())
        if self.user is not None or spares is None or not spares.keep(self.path):
            self.path.rmdir()


def name_run_folder(
    scratch: Path, run: HookRun, user: User | None = None, *, has_kubeconfig: bool = False
) -> RunFolder:
    """The folder that a run is going to have below ``scratch``; `fill_run_folder` makes it."""
    safe = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")[:_NAME_CHARS]
    return RunFolder(
        run.name, scratch.absolute() / f"{PREFIX}{safe}-{secrets.token_hex(8)}", run.answers, user, has_kubeconfig
    )


def make_run_folder(
    scratch: Path, run: HookRun, user: User | None = None, spares: SpareFolders | None = None
) -> RunFolder:
    """A new folder below ``scratch`` with all files of the run; see `fill_run_folder`."""
    folder = name_run_folder(scratch, run, user)
    fill_run_folder(folder, run, spares)
    return folder


def fill_run_folder(
    folder: RunFolder, run: HookRun, spares: SpareFolders | None = None, kubeconfig: bytes = b""
) -> None:
    """Make it (and what is above it, if that is missing) with all files of the run, which are its user's where it has one.

    It is one of ``spares`` where there is one. Raises HookError; nothing is left then.
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
    """Make it all the user's, the folder last: until then nobody but this process sees what is in it."""
    (path / TEMPORARY).mkdir(mode=0o700)
    for entry in path.iterdir():
        os.chown(entry, user.uid, user.gid, follow_symlinks=False)
    os.chown(path, user.uid, user.gid)


def _unprepared(run: HookRun, error: Exception) -> HookError:
    transient = isinstance(error, OSError)
    return HookError(run.name, f"its files could not be prepared: {error}", transient=transient)
