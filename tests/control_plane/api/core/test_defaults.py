from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.formats.json.value import JsonObject, JsonValue, find


def of(kind: str, **fields: JsonValue) -> JsonObject:
    return apply_defaults({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **fields})


def test_services_get_defaults() -> None:
    assert find(of("Service", spec={"sessionAffinity": "ClientIP"}), "spec", "sessionAffinityConfig", "clientIP") == {
        "timeoutSeconds": 10800
    }
    unsticky = of("Service", spec={"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}})
    assert find(unsticky, "spec", "sessionAffinityConfig") is None
    status: JsonObject = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a"}]}}
    balanced = of("Service", spec={"type": "LoadBalancer"}, status=status)
    assert find(balanced, "status", "loadBalancer", "ingress", 0, "ipMode") == "VIP"
    assert find(balanced, "status", "loadBalancer", "ingress", 1, "ipMode") is None


def test_volume_sources_get_defaults() -> None:
    volume = of("PersistentVolume", spec={"azureDisk": {"diskName": "a", "diskURI": "b"}, "scaleIO": {}})

    assert find(volume, "spec", "azureDisk", "cachingMode") == "ReadWrite"
    assert find(volume, "spec", "scaleIO", "storageMode") == "ThinProvisioned"


def test_limit_ranges_get_defaults() -> None:
    item: JsonObject = {
        "type": "Container",
        "max": {"cpu": "2"},
        "min": {"memory": "1Mi"},
        "default": {"memory": "2Mi"},
    }
    found = find(of("LimitRange", spec={"limits": [item, {"type": "Pod"}]}), "spec", "limits", 0)

    assert find(found, "default") == {"memory": "2Mi", "cpu": "2"}
    assert find(found, "defaultRequest") == {"memory": "2Mi", "cpu": "2"}


def test_allocatable_resources_of_nodes_default_to_capacity() -> None:
    assert find(of("Node", status={"capacity": {"cpu": "4"}}), "status", "allocatable") == {"cpu": "4"}
