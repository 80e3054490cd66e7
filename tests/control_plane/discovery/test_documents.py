from tests.control_plane.support.samples import definition
from wharfinger.cluster.api.discovery import aggregated_catalog, plain_catalog
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.discovery import documents as discovery
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_str


def catalog() -> Catalog:
    found = Catalog()
    scale: JsonObject = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    found.set_custom(kind_of_definition(definition(subresources={"status": {}, "scale": scale})))
    return found


def test_groups_are_listed_in_order_of_discovery() -> None:
    listed = discovery.groups(catalog())

    names = [find_str(item, "name") for item in find_list(listed, "groups")]
    assert "" not in names
    assert names[:2] == ["apiregistration.k8s.io", "apps"]
    assert names[-1] == "example.com"
    assert discovery.group(catalog(), "nosuch") is None
    assert discovery.core_versions("127.0.0.1:1")["versions"] == ["v1"]


def test_resources_are_listed_with_their_subresources() -> None:
    listed = discovery.resources(catalog(), "example.com", "v1")

    entries = {find_str(item, "name"): as_object(item, "entry") for item in find_list(listed, "resources")}
    assert sorted(entries) == ["widgets", "widgets/scale", "widgets/status"]
    assert entries["widgets/scale"] == {
        "name": "widgets/scale",
        "singularName": "",
        "namespaced": True,
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
        "group": "autoscaling",
        "version": "v1",
    }
    assert discovery.resources(catalog(), "example.com", "v9") is None


def test_both_forms_of_discovery_give_the_same_result() -> None:
    served = catalog()
    plain: dict[str, JsonObject | None] = {}
    for group, versions in served.groups().items():
        for version in versions:
            plain[f"{group}/{version}" if group else version] = discovery.resources(served, group, version)

    by_group = aggregated_catalog([discovery.aggregated(served, core=True), discovery.aggregated(served, core=False)])

    assert by_group.api_versions() == plain_catalog(plain).api_versions()


def test_namespaces_can_be_finalized() -> None:
    listed = discovery.resources(catalog(), "", "v1")

    entry = next(item for item in find_list(listed, "resources") if find(item, "name") == "namespaces/finalize")
    assert find(entry, "verbs") == ["update"]


def test_all_paths_are_listed_in_sorted_order() -> None:
    paths = find_list(discovery.paths(catalog()), "paths")

    assert "/apis/example.com/v1" in paths
    assert paths == sorted(map(str, paths))
