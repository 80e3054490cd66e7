from tests.cluster.control_plane.samples import NOW, builtin
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Catalog
from wharfinger.cluster.control_plane.memory_storage import MemoryStorage
from wharfinger.cluster.control_plane.metrics import Metrics


def test_the_text() -> None:
    backend = Backend(MemoryStorage(), Catalog(), lambda: NOW)
    backend.put(backend.key(builtin("", "v1", "pods"), "a", "p"), {"metadata": {"name": "p"}})
    metrics = Metrics()
    metrics.requests["GET", 200] += 2
    metrics.watches = 1

    lines = metrics.text(backend).splitlines()

    assert 'apiserver_request_total{verb="GET",code="200"} 2' in lines
    assert 'apiserver_longrunning_requests{verb="WATCH"} 1' in lines
    assert 'apiserver_storage_objects{resource="pods"} 1' in lines
    assert f"wharfinger_storage_revision {backend.storage.revision}" in lines
    assert all(line.startswith("# ") or line.rsplit(" ", 1)[1].isdigit() for line in lines)
