"""Ten thousand versions of one package in a real registry: how many requests a scan makes, and how large the index is."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.packages.support.connect_proxy import open_connect_proxy
from tests.registry_server import open_registry_server
from tests.runtime.repositories.test_package_scan import Counted
from tests.runtime.support.objects import repository
from tests.runtime.support.world import open_ground
from tests.scale import scaled
from wharfinger.formats.json.value import encode_json, find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.connection import RegistryAccess
from wharfinger.packages.registry.oci_registry import TAGS_ASKED_FOR, open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.runtime.repositories.index_objects import IndexObjects
from wharfinger.runtime.repositories.package_scan import Interest, scan_package
from wharfinger.runtime.resources.resources import PACKAGE_INDEX
from wharfinger.runtime.versions.package_index import DETAILED, PackageIndex, index_object

COUNT = scaled(10_000, 2_000)
EMPTY = PackageIndex("default", "web")


def link_tags(folder: Path, count: int) -> None:
    """Add tags for the content of version 1.0.0: write the files that the registry would write, because pushes would be slow."""
    tags = folder / "registry/docker/registry/v2/repositories/packages/web/_manifests/tags"
    digest = (tags / "1.0.0/current/link").read_text()
    for number in range(count - 1):
        current = tags / f"1.{number // 100 + 1}.{number % 100}" / "current"
        current.mkdir(parents=True)
        (current / "link").write_text(digest)


async def requests_of_scan(address: RegistryAddress, known: PackageIndex, interest: Interest) -> list[str]:
    """Scan a package in which nothing is new, and return the requests that a proxy sees."""
    async with open_connect_proxy() as proxy:
        access = RegistryAccess(proxies=read_proxies({"HTTP_PROXY": proxy.url()}))
        host = RegistryAddress("registry.test", address.port)
        async with open_registry(host, scheme="http", access=access) as registry:
            assert await scan_package(registry, "packages/web", known, interest) == known
        return [each.replace(str(host), str(address)) for each in proxy.requests]


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_ten_thousand_versions_fit_in_one_object_and_a_second_scan_makes_two_requests(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    async with open_registry_server(tmp_path) as address, open_registry(address, scheme="http") as registry:
        await push_package(
            await load_package(chart(tmp_path / "web", "web", "1.0.0")), registry, "packages/web", "1.0.0"
        )
        link_tags(tmp_path, COUNT)
        counted = Counted(registry)
        tracemalloc.start()
        started = time.perf_counter()
        first = await scan_package(counted, "packages/web", EMPTY, Interest())
        first_s, requests = time.perf_counter() - started, counted.asked.total()
        gc.collect()
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(first.versions) == COUNT
        assert counted.asked == {"tags": 1, "resolve": DETAILED, "manifest": DETAILED, "blob": DETAILED}
        using = Interest(versions=frozenset({first.versions[0]}))
        counted.asked.clear()
        started = time.perf_counter()
        assert await scan_package(counted, "packages/web", first, using) == first
        second_s = time.perf_counter() - started
        assert counted.asked.total() <= 2
        assert await requests_of_scan(address, first, using) == [
            f"GET http://{address}/v2/packages/web/tags/list?n={TAGS_ASKED_FOR}",
            f"GET http://{address}/v2/packages/web/manifests/{first.versions[0]}",
        ]
    size = len(encode_json(index_object(first)))
    record_property(
        "figures",
        f"{COUNT} versions: first scan {requests} requests, {first_s:.2f} s; second {counted.asked.total()} requests, "
        f"{second_s:.2f} s; {memory / 1e6:.1f} MB of memory; one object of {size / 1e3:.0f} kB",
    )
    assert memory < 1_000 * COUNT + 2_000_000
    async with open_ground(tmp_path) as ground:
        objects = IndexObjects(ground.client)
        owner = await ground.client.create(repository("127.0.0.1:1/packages"))
        await objects.put(first, find_str(owner, "metadata", "uid"))
        obj = await ground.client.get(ObjectKey(PACKAGE_INDEX, "", "default.web"))
        assert find(obj, "status", "count") == COUNT
        again = IndexObjects(ground.client)
        await again.read()
        assert again.indexes[("default", "web")] == first
