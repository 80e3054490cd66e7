"""A real registry (docker-registry, the CNCF distribution) on a free loopback port, for tests and examples.

The registry chooses its port itself and reports it in its log, so two registries never use the same port. On a machine without
docker-registry, the tests that need it fail. They are not skipped, because only they check the communication with a real
registry.
"""

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from wharfinger.packages.registry.address import RegistryAddress

USER = "porter"
PASSWORD = "s3cret-pass"
HTPASSWD = f"{USER}:$2b$04$uTGKxk5sG9mnlHzfSEQq4OWdV2fgPZIbOkKg02w0DLKatmqpsJRVy\n"
"""The bcrypt hash of PASSWORD at the lowest cost."""
START_S = 300

_LISTENING = re.compile(rb"listening on 127\.0\.0\.1:(\d+)")
_CONFIG = """\
version: 0.1
log: {{level: info, formatter: json, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: "{root}"}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:0", secret: only-for-tests{tls}}}
"""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The PEM files of a self-signed certificate and of its key."""

    file: Path
    key: Path


def make_certificate(folder: Path, name: str = "IP:127.0.0.1") -> Certificate:
    """Make a new self-signed certificate for a subject alternative name, with openssl."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    command += [
        "-subj",
        "/CN=wharf",
        "-addext",
        f"subjectAltName={name}",
        "-keyout",
        str(made.key),
        "-out",
        str(made.file),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return made


@asynccontextmanager
async def open_registry_server(
    folder: Path,
    *,
    with_password: bool = False,
    certificate: Certificate | None = None,
    auth: str = "",
    client_ca: Path | None = None,
) -> AsyncIterator[RegistryAddress]:
    """Run a registry that stores everything below ``folder``.

    With a password, it accepts only USER with PASSWORD. With a certificate, it uses TLS; with ``client_ca``, it also requires a
    certificate of the client. ``auth`` is the ``auth`` section of its configuration; with it, ``with_password`` must be false.
    """
    program = shutil.which("docker-registry")
    if program is None:
        raise RuntimeError("docker-registry is not installed: `apt-get install docker-registry`")
    root = folder / "registry"
    root.mkdir(parents=True, exist_ok=True)
    config = folder / "registry.yml"
    clients = f', clientcas: ["{client_ca}"]' if client_ca else ""
    tls = f', tls: {{certificate: "{certificate.file}", key: "{certificate.key}"{clients}}}' if certificate else ""
    text = _CONFIG.format(root=root, tls=tls)
    if with_password:
        passwords = folder / "htpasswd"
        passwords.write_text(HTPASSWD)
        text += f'auth: {{htpasswd: {{realm: wharf, path: "{passwords}"}}}}\n'
    if auth:
        text += f"auth: {auth}\n"
    config.write_text(text)
    environment = {"PATH": os.defpath, "HOME": str(folder), "OTEL_TRACES_EXPORTER": "none"}
    run = partial(trio.run_process, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, check=False)
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(run, [program, "serve", str(config)])
        assert process.stderr is not None
        port = await _wait_listening(process.stderr)
        nursery.start_soon(_drain, process.stderr)
        yield RegistryAddress("127.0.0.1", port)
        nursery.cancel_scope.cancel()


async def _wait_listening(log: trio.abc.ReceiveStream) -> int:
    seen = b""
    with trio.fail_after(START_S):
        async for chunk in log:
            seen += chunk
            if match := _LISTENING.search(seen):
                return int(match[1])
    raise RuntimeError(f"docker-registry did not start: {seen[-2000:].decode(errors='replace')}")


async def _drain(log: trio.abc.ReceiveStream) -> None:
    async for _ in log:
        pass
