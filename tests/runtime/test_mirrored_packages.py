"""Signed packages. The daemon can install them from a mirror in a folder, without a network. It refuses untrusted packages."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart
from tests.packages.support.signing import KEY, OTHER, sign
from tests.registry_server import open_registry_server
from tests.runtime.support.objects import repository
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.__main__ import main
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.registry.registry import WritableRegistry
from wharfinger.packages.trust.keys import Signing, public_pem

pytestmark = pytest.mark.unmeasured

VERIFY: JsonObject = {"keys": [public_pem(KEY)]}

_forbidden: list[str] | None = None
_hooked = False


def _no_network(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse all connections over IP and all DNS look-ups of this process while `no_network` is active."""
    if _forbidden is None or event not in ("socket.connect", "socket.getaddrinfo"):
        return
    address = arguments[1] if event == "socket.connect" else arguments
    if isinstance(address, tuple):
        _forbidden.append(f"{event} {address}")
        raise OSError("there is no network")


@contextmanager
def no_network() -> Iterator[list[str]]:
    """Disable the network, and yield a list of the attempted connections."""
    global _forbidden, _hooked  # noqa: PLW0603 - an audit hook cannot be removed, so it has a switch
    if not _hooked:
        sys.addaudithook(_no_network)
        _hooked = True
    tried: list[str] = []
    _forbidden = tried
    try:
        yield tried
    finally:
        _forbidden = None


async def publish(registry: WritableRegistry, folder: Path, version: str, key: Signing | None = KEY) -> None:
    """Push a chart, and sign it unless ``key`` is None."""
    package = await load_package(chart(folder / f"chart-{version}", "web", version), "web")
    pushed = await push_package(package, registry, "packages/web", version)
    if key is not None:
        await sign(registry, "packages/web", pushed.digest, version, key)


async def mirror(*arguments: str) -> int:
    return await trio.to_thread.run_sync(lambda: main(["repository", "mirror", *arguments]))


async def carried(world: World, path: Path, spec: JsonObject) -> None:
    """Create the PackageRepository ``default`` for a folder with signed packages, and an Application that uses it."""
    source: JsonObject = {"layout": {"path": str(path)}, "verify": VERIFY}
    await world.client.create({**repository(""), "spec": source})
    await world.create("prod", "shop", more={"packageVersion": None, **spec})


@pytest.mark.slow
async def test_a_mirror_in_a_folder_is_installed_without_a_network(tmp_path: Path) -> None:
    """The registry is stopped, and the daemon cannot connect to anything. Version ranges and signatures still work."""
    async with open_registry_server(tmp_path / "there") as address, open_registry(address, scheme="http") as registry:
        for version in ("1.0.0", "1.1.0"):
            await publish(registry, tmp_path, version)
        assert await mirror(f"{address}/packages", f"oci-layout:{tmp_path}/stick", "--package", "web") == 0
    async with open_world(tmp_path) as world:
        with no_network() as tried:
            assert world.address.port is not None
            with pytest.raises(OSError, match="there is no network"):
                await trio.open_tcp_stream("127.0.0.1", world.address.port)
            tried.clear()
            await carried(world, tmp_path / "stick", {"versionRange": ">=1"})
            shop = await world.until_state("prod", "shop", "Ready")
            assert find_str(shop, "status", "currentVersion", "version") == "1.1.0"
            assert await world.config_map("prod", "shop") is not None
        assert tried == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "said"),
    [(None, "expected a signature, found none"), (OTHER, "expected a signature by spec.verify.keys[0] (sha256:")],
)
async def test_an_untrusted_package_is_not_stored_and_its_status_explains_it(
    key: Signing | None, said: str, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world, open_registry(world.address, scheme="http") as registry:
        await publish(registry, tmp_path, "1.0.0", key)
        obj = repository(f"{world.address}/packages")
        await world.client.create({**obj, "spec": {**find_object(obj, "spec"), "verify": VERIFY}})
        await world.create("prod", "shop")
        shop = await world.until("prod", "shop", has_reason("NotTrusted"))
        message = find_str(shop, "status", "summary", "message")
        assert f"{world.address}/packages/web:1.0.0 (sha256:" in message
        assert said in message
        assert [path.name for path in (tmp_path / "state" / "store").rglob("*") if path.is_file()] == ["lock"]
        assert await world.config_map("prod", "shop") is None
        await publish(registry, tmp_path / "again", "1.0.0")
        await world.request("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
