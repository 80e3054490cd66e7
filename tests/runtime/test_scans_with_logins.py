"""Scans of registries that demand a login. If a second scan finds nothing new, it needs two requests, as many as without a
login.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.packages.support.charts import chart
from tests.packages.support.connect_proxy import ConnectProxy, open_connect_proxy
from tests.packages.support.token_realm import open_token_registry
from tests.registry_server import PASSWORD, USER, open_registry_server
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_registry import TAGS_ASKED_FOR, open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.sources.source import Network, RegistrySource, open_source
from wharfinger.runtime.repositories.package_scan import Interest, scan_package
from wharfinger.runtime.versions.package_index import PackageIndex

LOGIN = Credentials(USER, PASSWORD, realms=("127.0.0.1",))
USING = Interest(versions=frozenset({"1.0.0"}))
TAGS = f"GET /v2/packages/web/tags/list?n={TAGS_ASKED_FOR}"
MANIFEST = "GET /v2/packages/web/manifests/1.0.0"


async def push(address: RegistryAddress, folder: Path) -> None:
    """Push a package with one version."""
    async with open_registry(address, scheme="http", credentials=LOGIN) as registry:
        package = await load_package(chart(folder / "web", "web", "1.0.0"))
        await push_package(package, registry, "packages/web", "1.0.0")


class Scans:
    """Repeated scans of one package, as a daemon makes them. Each scan opens the source again, with the same ``Network``."""

    def __init__(self, port: int | None, proxy: ConnectProxy) -> None:
        self._host = RegistryAddress("registry.test", port)
        self._proxy = proxy
        self._network = Network(read_proxies({"HTTP_PROXY": proxy.url()}))
        self._known = PackageIndex("", "web")

    async def requests(self, login: Credentials = LOGIN) -> list[str]:
        """Scan the package, and return the requests to the registry."""
        self._proxy.requests.clear()
        source = RegistrySource(RepositoryAddress(self._host, "packages", "http"), login)
        async with open_source(source, "web", network=self._network) as (registry, path):
            self._known = await scan_package(registry, path, self._known, USING)
        return [each.replace(f"http://{self._host}", "") for each in self._proxy.requests]


@asynccontextmanager
async def scans(port: int | None) -> AsyncIterator[Scans]:
    async with open_connect_proxy() as proxy:
        yield Scans(port, proxy)


async def test_a_second_scan_with_a_password_makes_two_requests(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path, with_password=True) as address, scans(address.port) as scan:
        await push(address, tmp_path)
        first = await scan.requests()
        assert first[:2] == [TAGS, TAGS]  # the first request is refused, and the answer demands a password
        assert await scan.requests() == [TAGS, MANIFEST]
        assert await scan.requests() == [TAGS, MANIFEST]


async def test_a_second_scan_with_a_token_makes_two_requests(tmp_path: Path) -> None:
    async with open_token_registry(tmp_path, LOGIN) as there, scans(there.address.port) as scan:
        await push(there.address, tmp_path)
        there.realm.requests.clear()
        first = await scan.requests()
        assert first[0] == TAGS
        assert len(there.realm.requests) == 1
        assert await scan.requests() == [TAGS, MANIFEST]
        assert len(there.realm.requests) == 1
