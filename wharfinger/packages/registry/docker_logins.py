"""The logins that Docker keeps for this machine's user: in ``config.json``, and in the credential helpers that this file names.

A helper is the program ``docker-credential-NAME`` on PATH. It gets the name of the registry on its standard input and prints a
user name and a secret in JSON. It runs with the environment of this process, because it reads its settings from there. Messages
never quote its output. Source: the documentation of docker-credential-helpers, and docker/cli's ``cli/config/credentials``.

A login is sent only over https or to a registry on this machine, unless the caller allows plain HTTP.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.packages.errors import RegistryError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.registry.address import RegistryAddress, Scheme
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_config import (
    MAX_DOCKER_CONFIG,
    DockerConfigError,
    Helper,
    read_docker_config,
    read_helper,
    read_helper_answer,
    server_name,
)
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

REMEMBERED_S: Final = 300.0
"""Seconds for which the answer of a helper is reused; tokens of cloud registries are valid for at least an hour."""
FAILED_S: Final = 10.0
"""Seconds for which the failure of a helper is reused, so that many packages do not wait for it one after the other."""
LIMITS: Final = Limits(wall_s=30.0, stdout_bytes=64 * 1024, stderr_bytes=4096, term_grace_s=1.0)
_NO_LOGIN: Final = (b"credentials not found", b"no credentials", b"no basic auth credentials")
"""The beginnings of the messages that helpers print for a registry without a login."""


def default_file() -> Path:
    """Return the path of Docker's configuration, below DOCKER_CONFIG or in the home of this user. The file need not exist."""
    folder = os.environ.get("DOCKER_CONFIG", "")
    if folder:
        return Path(folder) / "config.json"
    try:
        return Path.home() / ".docker" / "config.json"
    except RuntimeError:  # a user without a home
        return Path("/.docker/config.json")


@dataclass(frozen=True, slots=True)
class _Remembered:
    until: float
    credentials: Credentials | None
    error: RegistryError | None = None


class DockerLogins:
    """The logins in one file, and those of its helpers. Each `find` reads the file, which may be missing."""

    def __init__(
        self, file: Path, *, ledger: ProcessLedger | None = None, limits: Limits = LIMITS, plain: bool = False
    ) -> None:
        """``plain`` allows sending a login over plain HTTP to another machine."""
        self._file = file
        self._ledger = ledger
        self._limits = limits
        self._plain = plain
        self._locks = KeyedLocks()
        self._remembered: dict[Helper, _Remembered] = {}

    async def find(self, registry: RegistryAddress, repository: str, *, scheme: Scheme) -> Credentials | None:
        """Return the login for a repository, or None. Raises RegistryError."""
        if scheme == "http" and not registry.is_loopback and not self._plain:
            return None
        data = await self._read()
        if data is None:
            return None
        try:
            helper = read_helper(data, registry)
            if helper is not None:
                async with self._locks.held(helper.server):
                    found = await self._asked(helper)
                if found is not None:
                    return found
            return read_docker_config(data, registry, repository)
        except DockerConfigError as error:
            raise RegistryError(f"{self._file}: {error}", transient=False) from error

    def forget(self, registry: RegistryAddress) -> None:
        """Forget the remembered login for a registry, because it was refused. The next `find` runs the helper again."""
        server = server_name(registry)
        for helper in [each for each in self._remembered if each.server == server]:
            del self._remembered[helper]

    async def _read(self) -> bytes | None:
        try:
            return await trio.to_thread.run_sync(_content, self._file)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            # There is no file, or it belongs to another user, whose logins are not meant for this process.
            return None
        except OSError as error:
            raise RegistryError(f"{self._file}: cannot be read: {error.strerror}", transient=False) from error

    async def _asked(self, helper: Helper) -> Credentials | None:
        """Return the login that the helper has given before, or run the helper. Return None if it gives no login. Raises
        RegistryError, also for an error that is remembered.
        """
        known = self._remembered.get(helper)
        if known is not None and trio.current_time() < known.until:
            if known.error is not None:
                raise RegistryError(str(known.error), transient=known.error.transient)
            return known.credentials
        try:
            credentials = await self._run(helper)
        except RegistryError as error:
            if helper.is_named:
                self._remembered[helper] = _Remembered(trio.current_time() + FAILED_S, None, error)
                raise
            credentials = None
        self._remembered[helper] = _Remembered(trio.current_time() + REMEMBERED_S, credentials)
        return credentials

    async def _run(self, helper: Helper) -> Credentials | None:
        program = f"docker-credential-{helper.name}"
        path = await trio.to_thread.run_sync(_found, program)
        if path is None:
            raise RegistryError(
                f"{self._file}: the credential helper {program} for {helper.server} is not on PATH; install it, or log in again "
                "(`docker login`)",
                transient=False,
            )
        command = Command((path, "get"), Path("/"), dict(os.environ), stdin=helper.server.encode())
        try:
            outcome = await run_child(command, self._limits, ledger=self._ledger)
        except ProcessError as error:
            raise RegistryError(f"the credential helper {program} cannot be run: {error}", transient=True) from error
        if outcome.ok:
            try:
                return read_helper_answer(outcome.stdout)
            except DockerConfigError as error:
                raise RegistryError(f"the credential helper {program}: {error}", transient=False) from error
        if outcome.ending is Ending.EXITED and outcome.stdout.strip().lower().startswith(_NO_LOGIN):
            return None
        raise RegistryError(
            f"the credential helper {program} has no login for {helper.server}: {outcome.describe()}; to see why, run "
            f"`echo {helper.server} | {program} get`",
            transient=outcome.ending is Ending.DEADLINE,
        )


def _found(program: str) -> str | None:
    """Return the absolute path of a program on PATH (folders on PATH may be relative); None if it does not exist. Blocking."""
    path = shutil.which(program)
    return None if path is None else str(Path(path).absolute())


def _content(path: Path) -> bytes:
    """Return the content of a file, cut one byte after the limit. Blocking. Raises OSError."""
    with path.open("rb") as file:
        return file.read(MAX_DOCKER_CONFIG + 1)
