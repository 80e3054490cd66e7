"""Catalogs of resource types, made from aggregated and from plain discovery documents."""

import pytest

from wharfinger.cluster.api.discovery import (
    aggregated_catalog,
    group_version_path,
    group_versions,
    is_aggregated,
    plain_catalog,
)
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.kube.resource import ResourceType

CORE: JsonObject = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {},
            "versions": [
                {
                    "version": "v1",
                    "freshness": "Current",
                    "resources": [
                        {
                            "resource": "pods",
                            "scope": "Namespaced",
                            "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
                            "subresources": [{"subresource": "status"}],
                        },
                        {
                            "resource": "namespaces",
                            "scope": "Cluster",
                            "responseKind": {"group": "", "version": "", "kind": "Namespace"},
                        },
                    ],
                }
            ],
        }
    ],
}
GROUPS: JsonObject = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "apps"},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {"resource": "deployments", "scope": "Namespaced", "responseKind": {"kind": "Deployment"}},
                        {"resource": "nothing", "scope": "Namespaced"},
                    ],
                }
            ],
        },
        {"metadata": {"name": "metrics.example"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
    ],
}
POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)


def test_aggregated_discovery_is_read() -> None:
    catalog = aggregated_catalog([CORE, GROUPS])
    assert catalog.find("v1", "Pod") == POD
    assert catalog.find("v1", "Namespace") == NAMESPACE
    assert catalog.find("apps/v1", "Deployment") == DEPLOYMENT
    assert catalog.find("apps/v1", "Pod") is None
    assert catalog.unavailable == ("metrics.example/v1beta1",)
    assert catalog.api_versions() == (
        "apps/v1",
        "apps/v1/Deployment",
        "metrics.example/v1beta1",
        "v1",
        "v1/Namespace",
        "v1/Pod",
    )
    assert is_aggregated(CORE)
    assert not is_aggregated({"kind": "APIVersions"})


def test_plain_discovery_is_read() -> None:
    api: JsonObject = {"kind": "APIVersions", "versions": ["v1"]}
    apis: JsonObject = {
        "kind": "APIGroupList",
        "groups": [
            {"name": "apps", "versions": [{"groupVersion": "apps/v1"}]},
            {"name": "metrics.example", "versions": [{"groupVersion": "metrics.example/v1beta1"}]},
        ],
    }
    assert group_versions(api, apis) == ("v1", "apps/v1", "metrics.example/v1beta1")
    assert [group_version_path(version) for version in ("v1", "apps/v1")] == ["/api/v1", "/apis/apps/v1"]
    catalog = plain_catalog(
        {
            "v1": {
                "resources": [
                    {"name": "pods", "kind": "Pod", "namespaced": True},
                    {"name": "pods/status", "kind": "Pod", "namespaced": True},
                    {"name": "namespaces", "kind": "Namespace", "namespaced": False},
                    {"name": "bindings", "kind": ""},
                ]
            },
            "apps/v1": {
                "resources": [
                    {"name": "deployments", "kind": "Deployment", "namespaced": True},
                    {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"},
                ]
            },
            "metrics.example/v1beta1": None,
        }
    )
    assert catalog == aggregated_catalog([CORE, GROUPS])


def _entry(plural: str, kind: str, singular: str, *short_names: JsonValue) -> JsonObject:
    return {
        "resource": plural,
        "scope": "Namespaced",
        "responseKind": {"kind": kind},
        "singularResource": singular,
        "shortNames": list(short_names),
    }


def _version(name: str, *entries: JsonValue) -> JsonObject:
    return {"version": name, "resources": list(entries)}


def test_a_kind_is_found_by_each_of_its_names() -> None:
    event = _entry("events", "Event", "event", "ev", 7)
    groups: JsonObject = {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {"metadata": {}, "versions": [_version("v1", event)]},
            {"metadata": {"name": "events.k8s.io"}, "versions": [_version("v1", event)]},
            {
                "metadata": {"name": "example"},
                "versions": [
                    _version("v2", _entry("crontabs", "CronTab", "crontab", "ct")),
                    _version("v1", _entry("crontabs", "CronTab", "crontab", "ct"), _entry("evs", "EV", "")),
                ],
            },
        ],
    }
    catalog = aggregated_catalog([groups])

    def version(name: str, api_version: str = "") -> str:
        found = catalog.named(name, api_version)
        return "" if found is None else found.api_version

    assert [version(name) for name in ("CronTab", "crontab", "CRONTABS", "Ct")] == ["example/v2"] * 4
    assert version("ct", "example/v1") == "example/v1"
    assert version("ct", "v1") == ""
    assert version("cts") == ""
    assert version("event") == "v1"
    assert version("Event", "events.k8s.io/v1") == "events.k8s.io/v1"
    # a kind named "ev" takes precedence over a kind with the short name "ev"
    assert version("ev") == "example/v1"


def test_plain_discovery_has_the_same_names() -> None:
    versions: list[JsonValue] = [{"groupVersion": "example/v1beta1"}, {"groupVersion": "example/v1"}]
    group: JsonObject = {"name": "example", "versions": versions, "preferredVersion": {"groupVersion": "example/v1"}}
    names = group_versions({"versions": ["v1"]}, {"groups": [group]})
    assert names == ("v1", "example/v1", "example/v1beta1")
    resource: JsonObject = {
        "name": "crontabs",
        "kind": "CronTab",
        "singularName": "crontab",
        "shortNames": ["ct"],
        "namespaced": True,
    }
    catalog = plain_catalog({name: {"resources": [resource] if "/" in name else []} for name in names})
    crontab = ResourceType("example", "v1", "CronTab", "crontabs", namespaced=True)
    assert {catalog.named(name) for name in ("CRONTAB", "crontabs", "ct")} == {crontab}


def test_the_first_resource_of_a_kind_wins() -> None:
    pods: JsonObject = {"name": "pods", "kind": "Pod", "namespaced": True}
    catalog = plain_catalog({"v1": {"resources": [pods, {**pods, "name": "others"}]}})
    assert catalog.find("v1", "Pod") == POD


@pytest.mark.parametrize(
    "document", [{"items": 1}, {"items": [{"versions": "v1"}]}, {"items": [{"metadata": {"name": 1}}]}]
)
def test_damaged_aggregated_documents_are_refused(document: JsonObject) -> None:
    with pytest.raises(ShapeError):
        aggregated_catalog([document])


def test_damaged_plain_documents_are_refused() -> None:
    with pytest.raises(ShapeError, match="boolean"):
        plain_catalog({"v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": "yes"}]}})
    with pytest.raises(ShapeError):
        plain_catalog({"v1": {"resources": {}}})
