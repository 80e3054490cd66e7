"""The files of one run of a hook (spec hook-protocol §1.6): a folder of its own, made before and removed after, always.

Every variable of the contract that names a file is set on every run, whether the hook has such a binding or not, and every
file exists before the hook starts. The folder is 0700 and the files 0600, because values hold secrets. After the run the
files are the hook's: it may have put a pipe, a link or a terabyte in their place, so reading them back neither follows, nor
waits, nor reads more than a bound; and it may have left a tree that nobody could remove by ordinary means
(:mod:`wharfinger.process.remove_tree`). All functions here block; they are for a worker thread.
"""

import os
import re
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonValue, canonical_json
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.json_stream import MAX_BYTES
from wharfinger.hooks.results import CONFIG_VALUES_PATCH, METRICS, OBJECT_PATCHES, VALUES_PATCH
from wharfinger.hooks.runner import HookRun
from wharfinger.process.remove_tree import remove_tree

PREFIX: Final = "hook-"
_NAME_CHARS: Final = 40

INPUTS: Final[Mapping[str, str]] = {
    "BINDING_CONTEXT_PATH": "binding-context.json",
    "VALUES_PATH": "values.json",
    "CONFIG_VALUES_PATH": "config-values.json",
}
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
    """The folder of one run of ``hook``; ``answers`` are the variables of the output files it has beside OUTPUTS."""

    hook: str
    path: Path
    answers: tuple[str, ...] = ()

    def variables(self) -> dict[str, str]:
        """The variables that tell the hook where its files are."""
        return {variable: str(self.path / name) for variable, name in {**INPUTS, **self.outputs()}.items()}

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
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise HookError(
                        self.hook, "the hook put something else than a plain file in its place", file=variable
                    )
                with os.fdopen(fd, "rb", closefd=False) as file:
                    data = file.read(MAX_BYTES + 1)
            finally:
                os.close(fd)
        except OSError as error:
            why = f"what the hook left there cannot be read: {error.strerror}; write into the file that is there"
            raise HookError(self.hook, why, file=variable) from error
        if len(data) > MAX_BYTES:
            raise HookError(self.hook, f"more than the limit of {MAX_BYTES} bytes", file=variable)
        return data

    def remove(self) -> None:
        """Remove the folder with all that is in it, what the daemon wrote first. Raises OSError where that cannot be done."""
        remove_tree(self.path, first=INPUTS.values())


def make_run_folder(scratch: Path, run: HookRun) -> RunFolder:
    """A new folder below ``scratch`` (made if missing) with all files of the run. Raises HookError; nothing is left then."""
    contents: dict[str, JsonValue] = {
        "BINDING_CONTEXT_PATH": list(run.contexts),
        "VALUES_PATH": run.values,
        "CONFIG_VALUES_PATH": run.config_values,
    }
    try:
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        safe = re.sub(r"[^a-z0-9]+", "-", run.name.lower()).strip("-")[:_NAME_CHARS]
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{safe}-", dir=scratch.absolute()))
    except OSError as error:
        raise _unprepared(run, error) from error
    try:
        for variable, name in INPUTS.items():
            _write_new(path / name, canonical_json(contents[variable]) + b"\n")
        folder = RunFolder(run.name, path, run.answers)
        for name in sorted(set(folder.outputs().values())):
            _write_new(path / name, b"")
    except BaseException as error:
        with suppress(OSError):
            remove_tree(path)
        if isinstance(error, OSError | FormatError | ValueError):
            raise _unprepared(run, error) from error
        raise
    return folder


def _write_new(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def _unprepared(run: HookRun, error: Exception) -> HookError:
    transient = isinstance(error, OSError)
    return HookError(run.name, f"its files could not be prepared: {error}", transient=transient)
