"""A control plane that runs commands in its Pods. It listens on a TCP port, and is used by tests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.pod_exec import PodCommand
from wharfinger.control_plane.controllers.framework.simulation_annotations import READY_AFTER
from wharfinger.control_plane.service import ControlPlane, open_control_plane
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.server import open_server
from wharfinger.kube.resource import ObjectKey
from wharfinger.pools.pods.resources import POD

BUSY: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    # A Pod without annotations runs only after some seconds. With a simulation annotation, it runs immediately.
    "metadata": {"name": "busy", "namespace": "default", "annotations": {READY_AFTER: "0"}},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}
KEY = ObjectKey(POD, "default", "busy")


@dataclass
class Kubelet:
    """A control plane that runs commands in its Pods, and a client of it."""

    plane: ControlPlane
    client: HttpClusterClient
    folder: Path

    async def start(self, obj: JsonObject = BUSY) -> str:
        """Create a Pod, wait until it runs, and return its uid."""
        made = await self.client.create(obj)
        uid, name = find_str(made, "metadata", "uid"), find_str(made, "metadata", "name")
        with trio.fail_after(60):
            async with self.client.watch(POD, "default", resource_version="0") as events:
                async for event in events:
                    same = find_str(event.object, "metadata", "name") == name
                    if same and find_str(event.object, "status", "phase") == "Running":
                        break
        return uid

    async def run(self, *argv: str, stdin: bytes | None = None) -> tuple[int, bytes, bytes]:
        """Run a command in the Pod. Return its exit code and its output."""
        out, err = bytearray(), bytearray()
        with trio.fail_after(60):
            code = await self.client.executor.run(
                PodCommand(KEY, argv, stdin=stdin), stdout=out.extend, stderr=err.extend
            )
        return code, bytes(out), bytes(err)


@asynccontextmanager
async def open_kubelet(folder: Path, *, commands: bool = True) -> AsyncGenerator[Kubelet]:
    """Run a control plane on a port of this machine, and yield it with its client."""
    root = folder / "commands"
    async with open_control_plane(command_folder=root if commands else None) as plane:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        async with (
            open_server(listeners, plane.front, HttpLimits()),
            open_client(Connection(f"http://127.0.0.1:{port}")) as client,
        ):
            yield Kubelet(plane, client, root)
