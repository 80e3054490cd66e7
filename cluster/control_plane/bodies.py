"""Bodies read and written: JSON, the YAML that server-side apply and a few clients send, and the protobuf of typed ones.

A :class:`Body` keeps its text beside its value, since what is said of a body that is wrong quotes the text: the spelling of
numbers, members that stand twice, the first bytes.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import yaml

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.go_json import closely_read, syntax_error, whole_text
from wharfinger.cluster.control_plane.negotiation import Encoding
from wharfinger.cluster.control_plane.protobuf import decode_envelope
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonError, JsonValue, decode_json, encode_json
from wharfinger.formats.yaml_reader import YamlError, YamlLimits, read_first_yaml
from wharfinger.formats.yaml_writer import write_go_yaml

BODY_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of a request's body, as in the kube-apiserver."""
SUMMARY_BYTES: Final = 30
_YAML_LIMITS: Final = YamlLimits(max_bytes=BODY_LIMIT)


class BodyError(FormatError):
    """The text is none of its encoding; the message is what Go's readers say."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a client sent."""

    value: JsonValue
    data: bytes = b""
    """The text; empty where there was none."""
    encoding: Encoding = Encoding.JSON
    repeats: tuple[str, ...] = ()
    """What a strict YAML reader says: ``line 3: key "a" already set in map``."""

    @property
    def summary(self) -> str:
        """Its beginning, as complaints show it."""
        if not self.data:
            return "<empty>"
        head = self.data[:SUMMARY_BYTES]
        shown = head.decode(errors="replace") if self.data.startswith(b"{") else head.hex()
        return f"{shown} ..." if len(self.data) > SUMMARY_BYTES else shown

    def closely(self) -> JsonValue:
        """The value once more, with all that is lost in reading fast (:mod:`.go_json`); YAML has its members sorted."""
        if self.encoding is Encoding.YAML:
            return sorted_value(self.value)
        return closely_read(self.data) if self.data and self.encoding is Encoding.JSON else self.value


def too_large() -> status.StatusError:
    """413 of a body."""
    return status.StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT}")


def read_body(data: bytes, encoding: Encoding) -> Body:
    """A body as a value; JSON is tried first for YAML too, since it is what most clients send.

    Raises BodyError, and StatusError where it is too large.
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
        return Body(decode_json(whole_text(data), max_bytes=2 * BODY_LIMIT, what="body"), data)
    except (JsonError, ValueError, RecursionError) as error:
        raise BodyError("exceeded max depth") from error


def _read_yaml(data: bytes) -> Body:
    try:
        value, repeats = read_first_yaml(data, what="body", limits=_YAML_LIMITS)
    except YamlError as error:
        raise BodyError(yaml_complaint(error)) from error
    return Body(with_plain_numbers(value), data, Encoding.YAML, tuple(repeats))


def yaml_complaint(error: YamlError) -> str:
    """What go-yaml says: the same problems as libyaml's, with a way of its own to count lines."""
    cause = error.__cause__
    if not isinstance(cause, yaml.MarkedYAMLError) or not cause.problem:
        return f"yaml: {str(error).partition(': ')[2] or error}"
    line = 0
    if cause.problem_mark is not None and cause.problem_mark.line:
        line = cause.problem_mark.line + isinstance(cause, yaml.scanner.ScannerError)
    elif cause.context_mark is not None:
        line = cause.context_mark.line
    return f"yaml: line {line}: {cause.problem}" if line else f"yaml: {cause.problem}"


def with_plain_numbers(value: JsonValue) -> JsonValue:
    """With whole floats as integers, which is how they are written when YAML becomes JSON on the way."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {name: with_plain_numbers(item) for name, item in value.items()}
    return [with_plain_numbers(item) for item in value] if isinstance(value, list) else value


def encode(value: JsonValue, encoding: Encoding) -> bytes:
    """A value as a body; one line of JSON ends with a line feed, as curl users like it.

    YAML has its keys sorted, as the kube-apiserver's. What it cannot say as Kubernetes reads it (an integer beyond 64 bits)
    is said in JSON, which is YAML too.
    """
    if encoding is Encoding.YAML:
        with suppress(YamlError):
            return write_go_yaml(sorted_value(value)).encode()
    return encode_json(value) + b"\n"


def sorted_value(value: JsonValue) -> JsonValue:
    """A value with the members of all its objects sorted, as Go writes maps."""
    if isinstance(value, dict):
        return {key: sorted_value(value[key]) for key in sorted(value)}
    return [sorted_value(item) for item in value] if isinstance(value, list) else value


def as_body(value: "JsonValue | Body") -> Body:
    """A body, or a value as one that has no text."""
    return value if isinstance(value, Body) else Body(value)


def decode(data: bytes, encoding: Encoding) -> JsonValue:
    """A body as a value and nothing more. Raises StatusError."""
    try:
        return read_body(data, encoding).value
    except BodyError as error:
        raise status.bad_request(str(error)) from error
