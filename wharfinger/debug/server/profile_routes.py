"""The route that takes a profile of the daemon (:mod:`wharfinger.debug.profile`).

The answer is a stream, although it has only one chunk. While a stream is open, the server notices if the client disconnects or
the daemon shuts down, and then stops the sampling. A profile covers the whole process, so at most one profile is taken at a time.
"""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

from wharfinger.debug.addresses import MAX_SHOWN, PROFILE, SECONDS, UNAVAILABLE
from wharfinger.debug.encoding.profile import PROFILE_FORMATS, ProfileFormat, profile_text
from wharfinger.debug.printing.output import MEDIA_TYPES
from wharfinger.debug.profile.profile import DEFAULT_SECONDS, MAX_SECONDS, read_seconds
from wharfinger.debug.profile.sampler import Sampler
from wharfinger.debug.server.answers import StreamedRoute, listing_text, text_answer
from wharfinger.httpd.messages import Answer, CutError, Request, StreamingResponse
from wharfinger.runtime.inspector import Inspector

BUSY: Final = "another profile is being taken; ask again when it is complete"
_TEXT: Final = "text/plain; charset=utf-8"
_MEDIA_TYPES: Final[dict[ProfileFormat, str]] = {
    "json": MEDIA_TYPES["json"],
    "yaml": MEDIA_TYPES["yaml"],
    "speedscope": MEDIA_TYPES["json"],
    "collapsed": _TEXT,
    "text": _TEXT,
}
_REQUESTED: Final = threading.Lock()
"""A lock that is held while a request for a profile is open."""
_WORKING: Final = threading.Lock()
"""A lock that the thread holds while it takes a profile, so that only one profile is taken at a time. The thread may hold it
longer than the request is open: if the client disconnects, the thread still completes a formatting that has begun.
"""


async def _profile(_inspector: Inspector, request: Request) -> Answer:
    written = request.arg(SECONDS, f"{DEFAULT_SECONDS:g}")
    seconds = read_seconds(written)
    if seconds is None:
        return text_answer(400, f"{SECONDS}: {written[:MAX_SHOWN]}: expected a number over 0 and up to {MAX_SECONDS:g}")
    asked = request.arg("output", "json")
    output = next((known for known in PROFILE_FORMATS if known == asked), None)
    if output is None:
        return text_answer(400, f"unknown output: {asked[:MAX_SHOWN]}; known: {listing_text(PROFILE_FORMATS)}")
    if _REQUESTED.locked() or _WORKING.locked():
        return text_answer(503, f"{UNAVAILABLE}{BUSY}")
    return StreamingResponse(200, partial(_sampled, seconds, output), _MEDIA_TYPES[output])


@asynccontextmanager
async def _sampled(seconds: float, output: ProfileFormat) -> AsyncIterator[AsyncIterator[bytes]]:
    if not _REQUESTED.acquire(blocking=False):
        raise CutError("another profile was started first")
    sampler = Sampler(seconds)
    try:
        yield _Document(sampler, output)
    finally:
        sampler.stop()
        _REQUESTED.release()


class _Document:
    """The only chunk of the answer: the complete profile."""

    def __init__(self, sampler: Sampler, output: ProfileFormat) -> None:
        self._sampler = sampler
        self._output = output
        self._is_over = False

    def __aiter__(self) -> "_Document":
        return self

    async def __anext__(self) -> bytes:
        """Take the profile in a thread. On cancellation, the thread is abandoned, and ends at its next sample."""
        if self._is_over:
            raise StopAsyncIteration
        self._is_over = True
        # With its own limiter, this thread starts even if all other worker threads are in use.
        return await trio.to_thread.run_sync(self._take, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))

    def _take(self) -> bytes:
        with _WORKING:
            profile = self._sampler.run()
            return b"" if self._sampler.is_stopped else profile_text(profile, self._output).encode("utf-8", "replace")


PROFILE_ROUTES: Final[dict[str, StreamedRoute]] = {PROFILE: StreamedRoute(_profile, frozenset({SECONDS, "output"}))}
