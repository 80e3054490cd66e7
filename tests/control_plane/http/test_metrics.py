import pytest

from tests.control_plane.support.samples import NOW, builtin
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.http.metrics import Metrics, Series, series_of
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.wire.routes import parse_route
from wharfinger.httpd.messages import Request

PODS = Series("apiserver", "", "", "pods", "namespace", "", "LIST", "v1")


def test_all_metrics_are_exposed_as_text() -> None:
    backend = Backend(MemoryStorage(), Catalog(), lambda: NOW)
    backend.put(backend.key(builtin("", "v1", "pods"), "a", "p"), {"metadata": {"name": "p"}})
    metrics = Metrics()
    metrics.count(PODS, 200, 0.003)
    metrics.count(PODS, 200, 70)
    metrics.watches[PODS] += 1
    metrics.faults["cut"] += 1

    metrics.in_flight("GET", 1)
    metrics.in_flight("PUT", 1)
    metrics.in_flight("PUT", -1)
    lines = metrics.text(backend).splitlines()

    labels = 'group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"'
    whole = f'component="apiserver",dry_run="",{labels}'
    assert f'apiserver_request_total{{code="200",{whole}}} 2' in lines
    assert f'apiserver_longrunning_requests{{component="apiserver",{labels}}} 1' in lines
    assert f'apiserver_request_duration_seconds_bucket{{{whole},le="60"}} 1' in lines
    assert f'apiserver_request_duration_seconds_bucket{{{whole},le="+Inf"}} 2' in lines
    assert f"apiserver_request_duration_seconds_count{{{whole}}} 2" in lines
    assert 'apiserver_storage_objects{resource="pods"} 1' in lines
    assert 'apiserver_resource_objects{group="",resource="pods"} 1' in lines
    assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 1' in lines
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0' in lines
    assert 'wharfinger_faults_injected_total{fault="cut"} 1' in lines
    assert f"wharfinger_storage_revision {backend.storage.revision}" in lines
    assert all(line.startswith("# ") or float(line.rsplit(" ", 1)[1]) >= 0 for line in lines)


@pytest.mark.parametrize(
    ("method", "path", "series"),
    [
        ("GET", "/api/v1/namespaces/a/pods", PODS),
        ("GET", "/api/v1/watch/pods", Series("apiserver", "", "", "pods", "cluster", "", "WATCH", "v1")),
        (
            "PUT",
            "/api/v1/namespaces/a/pods/b/status",
            PODS._replace(scope="resource", subresource="status", verb="PUT"),
        ),
        ("PATCH", "/api/v1/namespaces/a/pods/b", PODS._replace(scope="resource", verb="PATCH")),
        ("DELETE", "/api/v1/namespaces/a/pods", PODS._replace(verb="DELETECOLLECTION")),
        ("GET", "/api/v1/namespaces/a/pods/b/nosuch", PODS._replace(scope="resource", verb="GET")),
        ("GET", "/apis/no/v1/such", Series(verb="other")),
        ("GET", "/nope", Series(verb="other")),
        ("BREW", "/version", Series(verb="other")),
        ("GET", "/healthz/ping", Series(subresource="/healthz/ping", verb="GET")),
        ("GET", "/apis/apps", Series(subresource="/apis", verb="GET")),
    ],
)
def test_a_request_is_counted_in_the_series_of_its_route(method: str, path: str, series: Series) -> None:
    assert series_of(Catalog(), parse_route(path), Request(method, path, {}, {}, b"")) == series
