"""Access to a cluster for renders of charts that call `lookup`, in the form that the renderer takes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.rendering.helm_renderer import ClusterAccess, ClusterLook


@dataclass
class Given:
    """A kubeconfig with which Helm reaches the server directly, without the daemon's proxy."""

    kubeconfig: JsonObject
    refusal: str = ""


def given(kubeconfig: Callable[[], Awaitable[JsonObject]]) -> ClusterAccess:
    """Return an access that gives this kubeconfig to every chart, regardless of the namespace that the chart may read."""

    @asynccontextmanager
    async def open_look() -> AsyncIterator[ClusterLook]:
        yield Given(await kubeconfig())

    def access(_namespace: str | None, _user: str) -> AbstractAsyncContextManager[ClusterLook]:
        return open_look()

    return access
