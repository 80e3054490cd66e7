from tests.cluster.control_plane.samples import builtin, definition
from wharfinger.cluster.control_plane.preparation import metadata_of, prepared, with_metadata, without_status
from wharfinger.formats.json_value import JsonObject, find

SERVICE = builtin("", "v1", "services").kind


def service(**spec: str) -> JsonObject:
    return {"metadata": {"name": "s"}, "spec": dict(spec)}


def test_metadata_is_set_and_removed_in_a_copy() -> None:
    obj: JsonObject = {"metadata": {"name": "a", "uid": "u"}}

    changed = with_metadata(obj, {"uid": None, "generation": 1})

    assert metadata_of(changed) == {"name": "a", "generation": 1}
    assert metadata_of(obj) == {"name": "a", "uid": "u"}
    assert without_status({"status": 1, "spec": 2}) == {"spec": 2}


def test_first_statuses() -> None:
    namespace = prepared(builtin("", "v1", "namespaces").kind, {"metadata": {"name": "a"}}, [])
    assert (namespace["status"], namespace["spec"]) == ({"phase": "Active"}, {"finalizers": ["kubernetes"]})
    assert "status" not in prepared(builtin("", "v1", "configmaps").kind, {}, [])
    crd = prepared(builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions").kind, definition(), [])
    assert find(crd, "status", "storedVersions") == ["v1"]


def test_services_get_an_address_nobody_has() -> None:
    first = prepared(SERVICE, service(type="ClusterIP"), [])
    second = prepared(SERVICE, service(), [first])

    assert find(first, "spec", "clusterIPs") == ["10.0.0.1"]
    assert find(second, "spec", "clusterIP") == "10.0.0.2"
    assert find(second, "spec", "ipFamilies") == ["IPv4"]


def test_services_that_say_their_address_keep_it() -> None:
    assert find(prepared(SERVICE, service(clusterIP="None"), []), "spec", "clusterIPs") == ["None"]
    assert find(prepared(SERVICE, service(clusterIP="10.0.0.77"), []), "spec", "clusterIP") == "10.0.0.77"
    assert find(prepared(SERVICE, service(type="ExternalName"), []), "spec", "clusterIP") is None


def test_addresses_run_out_at_the_end() -> None:
    taken = [service(clusterIP=f"10.0.0.{part}") for part in range(256)]

    assert find(prepared(SERVICE, service(), taken), "spec", "clusterIP") == "10.0.0.254"
