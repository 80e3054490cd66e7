"""Fields of Pods that are set or dropped at a write, in cases that no recording of a real API server covers."""

from tests.control_plane.support.pod_samples import pod_of
from tests.control_plane.support.samples import NOW
from wharfinger.control_plane.api.core.pods.strategy import POD_STRATEGIES, without_disabled
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject, find


def test_disabled_fields_are_dropped() -> None:
    spec: JsonObject = {
        "schedulingGroup": {},
        "volumes": [{"name": "p", "projected": {"sources": [{"podCertificate": {}}]}}, {"name": "e", "emptyDir": {}}],
        "containers": [{"name": "a", "lifecycle": {"stopSignal": "SIGTERM", "preStop": {}}}, {"name": "b"}],
    }
    assert without_disabled(spec) == {
        "volumes": [{"name": "p", "projected": {"sources": [{}]}}, {"name": "e", "emptyDir": {}}],
        "containers": [{"name": "a", "lifecycle": {"preStop": {}}}, {"name": "b"}],
    }
    assert without_disabled({"containers": []}) == {"containers": []}


def test_a_resize_changes_only_resources() -> None:
    resize = POD_STRATEGIES["Pod"].subresources["resize"]
    old = pod_of(nodeName="n")
    new = pod_of({"name": "a", "image": "other", "resources": {"limits": {"cpu": "1"}}})
    view = Backend(MemoryStorage(), Catalog(), lambda: NOW).view(dry_run=True)
    resized = resize(new, old, view)
    assert find(resized, "spec", "containers", 0, "image") == "i"
    assert find(resized, "spec", "containers", 0, "resources", "limits", "cpu") == "1"
    assert find(resized, "spec", "nodeName") == "n"
    renamed = pod_of({"name": "b", "image": "i"})
    assert find(resize(renamed, old, view), "spec", "containers", 0, "name") == "b"
    more = pod_of({"name": "a", "image": "i"}, {"name": "b", "image": "i"})
    assert resize(more, old, view) is more
