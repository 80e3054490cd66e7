"""The table of documents that the socket serves. test_routes.py tests the answers of all routes, including these."""

from wharfinger.debug.server.document_routes import DOCUMENT_ROUTES, metrics_answer


def test_documents_can_be_watched_and_questions_cannot() -> None:
    followed = {path for path, route in DOCUMENT_ROUTES.items() if route.watch}
    assert {"/api/v1/packages/dump", "/api/v1/why", "/api/v1/statistics"} <= followed
    assert all("output" in DOCUMENT_ROUTES[path].parameters for path in followed)
    assert not followed & {"/healthz", "/metrics", "/api/v1/history"}


def test_lone_surrogates_in_metrics_are_replaced() -> None:
    assert metrics_answer("a \ud800").body == b"a ?"
