import pytest

from tests.control_plane.support.samples import NOW, definition
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.http.allowed_methods import NotServedError
from wharfinger.control_plane.http.document_requests import Documents
from wharfinger.control_plane.http.metrics import Metrics
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.wire.routes import parse_route
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.httpd.messages import Request, Response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CATALOG = Catalog()
CATALOG.set_custom(kind_of_definition(definition()))
DOCUMENTS = Documents(Backend(MemoryStorage(), CATALOG, lambda: NOW), Metrics())


def ask(path: str, method: str = "GET", **headers: str) -> Response:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return DOCUMENTS.answer(parse_route(path), Request(method, path, {}, named, b""))


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/", 200),
        ("POST", "/", 200),
        ("GET", "/index.html", 200),
        ("GET", "/version", 200),
        ("POST", "/version", 405),
        ("GET", "/api", 200),
        ("POST", "/api", 405),
        ("POST", "/apis", 200),
        ("GET", "/apis/apps/v1", 200),
        ("POST", "/apis/apps/v1", 405),
        ("GET", "/apis/apps/v9", 404),
        ("GET", "/api//v1", 404),
        ("POST", "/apis/example.com/v1", 200),
        ("GET", "/.well-known/openid-configuration", 200),
        ("GET", "/statusz", 200),
        ("GET", "/metrics", 200),
        ("POST", "/healthz", 200),
        ("GET", "/openapi/v3/apis/apps/v1", 200),
    ],
)
def test_documents_allow_their_methods_only(method: str, path: str, code: int) -> None:
    try:
        found = ask(path, method).status
    except StatusError as error:
        found = error.code
    assert found == code


@pytest.mark.parametrize("path", ["/nosuch", "/apis/nosuch", "/apis/example.com/v9", "/healthz/nosuch"])
def test_unknown_document_paths_are_not_served(path: str) -> None:
    with pytest.raises(NotServedError):
        ask(path)


def test_aggregated_discovery_with_a_known_tag_is_not_sent_again() -> None:
    first = ask("/apis", accept=AGGREGATED)

    again = ask("/apis", accept=AGGREGATED, if_none_match=dict(first.headers)["etag"])

    assert first.content_type == AGGREGATED
    assert (again.status, again.body) == (304, b"")


def test_the_version_is_available_only_as_json() -> None:
    with pytest.raises(StatusError, match="Available representations: application/json"):
        ask("/version", accept="application/yaml")
    assert ask("/apis/apps/v1", accept="application/yaml").content_type == "application/yaml"
