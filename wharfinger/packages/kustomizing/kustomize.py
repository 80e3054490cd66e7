"""The interface of kustomize builders, and the builder that runs ``kubectl kustomize``.

A builder returns the objects in kustomize's order. Files outside of the folder may be loaded, as in Flux. ``kubectl`` does not
get the user's configuration. If the network is forbidden, it gets the address of a proxy that does not exist.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find_str
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml_all
from wharfinger.packages.kustomizing.kustomization import (
    Folder,
    Kustomization,
    Manifests,
    Overlay,
    names_in_messages,
    patches_name_files,
)
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits, Outcome
from wharfinger.process.errors import ProcessError

OUTPUT_BYTES: Final = 64 * 1024 * 1024
LIMITS: Final = Limits(wall_s=120.0, stdout_bytes=OUTPUT_BYTES, term_grace_s=0.3, memory_bytes=2 * 1024**3)
_VERSION: Final = Limits(wall_s=30.0, stdout_bytes=64 * 1024)
MAX_MESSAGE: Final = 1_000
_NOWHERE: Final = "http://127.0.0.1:9"
_REFUSED: Final = (_NOWHERE.removeprefix("http://"), "' not allowed")
"""Parts of the messages in which kustomize and git report an address that the environment variables forbid."""
MISSING: Final = "this kustomization needs kubectl, which is not on PATH; install it, or name it with --kubectl"


class KustomizeError(Exception):
    """A folder cannot be built. ``transient`` is True if the program was terminated, so that another attempt may succeed."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class KustomizeBuilder(Protocol):
    """A builder of kustomizations."""

    async def build(self, what: Kustomization, /) -> tuple[JsonObject, ...]:
        """Build a kustomization. Raises KustomizeError."""
        ...


class KubectlKustomize:
    """A builder that runs ``kubectl kustomize`` for each build.

    If ``program`` is None, every build fails, with the message ``missing``. ``scratch`` is a folder for generated
    kustomizations; at most ``at_once`` builds run at the same time. If ``network`` is False, builds that need the network
    fail, and their messages give the reason ``forbidden``.
    """

    def __init__(
        self,
        program: Path | None,
        scratch: Path,
        *,
        network: bool = True,
        at_once: int = 2,
        environ: Mapping[str, str] | None = None,
        forbidden: str = "the network is forbidden by --offline",
        missing: str = MISSING,
    ) -> None:
        self._forbidden = forbidden
        self._missing = missing
        self._program = program
        self._scratch = scratch
        self._network = network
        self._environ = os.environ if environ is None else environ
        self._slots = trio.CapacityLimiter(at_once)

    @property
    def is_there(self) -> bool:
        """True if ``program`` was given. Otherwise, every build raises KustomizeError."""
        return self._program is not None

    async def build(self, what: Kustomization) -> tuple[JsonObject, ...]:
        """Build a kustomization. Raises KustomizeError, also if the program ``kustomize`` is missing."""
        check_patches(what)
        if self._program is None:
            raise KustomizeError(self._missing)
        if isinstance(what, Folder):
            return await self._built(what, what.folder)
        with tempfile.TemporaryDirectory(prefix="kustomize-", dir=self._scratch, ignore_cleanup_errors=True) as made:
            place = await trio.to_thread.run_sync(_write, what, Path(made))
            return await self._built(what, place)

    async def version(self, versions: ProgramVersions) -> str:
        """Return the version of kustomize in the program, such as ``v5.8.1``; "" if the program does not print one."""
        return "" if self._program is None else await versions.version_of(self._program, self._ask_version)

    async def _ask_version(self) -> str:
        arguments = (str(self._program), "version", "--client", "--output=json")
        try:
            outcome = await run_child(Command(arguments, self._scratch, self._environment(self._scratch)), _VERSION)
            said = decode_json(outcome.stdout, max_bytes=_VERSION.stdout_bytes, what="kubectl version")
            return find_str(as_object(said, "kubectl version"), "kustomizeVersion")
        except (ProcessError, FormatError):
            return ""

    async def _built(self, what: Kustomization, place: Path) -> tuple[JsonObject, ...]:
        arguments = (str(self._program), "kustomize", "--load-restrictor", "LoadRestrictionsNone", str(place))
        try:
            async with self._slots:
                outcome = await run_child(Command(arguments, place, self._environment(place)), LIMITS)
        except ProcessError as error:
            raise KustomizeError(f"{self._program} cannot be run: {error}; check --kubectl", transient=True) from error
        try:
            return await read_built(outcome, what, place, LIMITS.wall_s)
        except KustomizeError as error:
            if not self._network and any(sign in str(error) for sign in _REFUSED):
                raise KustomizeError(f"{self._forbidden}: {error}") from error
            raise

    def _environment(self, folder: Path) -> dict[str, str]:
        environment = {
            "PATH": self._environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "KUBECONFIG": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C.UTF-8",
        }
        if not self._network:
            environment |= {"HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE, "GIT_ALLOW_PROTOCOL": "none"}
        return environment


def check_patches(what: Kustomization) -> None:
    """Check that no patch in a kustomization is the name of a file, which could lie anywhere. Raises KustomizeError."""
    if patches_name_files(what):
        raise KustomizeError(
            "patches: an entry names a file, which is not allowed here; write the patch into its field `patch`"
        )


async def read_built(outcome: Outcome, what: Kustomization, place: Path, wall_s: float) -> tuple[JsonObject, ...]:
    """Return the objects that kustomize has built at ``place`` within ``wall_s`` seconds. Raises KustomizeError."""
    if outcome.ending is Ending.DEADLINE:
        raise KustomizeError(f"kustomize took longer than {wall_s:g} s and was ended", transient=True)
    if outcome.ending is Ending.OUTPUT_LIMIT:
        raise KustomizeError(f"the built objects have more than {OUTPUT_BYTES} bytes; split the folder")
    if not outcome.ok:
        said = _message(outcome.stderr.decode(errors="replace"), names_in_messages(what, place))
        raise KustomizeError(f"kustomize: {said or outcome.describe()}", transient=outcome.returncode < 0)
    return await trio.to_thread.run_sync(_objects, outcome.stdout)


def _write(what: Overlay | Manifests, folder: Path) -> Path:
    """Write the files of a generated kustomization; return the path of the folder with links resolved, as kustomize prints it.
    Blocking.
    """
    place = folder.resolve()
    for name, text in what.files(place).items():
        (place / name).write_text(text)
    return place


def _objects(output: bytes) -> tuple[JsonObject, ...]:
    """Read the output of kustomize. Blocking. Raises KustomizeError."""
    limits = YamlLimits(OUTPUT_BYTES, max_nodes=10_000_000, max_characters=4 * OUTPUT_BYTES)
    try:
        documents = read_yaml_all(output, what="the output of kustomize", limits=limits)
    except FormatError as error:
        raise KustomizeError(str(error)) from error
    return tuple(each for each in documents if isinstance(each, dict))


def _message(stderr: str, hide: tuple[tuple[str, str], ...]) -> str:
    """Return the error of kustomize in one line of limited length, with names in place of paths."""
    lines = (line.strip() for line in stderr.splitlines() if not line.startswith(("#", "W")))
    text = " ".join(line for line in lines if line).removeprefix("error: ")
    for path, name in hide:
        text = text.replace(path, name)
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
