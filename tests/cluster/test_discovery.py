"""Catalogs from both forms of discovery."""

import pytest

from wharfinger.cluster.discovery import (
    aggregated_catalog,
    group_version_path,
    group_versions,
    is_aggregated,
    plain_catalog,
)
from wharfinger.cluster.resource import ResourceType
from wharfinger.formats.json_value import JsonObject, ShapeError

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


def test_aggregated() -> None:
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


def test_plain() -> None:
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


def test_the_first_resource_of_a_kind_wins() -> None:
    pods: JsonObject = {"name": "pods", "kind": "Pod", "namespaced": True}
    catalog = plain_catalog({"v1": {"resources": [pods, {**pods, "name": "others"}]}})
    assert catalog.find("v1", "Pod") == POD


@pytest.mark.parametrize(
    "document", [{"items": 1}, {"items": [{"versions": "v1"}]}, {"items": [{"metadata": {"name": 1}}]}]
)
def test_damaged_aggregated_documents(document: JsonObject) -> None:
    with pytest.raises(ShapeError):
        aggregated_catalog([document])


def test_damaged_plain_documents() -> None:
    with pytest.raises(ShapeError, match="boolean"):
        plain_catalog({"v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": "yes"}]}})
    with pytest.raises(ShapeError):
        plain_catalog({"v1": {"resources": {}}})
