"""OpenPGP keys that gpg makes, and charts that are signed with them."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from wharfinger.packages.charts.chart import pack_chart


@dataclass(frozen=True)
class Pgp:
    """A home folder of gpg with three keys: ``ours``, ``other``, and ``late``, which has expired."""

    home: Path

    def run(self, *arguments: str, data: bytes = b"", at: str = "") -> bytes:
        time = ("--faked-system-time", at) if at else ()
        command = ["gpg", "--homedir", self.home, "--batch", "--quiet", "--no-tty", *time, *arguments]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C"}
        done = subprocess.run(command, input=data, capture_output=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def keyring(self, *names: str) -> str:
        """Return the public keys with these names, armored and joined."""
        return "".join(self.run("--armor", "--export", f"={name} <{name}@example>").decode() for name in names)

    def sign(self, text: bytes, name: str = "ours", at: str = "") -> bytes:
        """Sign a text as Helm does, with the key of ``name``."""
        return self.run("--local-user", f"={name} <{name}@example>", "--clearsign", data=text, at=at)

    def provenance(self, name: str, version: str, archive: bytes, by: str = "ours") -> bytes:
        """Return the provenance file of a chart's archive."""
        digest = hashlib.sha256(archive).hexdigest()
        return self.sign(provenance_text(name, version, digest), by)


def provenance_text(name: str, version: str, digest: str) -> bytes:
    """Return the signed text of a provenance file."""
    about = f"apiVersion: v2\nname: {name}\nversion: {version}\n"
    return f"{about}\n...\nfiles:\n  {name}-{version}.tgz: sha256:{digest}\n".encode()


@pytest.fixture(scope="module")
def pgp(tmp_path_factory: pytest.TempPathFactory) -> "object":
    """Make the keys for the tests of one module. Afterwards, end the agent that gpg has started."""
    if shutil.which("gpg") is None or shutil.which("gpgv") is None:
        pytest.skip("gpg is not installed")
    home = tmp_path_factory.mktemp("pgp", numbered=True)
    home.chmod(0o700)
    made = Pgp(home)
    try:
        for name, expires, at in (("ours", "never", ""), ("other", "never", ""), ("late", "1d", "20200101T000000!")):
            key = f"{name} <{name}@example>"
            made.run("--passphrase", "", "--quick-generate-key", key, "ed25519", "sign", expires, at=at)
        yield made
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=True)


def archive_of(folder: Path) -> bytes:
    """Return the archive of a chart's folder."""
    return pack_chart(folder)
