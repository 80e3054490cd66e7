"""A control plane over loopback TCP, with real helm on it; and what helm is asked."""

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
    """The output of a helm command."""


@dataclass(frozen=True, slots=True)
class Server:
    """A control plane, a client on it, and a home for helm."""

    plane: ControlPlane
    client: HttpClusterClient
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """How others connect."""
        return self.folder / "kubeconfig"

    async def helm(self, program: str, *argv: str, **env: str) -> str:
        """Run helm in the corpus's namespace; its standard output. Raises HelmFailedError."""
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
        """``helm install`` or ``helm upgrade`` of a version, with its values and no others."""
        flags = [f"--values={version.values_file}", *(["--reset-values"] if verb == "upgrade" else [])]
        await self.helm(program, verb, RELEASE, str(version.folder), *flags, **env)

    async def settled(self) -> State:
        """Return the objects that exist when all deletions are complete."""
        await wait_settled(self.plane.backend)
        return state_of(self.plane.backend)


@asynccontextmanager
async def open_server(folder: Path) -> AsyncIterator[Server]:
    """A server with the corpus's namespace in it; its controllers are running."""
    folder.mkdir(parents=True)
    path = folder / "kubeconfig"
    async with serve_control_plane(Address("127.0.0.1", 0), path, "test-token") as serving:
        connection = await trio.to_thread.run_sync(load_connection, path)
        async with open_client(connection) as client:
            await make_namespace(client)
            yield Server(serving.control_plane, client, folder)


async def make_namespace(client: HttpClusterClient, name: str = NAMESPACE) -> None:
    """A namespace to install into."""
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(namespace)
