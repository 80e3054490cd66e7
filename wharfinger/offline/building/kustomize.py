"""The seam of kustomize builds, and the builder that runs ``kubectl kustomize``.

A builder gets a folder with a ``kustomization.yaml`` and returns the objects in kustomize's order. Files outside of the folder
may be loaded, as Flux allows it. The program gets no configuration of the user, and without the network no proxy that
listens.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml_all
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits
from wharfinger.process.errors import ProcessError

OUTPUT_BYTES: Final = 64 * 1024 * 1024
LIMITS: Final = Limits(wall_s=120.0, stdout_bytes=OUTPUT_BYTES, term_grace_s=0.3)
MAX_MESSAGE: Final = 1_000
_NOWHERE: Final = "http://127.0.0.1:9"


class KustomizeError(Exception):
    """A folder cannot be built. ``transient``: the program was cut off, so another attempt may succeed."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class KustomizeBuilder(Protocol):
    """A builder of folders with a ``kustomization.yaml``."""

    async def build(self, folder: Path, hide: Sequence[tuple[str, str]] = ()) -> tuple[JsonObject, ...]:
        """Build a folder. ``hide`` replaces paths in error messages by names. Raises KustomizeError."""
        ...


class KubectlKustomize:
    """A builder that runs ``kubectl kustomize`` for each build; ``at_once`` is the number of builds at the same time."""

    def __init__(
        self, program: Path, *, network: bool = True, at_once: int = 2, environ: Mapping[str, str] | None = None
    ) -> None:
        self._program = program
        self._network = network
        self._environ = os.environ if environ is None else environ
        self._slots = trio.CapacityLimiter(at_once)

    async def build(self, folder: Path, hide: Sequence[tuple[str, str]] = ()) -> tuple[JsonObject, ...]:
        """Build a folder. Raises KustomizeError."""
        arguments = (str(self._program), "kustomize", "--load-restrictor", "LoadRestrictionsNone", str(folder))
        try:
            async with self._slots:
                outcome = await run_child(Command(arguments, folder, self._environment(folder)), LIMITS)
        except ProcessError as error:
            raise KustomizeError(f"{self._program} cannot be run: {error}; check --kubectl", transient=True) from error
        if outcome.ending is Ending.DEADLINE:
            raise KustomizeError(f"kustomize took longer than {LIMITS.wall_s:g} s and was ended", transient=True)
        if outcome.ending is Ending.OUTPUT_LIMIT:
            raise KustomizeError(f"the folder builds to more than {OUTPUT_BYTES} bytes; split it")
        if not outcome.ok:
            said = _message(outcome.stderr.decode(errors="replace"), hide)
            raise KustomizeError(f"kustomize: {said or outcome.describe()}", transient=outcome.returncode < 0)
        return await trio.to_thread.run_sync(_objects, outcome.stdout)

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
            environment |= {"HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE, "GIT_ALLOW_PROTOCOL": "file"}
        return environment


def _objects(output: bytes) -> tuple[JsonObject, ...]:
    """Read the output of kustomize. Blocking. Raises KustomizeError."""
    limits = YamlLimits(OUTPUT_BYTES, max_nodes=10_000_000, max_characters=4 * OUTPUT_BYTES)
    try:
        documents = read_yaml_all(output, what="the output of kustomize", limits=limits)
    except FormatError as error:
        raise KustomizeError(str(error)) from error
    return tuple(each for each in documents if isinstance(each, dict))


def _message(stderr: str, hide: Sequence[tuple[str, str]]) -> str:
    """Return the error of kustomize in one bounded line, with names in place of paths."""
    lines = (line.strip() for line in stderr.splitlines() if not line.startswith(("#", "W")))
    text = " ".join(line for line in lines if line).removeprefix("error: ")
    for path, name in hide:
        text = text.replace(path, name)
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
