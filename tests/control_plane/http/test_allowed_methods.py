import pytest

from tests.control_plane.support.samples import definition
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.http.allowed_methods import NotServedError, check_method, unserved_resource_error
from wharfinger.control_plane.wire.routes import ResourceRoute, parse_route
from wharfinger.control_plane.wire.status import StatusError

CATALOG = Catalog()
CATALOG.set_custom(kind_of_definition(definition()))


def code(method: str, path: str) -> int | str:
    """Return 200 if the method is allowed, or the code of the Status that refuses it, or "text" if the answer is plain text."""
    route = parse_route(path)
    assert isinstance(route, ResourceRoute)
    served = CATALOG.find(route.group, route.version, route.plural)
    assert served is not None
    try:
        check_method(served, route, method)
    except StatusError as error:
        return error.code
    except NotServedError:
        return "text"
    return 200


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", 200),
        ("POST", "/api/v1/pods", 405),
        ("GET", "/api/v1/pods/x", 404),
        ("HEAD", "/api/v1/namespaces/a/pods/x", 405),
        ("GET", "/api/v1/namespaces/a/pods/x/log", 200),
        ("PUT", "/api/v1/namespaces/a/pods/x/log", 405),
        ("GET", "/api/v1/namespaces/a/pods/x/nosuch", 404),
        ("GET", "/api/v1/namespaces/a/pods/x/status/y", 404),
        ("OPTIONS", "/api/v1/namespaces/a/pods/x/proxy/y", 200),
        ("GET", "/api/v1/namespaces/a/nodes", 404),
        ("GET", "/api/v1/bindings", 404),
        ("GET", "/api/v1/namespaces/a/bindings", 405),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews/x", 404),
        ("GET", "/api/v1/watch/pods", 200),
        ("POST", "/api/v1/watch/pods", 405),
        ("GET", "/api/v1/watch/pods/x", 404),
        ("GET", "/api/v1/watch/componentstatuses", 404),
        ("GET", "/apis/example.com/v1/widgets", 200),
        ("HEAD", "/apis/example.com/v1/widgets", 200),
        ("POST", "/apis/example.com/v1/widgets", "text"),
        ("GET", "/apis/example.com/v1/widgets/x", "text"),
        ("PUT", "/apis/example.com/v1/namespaces/a/widgets", 400),
        ("OPTIONS", "/apis/example.com/v1/namespaces/a/widgets", 405),
        ("GET", "/apis/example.com/v1/namespaces/a/widgets/x/nosuch", 404),
    ],
)
def test_each_path_allows_its_methods_only(method: str, path: str, expected: int | str) -> None:
    assert code(method, path) == expected


def test_the_answer_for_an_unserved_resource_depends_on_the_group() -> None:
    assert isinstance(unserved_resource_error("apps"), StatusError)
    assert isinstance(unserved_resource_error("example.com"), NotServedError)
