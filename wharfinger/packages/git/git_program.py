"""Runs of ``git``, without the user's configuration, hooks and prompts, and within limits.

A login is passed in the environment, never on the command line, where every user of the machine could read it. A login is for
one server, so with a login no redirect is followed. A key for ssh is in a file that only the user of this process can read.
With such a key, ssh uses no configuration, no agent and no other keys, and accepts only the given host keys.
"""

import base64
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wharfinger.packages.errors import RegistryError
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits, Outcome
from wharfinger.process.errors import ProcessError, SpawnError

LIMITS: Final = Limits(wall_s=300.0, stdout_bytes=64 * 1024 * 1024, memory_bytes=1024**3)
_KEPT: Final = (
    *("PATH", "HOME", "SSH_AUTH_SOCK"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""The environment variables of this process that are passed to git."""
_SETTINGS: Final = {
    "safe.directory": "*",
    "core.hooksPath": os.devnull,
    "core.bigFileThreshold": "16m",
    "pack.threads": "1",
}
_PROTOCOLS: Final = "file:git:http:https:ssh"
_TRANSIENT: Final = re.compile(
    r"could not resolve host|connection (?:reset|refused|timed out)|failed to connect|early eof|timed out|unexpected disconnect"
    r"|returned error: (?:429|5\d\d)",
    re.IGNORECASE,
)
_HOST_KEY: Final = re.compile(r"Host key verification failed|HOST IDENTIFICATION HAS CHANGED")
_FINGERPRINT: Final = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
MAX_MESSAGE: Final = 500


@dataclass(frozen=True, slots=True)
class GitLogin:
    """The user and password for the server of one URL."""

    url: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SshFiles:
    """The files for ssh: a private key, and the public keys of the hosts that it may be used for."""

    key: Path
    known_hosts: Path


@dataclass(frozen=True, slots=True)
class GitAccess:
    """The access to a server: a login, a file with certificate authorities (instead of the system's), and files for ssh."""

    login: GitLogin | None = None
    authorities: Path | None = None
    ssh: SshFiles | None = None


ANYBODY: Final = GitAccess()


class GitProgram:
    """The program ``git`` on PATH. It gets only some of the variables in ``environ``; the default is the environment of this
    process.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, *, file_bytes: int | None = None) -> None:
        """Limit each file that a run writes to ``file_bytes``; None means no limit."""
        self._environ = os.environ if environ is None else environ
        self._limits = replace(LIMITS, file_bytes=file_bytes)

    async def run(
        self, repository: Path, *arguments: str, index: Path | None = None, access: GitAccess = ANYBODY
    ) -> Outcome:
        """Run git in a folder and return its outcome. ``index`` is the index file to use. Raises RegistryError."""
        environment = {key: self._environ[key] for key in _KEPT if key in self._environ} | {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "LC_ALL": "C",
        }
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        if access.authorities is not None:
            environment["GIT_SSL_CAINFO"] = str(access.authorities)
        if access.ssh is not None:
            environment.pop("SSH_AUTH_SOCK", None)
            environment["GIT_SSH_COMMAND"] = _ssh_command(access.ssh)
        environment |= _config({**_SETTINGS, **_login_settings(access.login)})
        try:
            return await run_child(Command(("git", *arguments), repository, environment), self._limits)
        except ProcessError as error:
            remedy = "; install git" if isinstance(error, SpawnError) else ""
            raise RegistryError(f"git cannot be run: {error}{remedy}", transient=True) from error

    async def checked(
        self, repository: Path, *arguments: str, index: Path | None = None, access: GitAccess = ANYBODY
    ) -> Outcome:
        """Run git and return its outcome. If git fails, raise RegistryError with its message."""
        outcome = await self.run(repository, *arguments, index=index, access=access)
        if not outcome.ok:
            raise failure(arguments[0], outcome)
        return outcome


def failure(verb: str, outcome: Outcome) -> RegistryError:
    """Return the error for a run of git that failed; ``verb`` is the subcommand of git, for the message."""
    if outcome.ending is Ending.OUTPUT_LIMIT:
        return RegistryError(f"git {verb}: more than {LIMITS.stdout_bytes} bytes", transient=False)
    text = " ".join(outcome.stderr.decode(errors="replace").split())
    if _HOST_KEY.search(text):  # ssh prints fifteen lines about this
        shown = _FINGERPRINT.search(text)
        key = f"the key {shown.group()}" if shown else "a key"
        text = (
            f"the server has {key}, which is not one of its known keys; compare it with the keys that the server's "
            "owner publishes, and correct known_hosts"
        )
    said = text[:MAX_MESSAGE] or outcome.describe()
    said = "".join(character if character.isprintable() else " " for character in said)
    late = outcome.ending is Ending.DEADLINE
    return RegistryError(f"git {verb}: {said}", transient=late or bool(_TRANSIENT.search(said)))


def is_local(url: str) -> bool:
    """Return whether an address is that of a repository on this machine."""
    return url.startswith(("file://", "/"))


def _ssh_command(files: SshFiles) -> str:
    """Return the command with which git runs ssh; ssh uses only these files."""
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "IdentityFile": f'"{files.key}"',
        "UserKnownHostsFile": f'"{files.known_hosts}"',
        "GlobalKnownHostsFile": os.devnull,
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "PasswordAuthentication": "no",
        "ForwardAgent": "no",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ConnectTimeout": "30",
    }
    return shlex.join(("ssh", "-F", os.devnull, *(f"-o{name}={value}" for name, value in options.items())))


def _config(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings in the form of environment variables."""
    named = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return named


def _login_settings(login: GitLogin | None) -> dict[str, str]:
    if login is None:
        return {}
    parts = urlsplit(login.url)
    server = f"{parts.scheme}://{parts.netloc}/"
    basic = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
    return {f"http.{server}.extraHeader": f"Authorization: Basic {basic}", "http.followRedirects": "false"}
