"""The options of DELETE requests, in the body and in the query."""

import pytest

from wharfinger.control_plane.verbs.deletion_requests import delete_options
from wharfinger.control_plane.verbs.options import DeleteOptions
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.httpd.messages import Request


def asked(
    body: bytes, query: dict[str, tuple[str, ...]] | None = None, content_type: str = "application/json"
) -> Request:
    return Request("DELETE", "/x", query or {}, {"content-type": content_type}, body)


def test_query_parameters_are_ignored_if_a_body_is_given() -> None:
    assert delete_options(asked(b"", {"orphanDependents": ("true",)})) == DeleteOptions(propagation="Orphan")
    assert delete_options(asked(b"{}", {"dryRun": ("All",)})) == DeleteOptions()
    assert delete_options(asked(b"null")) == DeleteOptions()
    assert delete_options(asked(b"dryRun: [All]", content_type="application/yaml")) == DeleteOptions(dry_run=True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (b"[]", "couldn't get version/kind; json parse error: json: cannot unmarshal array"),
        (b'{"preconditions":5}', "number into Go struct field DeleteOptions.preconditions of type v1.Preconditions"),
    ],
)
def test_invalid_bodies_are_refused(body: bytes, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        delete_options(asked(body))
    assert caught.value.code == 400
    assert words in caught.value.message
