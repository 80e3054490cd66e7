from tests.control_plane.support.samples import NOW
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.bootstrap import first_objects
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import find_int, find_str


def backend() -> Backend:
    found = Backend(MemoryStorage(), Catalog(), lambda: NOW)
    first_objects.install(found)
    return found


def test_a_new_cluster_has_the_first_objects() -> None:
    found = backend()

    service = found.object("", "services", "default", "kubernetes")
    assert find_str(service, "spec", "clusterIP") == "10.0.0.1"
    assert find_str(service, "metadata", "creationTimestamp") == "2026-11-21T04:00:00Z"
    critical = found.object("scheduling.k8s.io", "priorityclasses", "", "system-node-critical")
    assert find_int(critical, "value") == 2_000_001_000
    assert len(found.objects("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")) == 8


def test_deleted_objects_are_not_restored() -> None:
    found = backend()
    gone = Key(Collection("scheduling.k8s.io", "priorityclasses"), "", "system-node-critical")
    found.delete(gone)

    first_objects.install(found)

    assert found.storage.get(gone) is None
