import pytest

from tests.debug.server.test_routes import get
from wharfinger.debug.server.answers import Route, listing_text, text_answer
from wharfinger.httpd.messages import Request, Response
from wharfinger.runtime.inspector import Inspector


async def answer(_inspector: Inspector, _request: Request) -> Response:
    return text_answer(200, "x")


def test_routes_accept_either_reading_methods_or_post() -> None:
    assert Route(answer).methods == ("GET", "HEAD")
    assert Route(answer, post=True).methods == ("POST",)


@pytest.mark.parametrize(("output", "status"), [("json", 200), ("yaml", 200), ("xml", 400)])
async def test_known_formats_are_accepted_and_others_refused(output: str, status: int) -> None:
    assert (await get("/api/v1/daemon", {"output": output})).status == status


def test_listings_are_sorted_and_joined() -> None:
    assert listing_text(frozenset({"b", "a"})) == "a, b"
    assert listing_text(()) == "none"
