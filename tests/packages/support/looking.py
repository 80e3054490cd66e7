"""Ways into a cluster for charts that look, as the renderer takes them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.rendering.helm_renderer import ClusterAccess, ClusterLook


@dataclass
class Given:
    """A kubeconfig as it is, with nothing between Helm and the server."""

    kubeconfig: JsonObject
    refusal: str = ""


def given(kubeconfig: Callable[[], Awaitable[JsonObject]]) -> ClusterAccess:
    """Give Helm that kubeconfig, whatever namespace it may look into."""

    @asynccontextmanager
    async def open_look() -> AsyncIterator[ClusterLook]:
        yield Given(await kubeconfig())

    def access(_namespace: str | None, _user: str) -> AbstractAsyncContextManager[ClusterLook]:
        return open_look()

    return access
