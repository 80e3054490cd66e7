import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.wire.routes import (
    BrokenRoute,
    CoreVersionsRoute,
    GroupRoute,
    GroupsRoute,
    HealthRoute,
    MetricsRoute,
    OpenApiV2Route,
    OpenApiV3Route,
    ResourceRoute,
    ResourcesRoute,
    RootRoute,
    Route,
    UnknownRoute,
    VersionRoute,
    parse_route,
)
from wharfinger.kube.resource import ResourceType

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(
    lambda text: text not in {"namespaces", "watch", "status", "finalize"}
)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", RootRoute()),
        ("/version", VersionRoute()),
        ("/version/", VersionRoute()),
        ("/metrics", MetricsRoute()),
        ("/livez", HealthRoute("livez", "")),
        ("/readyz/etcd/x", HealthRoute("readyz", "etcd/x")),
        ("/api", CoreVersionsRoute()),
        ("/apis", GroupsRoute()),
        ("/apis/", GroupsRoute()),
        ("/apis/apps", GroupRoute("apps")),
        ("/api/v1", ResourcesRoute("", "v1")),
        ("/apis/apps/v1/", ResourcesRoute("apps", "v1")),
        ("/openapi/v2", OpenApiV2Route()),
        ("/openapi/v3", OpenApiV3Route("")),
        ("/openapi/v3/apis/apps/v1", OpenApiV3Route("apis/apps/v1")),
        ("/api/v1/pods", ResourceRoute("", "v1", "", "pods")),
        ("/api/v1/nodes/a", ResourceRoute("", "v1", "", "nodes", "a")),
        ("/api/v1/nodes/a/status", ResourceRoute("", "v1", "", "nodes", "a", "status")),
        ("/api/v1/namespaces", ResourceRoute("", "v1", "", "namespaces")),
        ("/api/v1/namespaces/a", ResourceRoute("", "v1", "", "namespaces", "a")),
        ("/api/v1/namespaces/a/status", ResourceRoute("", "v1", "", "namespaces", "a", "status")),
        ("/api/v1/namespaces/a/finalize", ResourceRoute("", "v1", "", "namespaces", "a", "finalize")),
        ("/api/v1/namespaces/a/pods", ResourceRoute("", "v1", "a", "pods")),
        ("/apis/apps/v1/namespaces/a/deployments/b", ResourceRoute("apps", "v1", "a", "deployments", "b")),
        (
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            ResourceRoute("apps", "v1", "a", "deployments", "b", "scale"),
        ),
        ("/api/v1/namespaces/a/pods/b/proxy/x/y", ResourceRoute("", "v1", "a", "pods", "b", "proxy/x/y")),
        ("/api/v1/watch/pods", ResourceRoute("", "v1", "", "pods", watch=True)),
        ("/api/v1/watch/namespaces/a/pods/b", ResourceRoute("", "v1", "a", "pods", "b", watch=True)),
        ("/api/v1/watch", BrokenRoute()),
        ("/api/v1//pods", UnknownRoute()),
        ("/openapi", UnknownRoute()),
        ("/openapi/v4", UnknownRoute()),
        ("/logs", UnknownRoute()),
        ("pods", UnknownRoute()),
        ("*", UnknownRoute()),
    ],
)
def test_paths_are_parsed_to_routes(path: str, route: Route) -> None:
    assert parse_route(path) == route


@given(st.text())
def test_any_path_has_a_route(path: str) -> None:
    assert parse_route(path) is not None


@given(NAMES, NAMES, NAMES, st.sampled_from(["", "status", "scale"]), st.sampled_from(["", "apps"]))
def test_paths_of_resources_round_trip(namespace: str, plural: str, name: str, subresource: str, group: str) -> None:
    resource = ResourceType(group, "v1", "Kind", plural, namespaced=True)

    route = parse_route(resource.path(namespace, name, subresource))

    assert route == ResourceRoute(group, "v1", namespace, plural, name, subresource)
