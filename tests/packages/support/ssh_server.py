"""A program in place of ssh that runs what git asks for on this machine, and a real server if there is one.

Git runs ``ssh [options] HOST COMMAND``. The program notes its arguments, and the modes and contents of the files that they name.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_server
from time import monotonic
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


@dataclass(frozen=True)
class FakeSsh:
    """The program, in a folder for PATH."""

    folder: Path

    @property
    def path(self) -> str:
        return f"{self.folder}{os.pathsep}{os.environ['PATH']}"

    def noted(self) -> list[dict[str, object]]:
        """What each run of the program has noted."""
        file = self.folder / "noted"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def fake_ssh(folder: Path) -> FakeSsh:
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    return FakeSsh(folder)


def make_key(folder: Path, name: str) -> tuple[str, str]:
    """A new private key, and its public key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    return (folder / name).read_text(), (folder / f"{name}.pub").read_text().strip()


@dataclass(frozen=True)
class SshServer:
    """A server on loopback, with the key that it accepts."""

    host: str
    key: SshKey


@contextmanager
def serving_ssh(folder: Path, program: str) -> Iterator[SshServer]:
    """Run sshd for the user of this process; it accepts one key."""
    folder.mkdir(mode=0o700)
    private, public = make_key(folder, "user")
    _, host_public = make_key(folder, "host")
    (folder / "authorized").write_text(f"{public}\n")
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "authorized",
        "PasswordAuthentication": "no",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
    }
    (folder / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    with subprocess.Popen([program, "-D", "-e", "-f", folder / "config"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        until = monotonic() + 20
        for line in server.stderr:
            if "Server listening" in line:
                break
            assert monotonic() < until
        try:
            yield SshServer(f"127.0.0.1:{port}", SshKey(private, f"[127.0.0.1]:{port} {host_public}"))
        finally:
            server.terminate()
            server.communicate()
