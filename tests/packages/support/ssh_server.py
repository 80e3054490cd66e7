"""A program that replaces ssh and runs git's commands on this machine, and a real SSH server.

Git runs ``ssh [options] HOST COMMAND``. The program records its arguments, and the mode and content of each file that the
arguments name.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.packages.sources.git_repository import SshKey

_PROGRAM: Final = """#!/usr/bin/env python3
import json, os, shlex, sys
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("-o") and "=" in word)
files = {name: options[name].strip('"') for name in ("IdentityFile", "UserKnownHostsFile") if name in options}
noted = {
    "options": options,
    "files": {name: [oct(os.stat(path).st_mode & 0o777), open(path).read()] for name, path in files.items()},
    "agent": os.environ.get("SSH_AUTH_SOCK", ""),
    "arguments": [word for word in sys.argv[1:] if not word.startswith("-o")],
}
with open(os.path.join(os.path.dirname(__file__), "noted"), "a") as file:
    file.write(json.dumps(noted) + "\\n")
words = shlex.split(sys.argv[-1])
if words[0] != "git-upload-pack":
    sys.exit("only git-upload-pack is served")
os.execvp("git", ["git", "upload-pack", *words[1:]])
"""

_SERVER: Final = """
import asyncio, asyncssh, shlex, sys

async def serve(process):
    words = shlex.split(process.command or "")
    if words[:1] != ["git-upload-pack"]:
        process.stderr.write("only git-upload-pack is served\\n")
        process.exit(1)
        return
    git = await asyncio.create_subprocess_exec(
        "git", "upload-pack", *words[1:], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    await process.redirect(stdin=git.stdin, stdout=git.stdout)
    process.exit(await git.wait())

async def main(host_key, authorized):
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[host_key], authorized_client_keys=authorized, process_factory=serve, encoding=None
    )
    print(server.get_port(), flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))
"""
"""A server written with asyncssh, which needs neither root nor a user of the system. It prints its port."""


@dataclass(frozen=True)
class FakeSsh:
    """A program that replaces ssh, in a folder for PATH."""

    folder: Path

    @property
    def path(self) -> str:
        return f"{self.folder}{os.pathsep}{os.environ['PATH']}"

    def noted(self) -> list[dict[str, object]]:
        """Return what each run of the program has recorded."""
        file = self.folder / "noted"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def fake_ssh(folder: Path) -> FakeSsh:
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    return FakeSsh(folder)


def make_key(folder: Path, name: str) -> tuple[str, str]:
    """Make a new private key, and return it with its public key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    return (folder / name).read_text(), (folder / f"{name}.pub").read_text().strip()


@dataclass(frozen=True)
class SshServer:
    """An SSH server on loopback, and the key that it accepts."""

    host: str
    key: SshKey


@contextmanager
def serving_ssh(folder: Path) -> Iterator[SshServer]:
    """Run an SSH server in its own process. It accepts one key."""
    folder.mkdir(mode=0o700)
    private, public = make_key(folder, "user")
    _, host_public = make_key(folder, "host")
    (folder / "authorized").write_text(f"{public}\n")
    command = [sys.executable, "-c", _SERVER, str(folder / "host"), str(folder / "authorized")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            assert port.isdecimal(), "the asyncssh server did not start; install asyncssh with `make setup`"
            yield SshServer(f"127.0.0.1:{port}", SshKey(private, f"[127.0.0.1]:{port} {host_public}"))
        finally:
            server.communicate()  # The server ends when its standard input is closed.
