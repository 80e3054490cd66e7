"""The reading and writing of bodies: JSON, the YAML that server-side apply and a few clients send, and the protobuf of typed
clients.

A :class:`Body` keeps its text together with its value, because errors about a body quote its text: the spelling of numbers,
duplicate members, the first bytes.
"""

import codecs
import re
from contextlib import suppress
from decimal import Decimal
from typing import Final

import msgspec
import yaml

from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import sorted_members
from wharfinger.control_plane.wire.go_json import closely_read, large_number, syntax_error, whole_text
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.protobuf import decode_envelope
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonError, JsonValue, decode_json, encode_json
from wharfinger.formats.yaml.reader import YamlError, YamlLimits, read_first_yaml
from wharfinger.formats.yaml.writer import write_go_yaml

BODY_LIMIT: Final = 3 * 1024 * 1024
"""The maximum size of a request's body in bytes, as in the kube-apiserver."""
SUMMARY_BYTES: Final = 30
_YAML_LIMITS: Final = YamlLimits(max_bytes=BODY_LIMIT)
_INT64: Final = range(-(2**63), 2**63)
_EXACT: Final = 2**53
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_IN_YAML: Final = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_A_NUMBER: Final = re.compile(r"([+-]?\.(?:inf|nan)) has no JSON form", re.IGNORECASE)
_GO_NAMES: Final = {".inf": "+Inf", "+.inf": "+Inf", "-.inf": "-Inf", ".nan": "NaN"}
_CONTROL: Final = "control characters are not allowed"


class BodyError(FormatError):
    """The body is not valid in the declared encoding. For JSON and YAML, the message is that of Go's parsers."""


class LargeNumberError(BodyError):
    """A number is too large for a float64 of Go; the message does not depend on the type of the object."""


class Body(msgspec.Struct, frozen=True):
    """The body that a client sent."""

    value: JsonValue
    data: bytes = b""
    """The bytes as received; empty if there are none, for example for the result of a patch."""
    encoding: Encoding = Encoding.JSON
    repeats: tuple[str, ...] = ()
    """The errors of a strict YAML reader about duplicate keys: ``line 3: key "a" already set in map``."""

    @property
    def summary(self) -> str:
        """Return the beginning of the body, as error messages show it."""
        if not self.data:
            return "<empty>"
        head = self.data[:SUMMARY_BYTES]
        shown = head.decode(errors="replace") if self.data.startswith(b"{") else head.hex()
        return f"{shown} ..." if len(self.data) > SUMMARY_BYTES else shown

    def closely(self) -> JsonValue:
        """Return the value of a JSON body with the details that fast parsing drops (``go_json``).

        The members of a YAML body are sorted. The value of any other body is returned as it is.
        """
        if self.encoding is Encoding.YAML:
            return sorted_members(self.value)
        return closely_read(self.data) if self.data and self.encoding is Encoding.JSON else self.value


def too_large() -> status.StatusError:
    """Return the 413 for a body that is too large."""
    return status.StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT}")


def read_body(data: bytes, encoding: Encoding) -> Body:
    """Read a body. Raises BodyError if the body is not valid in its encoding, and StatusError (413) if it is larger than
    :data:`BODY_LIMIT`.
    """
    if len(data) > BODY_LIMIT:
        raise too_large()
    if encoding is Encoding.PROTOBUF:
        try:
            return Body(decode_envelope(data), data, encoding)
        except FormatError as error:
            raise BodyError(f"protobuf: {error}") from error
    if encoding is Encoding.YAML:
        return _read_yaml(data)
    with suppress(JsonError):
        return Body(decode_json(data, max_bytes=BODY_LIMIT, what="body"), data)
    if complaint := syntax_error(data):
        raise BodyError(complaint)
    try:
        return Body(decode_json(whole_text(data), max_bytes=3 * BODY_LIMIT, what="body"), data)
    except (JsonError, ValueError, RecursionError) as error:
        if number := large_number(data):
            raise _too_large_a_number(number) from error
        raise BodyError("exceeded max depth") from error


def _too_large_a_number(text: str) -> LargeNumberError:
    return LargeNumberError(f"json: cannot unmarshal number {text} into Go value of type float64")


