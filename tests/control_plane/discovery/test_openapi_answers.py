import gzip

import pytest

from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.discovery.openapi import VERSION_2_PROTOBUF_ASKED, OpenApi
from wharfinger.control_plane.discovery.openapi_answers import version_2, version_3
from wharfinger.httpd.messages import Request, Response

API = OpenApi(Catalog())


def ask(name: str | None, *, hash: str = "", **headers: str) -> Response:  # noqa: A002 - the query's word
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    request = Request("GET", "/", {"hash": (hash,)} if hash else {}, named, b"")
    return version_2(API, request) if name is None else version_3(API, name, request)


def tag_of(response: Response) -> str:
    return dict(response.headers)["etag"]


def test_a_document_with_a_known_tag_is_not_sent_again() -> None:
    first = ask("apis/apps/v1")

    again = ask("apis/apps/v1", if_none_match=tag_of(first))

    assert (again.status, again.body) == (304, b"")
    assert ask(None, if_none_match=tag_of(ask(None))).status == 304


def test_an_outdated_hash_redirects_to_the_current_document() -> None:
    current = tag_of(ask("apis/apps/v1")).strip('"')

    moved = ask("apis/apps/v1", hash="OLD")
    kept = ask("apis/apps/v1", hash=current)

    assert moved.status == 301
    assert dict(moved.headers)["location"] == f"/openapi/v3/apis/apps/v1?hash={current}"
    assert dict(kept.headers)["cache-control"] == "public, immutable"


@pytest.mark.parametrize(
    ("name", "accept", "status"),
    [
        (None, "application/json", 200),
        (None, VERSION_2_PROTOBUF_ASKED, 200),
        (None, "text/html", 406),
        (None, "text/html, */*", 200),
        ("", "application/json", 200),
        ("api/v1", "text/html", 406),
        ("nosuch", "application/json", 404),
    ],
)
def test_unsupported_media_types_are_not_acceptable(name: str | None, accept: str, status: int) -> None:
    assert ask(name, accept=accept).status == status


def test_version_2_is_compressed_on_request() -> None:
    plain, small = ask(None), ask(None, accept_encoding="gzip")

    assert dict(small.headers)["content-encoding"] == "gzip"
    assert gzip.decompress(small.body) == plain.body
