"""The server with hostile input: mutated requests, sent as a whole and in pieces.

For any input, the server sends only valid responses and then closes the connection, and the handler gets only well-formed
requests. The division of the input into pieces changes nothing, so it cannot be used for request smuggling.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.httpd.raw import GET, Recorder, exchange
from tests.scale import scaled
from wharfinger.httpd.messages import Request

SEEDS = (
    GET % b"/a?b=c&d=%20",
    b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world",
    b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;e=f\r\n yu\r\n0\r\nT: t\r\n\r\n",
    b"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"GET http://a/b HTTP/1.1\r\nHost: a\r\nX: folded\r\n here\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n",
)
TEXTS = (
    *("\r\n", "\n", "\r", "\x00", " ", "\t", ":", ";", "%", "\xff", "0", "-1", "chunked", ", ", "\r\n\r\n", "HTTP/1.1"),
    *("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: b\r\n", "Connection: close\r\n"),
    *("Expect: 100-continue\r\n", "a" * 3000, "9" * 25),
)
PIECES = tuple(text.encode("latin-1") for text in TEXTS)


def mutate(chance: random.Random) -> bytes:
    """Return one to three requests, with some bytes removed, doubled, changed or inserted."""
    data = bytearray(b"".join(chance.choice(SEEDS) for _ in range(chance.randint(1, 3))))
    for _ in range(chance.randint(0, 4)):
        at = chance.randrange(len(data) + 1)
        upto = min(len(data), at + chance.choice((1, 2, 8, 40)))
        match chance.randrange(5):
            case 0:
                del data[at:upto]
            case 1:
                data[at:at] = data[at:upto]
            case 2:
                data[at:upto] = chance.randbytes(upto - at)
            case 3:
                data[at:at] = chance.choice(PIECES)
            case _:
                data[at:upto] = chance.choice(PIECES)
    return bytes(data)


async def check(data: bytes, fragment: int) -> list[Request]:
    handler = Recorder()
    # The client does not know which answer belongs to a HEAD request and so has no body. Therefore no HEAD request is sent.
    answers = await exchange(data.replace(b"HEAD", b"GETT"), handler, fragment=fragment)
    assert all(answer.whole for answer in answers)
    assert all(answer.status in {200, 400, 413, 417, 431, 501, 505} for answer in answers)
    assert [answer.status for answer in answers].count(200) == len(handler.seen)
    assert all(answer.status == 200 for answer in answers[:-1])
    for request in handler.seen:
        assert request.path == "*" or request.path.startswith("/")
        assert len(request.body) <= 1000
        assert all(name == name.lower() for name in request.headers)
    return handler.seen


@pytest.mark.slow
async def test_mutated_requests_are_answered_or_refused() -> None:
    chance = random.Random(1)  # noqa: S311 - the same mutations every time
    served = refused = 0
    for _ in range(scaled(100_000, 800)):
        seen = await check(mutate(chance), 0)
        served += len(seen)
        refused += not seen
    assert served > 500  # enough mutated requests are still valid, so the code behind the parser is tested, too
    assert refused > 100


@pytest.mark.slow
async def test_chunk_boundaries_do_not_change_the_result() -> None:
    chance = random.Random(2)  # noqa: S311 - the same mutations every time
    for _ in range(scaled(5_000, 150)):
        data = mutate(chance)
        whole = await check(data, 0)
        assert await check(data, chance.choice((1, 7))) == whole


@given(st.binary(max_size=200), st.sampled_from(SEEDS))
async def test_any_bytes_around_a_request_are_answered_or_refused(junk: bytes, seed: bytes) -> None:
    await check(seed + junk, 0)
    await check(junk + seed, 0)
