"""API paths that a chart may look up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.releases.lookup_paths import NotAllowed, Place, Question, judge

OWN = "tenant"

READ_BY_ALL = ["/version", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"]
OWN_PATHS = [
    "/api/v1/namespaces/tenant/secrets",
    "/api/v1/namespaces/tenant/secrets/crown",
    "/apis/apps/v1/namespaces/tenant/deployments/web",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/tenant/roles/system:a",
]
OTHERS = {
    "/api/v1/namespaces/victimns/secrets/crown": Place("v1", "secrets", "victimns", "crown"),
    "/api/v1/namespaces/victimns/secrets": Place("v1", "secrets", "victimns", ""),
    "/api/v1/secrets": Place("v1", "secrets", "", ""),
    "/apis/apps/v1/deployments": Place("apps/v1", "deployments", "", ""),
    "/api/v1/namespaces": Place("v1", "namespaces", "", ""),
    "/api/v1/namespaces/tenant": Place("v1", "namespaces", "", "tenant"),
    "/api/v1/nodes/a": Place("v1", "nodes", "", "a"),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin": Place(
        "rbac.authorization.k8s.io/v1", "clusterroles", "", "admin"
    ),
}
NEVER = [
    "/",
    "",
    "api",
    "//api",
    "/metrics",
    "/logs/kubelet.log",
    "/openapi/v2",
    "/openapi/v3/api/v1",
    "/api/v1/watch/secrets",
    "/api/v1/watch/namespaces/tenant/secrets",
    "/api/v1/namespaces/tenant/pods/a/log",
    "/api/v1/namespaces/tenant/services/a/proxy/secrets",
    "/api/v1/namespaces/tenant/status",
    "/api/v1/namespaces/tenant/finalize",
    "/api/v1/namespaces/tenant/../victimns/secrets/crown",
    "/api/v1/namespaces/tenant/secrets/../../victimns/secrets",
    "/api/v1/namespaces/tenant/./secrets",
    "/api/v1/namespaces/tenant/secrets/a?b",
    "/api/v1/namespaces/tenant/secrets/a#b",
    "/api/v1/namespaces/tenant/secrets/a\\b",
    "/api/v1/namespaces/tenant/secrets/%2e%2e",
    "/api/v1/namespaces//secrets",
    "/api/v1/nodes/a/proxy",
    "http://elsewhere/api/v1/nodes",
]


@pytest.mark.parametrize("path", [*READ_BY_ALL, *OWN_PATHS])
def test_paths_inside_of_the_namespace_are_allowed(path: str) -> None:
    judged = judge(path, {}, OWN)
    assert isinstance(judged, Question)
    assert judged.path == path
    assert judged.is_index == (path in {"/api", "/apis"})


@pytest.mark.parametrize("path", OTHERS)
def test_paths_outside_of_the_namespace_are_refused_by_name(path: str) -> None:
    assert judge(path, {}, OWN) == NotAllowed(OTHERS[path])
    assert judge(path, {}, None) == Question(path, {})


@pytest.mark.parametrize("namespace", [OWN, None])
@pytest.mark.parametrize("path", NEVER)
def test_other_paths_are_refused_for_every_release(path: str, namespace: str | None) -> None:
    assert judge(path, {}, namespace) == NotAllowed()


def test_only_known_parameters_are_passed_on() -> None:
    query = {"limit": ("5",), "labelSelector": ("a=b", "c=d"), "pretty": ("true",), "dryRun": ("All",)}
    assert judge(OWN_PATHS[0], query, OWN) == Question(OWN_PATHS[0], {"limit": "5", "labelSelector": "c=d"})
    for value in ("1", "true", "", "false"):
        assert judge(OWN_PATHS[0], {"watch": (value,)}, OWN) == NotAllowed()


SEGMENTS = st.sampled_from(
    [
        "api",
        "apis",
        "v1",
        "apps",
        "namespaces",
        "tenant",
        "victimns",
        "secrets",
        "crown",
        "watch",
        "..",
        ".",
        "",
        "%2e",
        "a b",
    ]
)


@given(st.lists(SEGMENTS, max_size=9))
def test_a_confined_release_never_reads_outside_of_its_namespace(segments: list[str]) -> None:
    judged = judge("/" + "/".join(segments), {}, OWN)
    if isinstance(judged, Question):
        parts = judged.path.split("/")[1:]
        start = 2 if parts[0] == "api" else 3
        assert not {"..", ".", ""} & set(parts)
        assert len(parts) <= start or parts[start : start + 2] == ["namespaces", OWN]
        assert len(parts) <= start + 4
