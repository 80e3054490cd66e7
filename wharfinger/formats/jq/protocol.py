"""The protocol between the daemon and a jq worker over the worker's stdin and stdout: frames, requests, answers.

A frame is a length in four bytes (big-endian), then that many bytes of JSON. A request is ``{"program": …}``, with ``"input"``
if the program is also to be run after compiling. Its answer is ``{"results": […]}``, or ``{"error": …, "kind": …}``. Each request
gets one answer, in order.

The input of a request must be canonical JSON, unless the request has ``"whole": true``. Then the input may be any JSON text, and
the answer is ``{"text": …}``: all results as one value, in canonical form. The worker converts the input and the results into
canonical form, so that the caller has to parse neither.

The worker runs foreign programs, so its answers are foreign data too: their size is limited before they are read, and
an invalid answer raises a FormatError. Pure. The input and the results are passed on as JSON text, so that no number changes
on the way.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from wharfinger.formats.errors import FormatError
from wharfinger.formats.frames import MAX_FRAME_BYTES, FrameError
from wharfinger.formats.json.value import JsonValue, canonical_json, decode_json, find_list, need_str

_WHOLE: Final = 2.0**63
"""The magnitude from which a float without a fraction is not written as an integer. Go does not write it as one, either."""


class JqProtocolError(FrameError):
    """A message from the worker or from the daemon violates the protocol, or data cannot be sent by the protocol."""


class RefusalKind(enum.Enum):
    """The reason why a filter gave no results."""

    COMPILE = "compile"
    RUN = "run"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class JqRequest:
    """A program, and the JSON ``text`` on which to run it. If ``text`` is None, the program is only compiled.

    With ``whole``, the text need not be canonical, and the answer is a JqText.
    """

    program: str
    text: bytes | None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class JqResults:
    """The results of a program, in order."""

    values: tuple[JsonValue, ...]


@dataclass(frozen=True, slots=True)
class JqText:
    """All results of a program as one canonical JSON text: ``null`` for no result, a single result itself, several results as a
    list.
    """

    text: bytes


@dataclass(frozen=True, slots=True)
class JqRefusal:
    """The reason why there are no results. If the program does not compile, ``message`` is jq's own message.

    No message quotes the input.
    """

    kind: RefusalKind
    message: str


JqAnswer: TypeAlias = JqResults | JqText | JqRefusal


class _Request(msgspec.Struct):
    program: str
    input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    whole: bool | msgspec.UnsetType = msgspec.UNSET


class _Text(msgspec.Struct):
    text: msgspec.Raw


_TEXT: Final = msgspec.json.Decoder(msgspec.Raw)
"""A decoder that checks whether a text is JSON. It does not check the content of strings, and it builds no values."""


def encode_request(request: JqRequest) -> bytes:
    """Return the payload of a request.

    Raises JqProtocolError for a program with a lone surrogate, and for a text that is not JSON.
    """
    if request.text is not None:
        try:
            if not request.text.isascii():
                request.text.decode()
            _TEXT.decode(request.text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise JqProtocolError(f"jq: the input is not JSON: {error}") from error
    text = msgspec.UNSET if request.text is None else msgspec.Raw(request.text)
    try:
        return msgspec.json.encode(_Request(request.program, text, request.whole or msgspec.UNSET))
    except UnicodeEncodeError as error:
        raise JqProtocolError("jq: the program has a lone surrogate in it") from error


def decode_request(payload: bytes) -> JqRequest:
    """Read a request; the input is not parsed. Raises JqProtocolError."""
    try:
        request = msgspec.json.decode(payload, type=_Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JqProtocolError(f"jq: not a request: {error}") from error
    text = None if isinstance(request.input, msgspec.UnsetType) else bytes(request.input)
    return JqRequest(request.program, text, request.whole is True)


def encode_results(texts: Iterable[str]) -> bytes:
    """Return the payload of results, each given as JSON text."""
    return b'{"results":[' + ",".join(texts).encode() + b"]}"


def encode_text(texts: Sequence[str]) -> bytes:
    """Return the payload that combines results, each given as JSON text, into one value.

    Raises FormatError if the results have no canonical form.
    """
    joined = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]" if texts else "null"
    value = decode_json(joined.encode(), max_bytes=MAX_FRAME_BYTES, what="its result")
    return b'{"text":' + canonical_json(value) + b"}"


def encode_refusal(refusal: JqRefusal) -> bytes:
    """Return the payload of a refusal. Lone surrogates in its message are replaced."""
    message = refusal.message.encode(errors="replace").decode()
    return msgspec.json.encode({"error": message, "kind": refusal.kind.value})


def decode_answer(payload: bytes) -> JqAnswer:
    """Read an answer. If the answer is a JqText, its text is checked to be JSON, but is not decoded.

    Raises JqProtocolError for data that are not an answer. Raises JsonError if the results are not JSON or exceed the limits.
    """
    if payload.startswith(b'{"text":'):
        try:
            return JqText(bytes(msgspec.json.decode(payload, type=_Text).text))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise JqProtocolError(f"jq: not an answer: {error}") from error
    answer = decode_json(payload, max_bytes=len(payload), what="jq's answer")
    if isinstance(answer, dict) and isinstance(answer.get("results"), list):
        return JqResults(tuple(map(_with_whole_numbers, find_list(answer, "results"))))
    try:
        return JqRefusal(RefusalKind(need_str(answer, "kind")), need_str(answer, "error"))
    except (FormatError, ValueError) as error:
        raise JqProtocolError(f"jq: not an answer: {error}") from error


def _with_whole_numbers(value: JsonValue) -> JsonValue:
    """Return the value with whole floats as integers, as Go writes them; jq may write ``3.0`` or ``1E+17``."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _WHOLE else value
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    return value
