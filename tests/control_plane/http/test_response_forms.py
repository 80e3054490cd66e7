import gzip
import json

import pytest

from wharfinger.control_plane.http.response_forms import common_headers, document_response, for_people
from wharfinger.control_plane.wire.negotiation import Encoding, Representation
from wharfinger.formats.json.value import JsonObject
from wharfinger.httpd.messages import Request

JSON = Representation(Encoding.JSON)


def asked(query: dict[str, tuple[str, ...]] | None = None, **headers: str) -> Request:
    return Request("GET", "/", query or {}, {name.replace("_", "-"): value for name, value in headers.items()}, b"")


@pytest.mark.parametrize(
    ("request_", "pretty"),
    [
        (asked(), False),
        (asked({"pretty": ("1",)}), True),
        (asked({"pretty": ("true", "false")}), True),
        (asked({"pretty": ("yes",)}, user_agent="curl/8"), False),
        (asked({"pretty": ("",)}, user_agent="curl/8"), True),
        (asked(user_agent="Mozilla/5.0 (X11)"), True),
        (asked(user_agent="kubectl/v1.36"), False),
    ],
)
def test_browsers_and_pretty_requests_get_indented_json(request_: Request, pretty: bool) -> None:
    assert for_people(request_) is pretty


def test_json_is_indented_as_in_go() -> None:
    answer = document_response(asked({"pretty": ("1",)}), {"a": ["<é>"], "b": {}, "c": []}, JSON)

    assert answer.body.decode() == '{\n  "a": [\n    "\\u003cé\\u003e"\n  ],\n  "b": {},\n  "c": []\n}'


def test_characters_of_html_are_escaped_in_json_but_not_in_yaml() -> None:
    assert document_response(asked(), {"a": "1 < 2 & 3"}, JSON).body == b'{"a":"1 \\u003c 2 \\u0026 3"}\n'
    assert document_response(asked(), {"a": "<"}, Representation(Encoding.YAML)).body == b"a: <\n"


def test_long_responses_are_compressed_for_clients_that_accept_it() -> None:
    document: JsonObject = {"a": "x" * 200_000}

    answer = document_response(asked(accept_encoding="deflate, gzip"), document, JSON)

    assert answer.headers == (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))
    assert json.loads(gzip.decompress(answer.body)) == document
    assert document_response(asked(accept_encoding="gzip;q=1"), document, JSON).headers == ()
    assert document_response(asked(accept_encoding="gzip"), {"a": "x"}, JSON).headers == ()


def test_every_response_has_an_audit_id_and_must_not_be_cached() -> None:
    headers = dict(common_headers(asked(audit_id="a"), (("warning", "w"),)))
    assert headers == {"audit-id": "a", "cache-control": "no-cache, private", "warning": "w"}

    headers = dict(common_headers(asked(audit_id="a" * 100), (("cache-control", "public"),)))
    assert len(headers["audit-id"]) == 36
    assert headers["cache-control"] == "public"
