"""A control plane over loopback TCP, and commands of the real helm on it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from tests.corpus.charts import Version
from tests.corpus.state import State, state_of, wait_settled
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.control_plane.service import ControlPlane
from wharfinger.control_plane.serving import Address, serve_control_plane
from wharfinger.formats.json.value import JsonObject

RELEASE: Final = "web"
NAMESPACE: Final = "shop"
HELM_S: Final = 180


class HelmFailedError(Exception):
    """A helm command failed. The text contains the command and its error output."""


@dataclass(frozen=True, slots=True)
class Server:
    """A control plane, a client of it, and a home folder for helm."""

    plane: ControlPlane
    client: HttpClusterClient
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the kubeconfig for other clients."""
        return self.folder / "kubeconfig"

    async def helm(self, program: str, *argv: str, **env: str) -> str:
        """Run helm in the corpus's namespace, and return its standard output. Raises HelmFailedError."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.kubeconfig),
            "HELM_NAMESPACE": NAMESPACE,
            **env,
        }
        with trio.fail_after(HELM_S):
            done = await trio.run_process(
                [program, *argv], env=environment, capture_stdout=True, capture_stderr=True, check=False
            )
        if done.returncode:
            raise HelmFailedError(f"{program} {' '.join(argv)}: {done.stderr.decode()}")
        return done.stdout.decode()

    async def helm_brings(self, program: str, verb: str, version: Version, **env: str) -> None:
        """Run ``helm install`` or ``helm upgrade`` for a version of a chart. Values of earlier revisions are not reused."""
        flags = [f"--values={version.values_file}", *(["--reset-values"] if verb == "upgrade" else [])]
        await self.helm(program, verb, RELEASE, str(version.folder), *flags, **env)

    async def settled(self) -> State:
        """Wait until all deletions are complete, and return the remaining objects."""
        await wait_settled(self.plane.backend)
        return state_of(self.plane.backend)


@asynccontextmanager
async def open_server(folder: Path) -> AsyncIterator[Server]:
    """Run a server with the corpus's namespace and with controllers."""
    folder.mkdir(parents=True)
    path = folder / "kubeconfig"
    async with serve_control_plane(Address("127.0.0.1", 0), path, "test-token") as serving:
        connection = await trio.to_thread.run_sync(load_connection, path)
        async with open_client(connection) as client:
            await make_namespace(client)
            yield Server(serving.control_plane, client, folder)


async def make_namespace(client: HttpClusterClient, name: str = NAMESPACE) -> None:
    """Create a namespace."""
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(namespace)
