"""The shape of a route of the debug socket, and of its answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from wharfinger.debug.printing.output import MEDIA_TYPES, OUTPUT_FORMATS, render
from wharfinger.formats.json.value import JsonObject
from wharfinger.httpd.messages import Answer, Request, Response
from wharfinger.runtime.inspector import Inspector

_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Route:
    """One path of the debug server: its handler, and the query parameters that it accepts."""

    answer: Callable[[Inspector, Request], Awaitable[Response]]
    parameters: frozenset[str] = frozenset()
    post: bool = False
    """True if the path accepts POST only."""
    watch: bool = False
    """True if the path accepts ``watch=1``."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the path accepts."""
        return ("POST",) if self.post else ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class StreamedRoute:
    """A path whose answer may be streamed. It accepts GET and HEAD only, and no ``watch=1``."""

    answer: Callable[[Inspector, Request], Awaitable[Answer]]
    parameters: frozenset[str] = frozenset()
    methods: tuple[str, ...] = ("GET", "HEAD")
    post: bool = False
    watch: bool = False


def document_answer(request: Request, value: JsonObject | None) -> Response:
    """Return a document in the format that the request names; a refusal if there is no such format."""
    asked = request.arg("output", "json")
    output = next((known for known in OUTPUT_FORMATS if known == asked), None)
    if output is None:
        return text_answer(400, f"unknown output: {asked}; known: {listing_text(OUTPUT_FORMATS)}")
    return Response(200, render(value, output).encode(), MEDIA_TYPES[output])


def text_answer(status: int, text: str) -> Response:
    """Return a response with a line of plain text."""
    return Response(status, text.encode("utf-8", "replace") + b"\n", _TEXT)


def listing_text(names: frozenset[str] | tuple[str, ...]) -> str:
    """Return names as a sorted list for the text of a refusal; ``none`` if there are no names."""
    return ", ".join(sorted(names)) or "none"