def _read_yaml(data: bytes) -> Body:
    text = data
    if data.startswith(_UTF_16):
        with suppress(UnicodeDecodeError):
            text = data.decode("utf-16").encode()
    try:
        value, repeats = read_first_yaml(text, what="body", limits=_YAML_LIMITS)
    except YamlError as error:
        raise BodyError(yaml_complaint(error)) from error
    return Body(with_plain_numbers(value), data, Encoding.YAML, tuple(repeats))


def yaml_complaint(error: YamlError) -> str:
    """Return go-yaml's message for an error that libyaml reports. The two libraries count lines differently."""
    cause = error.__cause__
    if isinstance(cause, UnicodeDecodeError) and cause.object:
        return f"yaml: {_utf8_complaint(cause.object, cause.start)}"
    if found := _NOT_A_NUMBER.search(str(error)):
        return f"json: unsupported value: {_GO_NAMES[found[1].lower()]}"
    if isinstance(cause, yaml.reader.ReaderError):
        return f"yaml: {_CONTROL}"
    if not isinstance(cause, yaml.MarkedYAMLError) or not cause.problem:
        return f"yaml: {str(error).partition(': ')[2] or error}"
    line = 0
    if cause.problem_mark is not None and cause.problem_mark.line:
        line = cause.problem_mark.line + isinstance(cause, yaml.scanner.ScannerError)
    elif cause.context_mark is not None:
        line = cause.context_mark.line
    return f"yaml: line {line}: {cause.problem}" if line else f"yaml: {cause.problem}"


def _utf8_complaint(data: bytes, at: int) -> str:
    """Return go-yaml's message about the byte at ``at``, the first byte that is not UTF-8.

    If a character before it is invalid in YAML, return the message about that character.
    """
    if _NOT_IN_YAML.search(data[:at].decode(errors="replace")):
        return _CONTROL
    first = data[at]
    width = 2 if first & 0xE0 == 0xC0 else 3 if first & 0xF0 == 0xE0 else 4 if first & 0xF8 == 0xF0 else 0
    octets = data[at : at + width]
    if not width:
        return "invalid leading UTF-8 octet"
    if len(octets) < width:
        return "incomplete UTF-8 octet sequence"
    if any(octet & 0xC0 != 0x80 for octet in octets[1:]):
        return "invalid trailing UTF-8 octet"
    overlong = {2: first < 0xC2, 3: octets < b"\xe0\xa0", 4: octets < b"\xf0\x90"}[width]
    return "invalid length of a UTF-8 sequence" if overlong else "invalid Unicode character"


def with_plain_numbers(value: JsonValue) -> JsonValue:
    """Return the value with numbers as Go writes them: whole floats as integers, integers beyond 64 bits as floats.

    The spelling of a number is lost: ``1e2`` and ``100.0`` become 100. Raises LargeNumberError.
    """
    if type(value) is str:  # the most frequent type
        return value
    if isinstance(value, dict):
        return {name: with_plain_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [with_plain_numbers(item) for item in value]
    return _plain_number(value) if isinstance(value, int | float) else value


def _plain_number(value: float) -> float:
    if (type(value) is int and value in _INT64) or isinstance(value, bool):
        return value
    try:
        number = float(value)
    except OverflowError as error:
        raise _too_large_a_number(str(value)) from error
    if not number.is_integer() or abs(number) >= 1e21:
        return number
    # As in Go, a large integer has the shortest digits that identify the float, followed by zeros.
    return int(Decimal(repr(number))) if abs(number) > _EXACT else int(number)


def encode(value: JsonValue, encoding: Encoding) -> bytes:
    """Return a value as a body.

    JSON is one line that ends with a line feed, for users of curl. YAML has sorted keys, as in kube-apiserver. A value that
    would change if Kubernetes read it from YAML (an integer beyond 64 bits) is written as JSON, which is also YAML.
    """
    if encoding is Encoding.YAML:
        with suppress(YamlError):
            return write_go_yaml(sorted_members(value)).encode()
    return encode_json(value) + b"\n"


def as_body(value: "JsonValue | Body") -> Body:
    """Return the argument if it is a Body; otherwise a Body with this value and without text."""
    return value if isinstance(value, Body) else Body(value)


def decode(data: bytes, encoding: Encoding) -> JsonValue:
    """Return a body as a plain value. Raises StatusError."""
    try:
        return read_body(data, encoding).value
    except BodyError as error:
        raise status.bad_request(str(error)) from error
