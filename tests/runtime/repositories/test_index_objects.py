"""PackageIndex objects in a real control plane are read at the start, written on change, and deleted with their repository."""

from pathlib import Path

from tests.runtime.support.objects import repository
from tests.runtime.support.world import open_ground
from wharfinger.formats.json.value import find, find_str
from wharfinger.kube.names import is_subdomain
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.repositories.index_objects import IndexObjects, object_name
from wharfinger.runtime.resources.resources import PACKAGE_INDEX
from wharfinger.runtime.versions.package_index import PackageIndex, VersionDetails

WEB = PackageIndex("default", "web", ("1.1.0", "1.0.0"), "tags", details={"1.1.0": VersionDetails("sha256:1")})


async def test_an_index_survives_a_restart_until_it_is_dropped(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        owners = [await ground.client.create(repository("127.0.0.1:1/a", name=name)) for name in ("default", "other")]
        uids = {find_str(each, "metadata", "name"): find_str(each, "metadata", "uid") for each in owners}
        first = IndexObjects(ground.client)
        await first.read()
        for index in (WEB, PackageIndex("default", "db"), PackageIndex("other", "web")):
            await first.put(index, uids[index.repository])
        obj = await ground.client.get(ObjectKey(PACKAGE_INDEX, "", "default.web"))
        assert (find(obj, "status", "count"), find(obj, "status", "newest")) == (2, "1.1.0")
        assert find_str(obj, "metadata", "ownerReferences", 0, "name") == "default"
        second = IndexObjects(ground.client)
        await second.read()
        assert second.indexes == first.indexes
        await second.drop("default", keep={"db"})
        assert set(second.indexes) == {("default", "db"), ("other", "web")}
        await second.drop("default")
        await second.drop("default")
        assert [each.name for each in (await names(second))] == ["other.web"]


async def names(objects: IndexObjects) -> list[ObjectKey]:
    found = (await objects.client.list(PACKAGE_INDEX)).items
    return [ObjectKey(PACKAGE_INDEX, "", find_str(each, "metadata", "name")) for each in found]


def test_every_index_has_a_valid_object_name() -> None:
    assert object_name("default", "web") == "default.web"
    for package in ("a_b", "a" * 128 + "b" * 128):
        assert is_subdomain(object_name("default", package))
    assert object_name("default", "a_b") != object_name("default", "a_c")
