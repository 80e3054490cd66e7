"""Parsing of a watch's bytes into events: one JSON document per line (API concepts, "Efficient detection of changes").

Pure. A chunk is what one read from the network returned, so a line may span many chunks. The length of a line is bounded: an
API server stores no object over 1.5 MiB by default (etcd's request limit), so a line over :data:`MAX_LINE_BYTES` is not a watch
event.
"""

from typing import Final

import msgspec

from wharfinger.cluster.api.client import WatchEvent
from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.cluster.api.http_errors import error_of_status
from wharfinger.cluster.api.raw_object import RawEvent, read_bookmark, read_raw_object
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import ShapeError, as_object
from wharfinger.kube.resource import ResourceType

MAX_LINE_BYTES: Final = 16 * 1024 * 1024


class WatchLineError(UnreachableError):
    """The stream is not a watch: a line is over the limit, is not an event, or is incomplete.

    The error is transient, because another attempt may reach the right server.
    """


class LineSplitter:
    """A splitter of a stream of chunks into lines; it keeps at most ``max_line`` bytes of an unfinished line."""

    def __init__(self, what: str, max_line: int = MAX_LINE_BYTES) -> None:
        self._what = what
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._held = 0

    @property
    def held(self) -> int:
        """Return the number of bytes of an unfinished line."""
        return self._held

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that are complete now, without line ends and without empty lines. Raises WatchLineError."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._parts:
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts.clear()
            self._held = 0
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
        if self._held > self._max_line or any(len(line) > self._max_line for line in lines):
            raise WatchLineError(f"{self._what}: a line of the stream is over {self._max_line} bytes")
        return [stripped for line in lines if (stripped := line.strip())]

    def finish(self) -> None:
        """End the stream. Raises WatchLineError if it ended inside a line."""
        if self._held:
            raise WatchLineError(f"{self._what}: the stream ended inside an event, after {self._held} bytes of it")


def decode_event(line: bytes, what: str) -> WatchEvent:
    """Return one line as an event. An ERROR event is raised as an exception: as GoneError if its code is 410, otherwise as the
    ApiError of its Status.
    """
    try:
        raw: object = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WatchLineError(f"{what}: not a watch event: {error}") from error
    kind, obj = (raw.get("type"), raw.get("object")) if isinstance(raw, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(obj, dict):
        raise WatchLineError(f"{what}: not a watch event: it needs a type and an object")
    if kind == "ERROR":
        raise error_of_status(obj, what)
    try:
        event_type = WatchType(kind)
    except ValueError as error:
        raise WatchLineError(f"{what}: unknown event type {kind[:40]!r}") from error
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("resourceVersion"), str):
        raise WatchLineError(f"{what}: {kind} event without metadata.resourceVersion")
    if event_type is not WatchType.BOOKMARK and not isinstance(metadata.get("name"), str):
        raise WatchLineError(f"{what}: {kind} event without metadata.name")
    return WatchEvent(event_type, obj)


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_LINE: Final = msgspec.json.Decoder(_Line)


def decode_raw_event(line: bytes, resource: ResourceType, what: str) -> RawEvent:
    """Decode one line of a watch as `decode_event` does, but without parsing the object of the event."""
    try:
        event = _LINE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WatchLineError(f"{what}: not a watch event: {error}") from error
    event_type = _TYPES.get(event.type)
    text = bytes(event.object)
    try:
        if event.type == "ERROR":
            raise error_of_status(as_object(msgspec.json.decode(text), "its object"), what)
        if event_type is None:
            raise WatchLineError(f"{what}: unknown event type {event.type[:40]!r}")
        obj = (read_bookmark if event_type is WatchType.BOOKMARK else read_raw_object)(text, resource)
    except (ShapeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WatchLineError(f"{what}: {event.type} event: {error}") from error
    if not obj.resource_version:
        raise WatchLineError(f"{what}: {event_type} event without metadata.resourceVersion")
    return RawEvent(event_type, obj)


_TYPES: Final = {event_type.value: event_type for event_type in WatchType}
