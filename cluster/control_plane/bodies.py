"""Bodies read and written: JSON, the YAML that server-side apply and a few clients send, and the protobuf of typed ones."""

from contextlib import suppress
from typing import Final

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.negotiation import Encoding
from wharfinger.cluster.control_plane.protobuf import decode_envelope
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonError, JsonValue, decode_json, encode_json
from wharfinger.formats.yaml_reader import YamlError, YamlLimits, read_yaml
from wharfinger.formats.yaml_writer import write_yaml

BODY_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of a request's body, as in the kube-apiserver."""
_YAML_LIMITS: Final = YamlLimits(max_bytes=BODY_LIMIT)
_JSON_SPACE: Final = " \t\r\n"
"""White space of RFC 8259 §2, and no other character that Python takes for some."""


def decode(data: bytes, encoding: Encoding) -> JsonValue:
    """A body as a value; JSON is tried first for YAML too, since that is what most clients send. Raises StatusError."""
    if len(data) > BODY_LIMIT:
        message = f"Request entity too large: limit is {BODY_LIMIT}"
        raise status.StatusError(413, "RequestEntityTooLarge", message)
    if encoding is Encoding.PROTOBUF:
        try:
            return decode_envelope(data)
        except FormatError as error:
            raise status.bad_request(f"protobuf: {error}") from error
    try:
        return decode_json(data, max_bytes=BODY_LIMIT, what="body")
    except JsonError as error:
        if encoding is Encoding.JSON:
            raise status.bad_request(json_complaint(data)) from error
    try:
        return read_yaml(data, what="error decoding YAML", limits=_YAML_LIMITS)
    except YamlError as error:
        raise status.bad_request(str(error)) from error


def json_complaint(data: bytes) -> str:
    """What encoding/json says of the first thing that is wrong, as far as clients rely on it."""
    if not data.strip(_JSON_SPACE.encode()):
        return "json parse error: unexpected end of JSON input (<empty>)"
    text = data.decode(errors="replace").lstrip(_JSON_SPACE)
    shown = f"({data[:20].hex()})"
    for literal in ("null", "true", "false"):
        if text[0] == literal[0] and not text.startswith(literal):
            at = next(index for index, char in enumerate(literal) if text[index : index + 1] != char)
            if at < len(text):
                wanted = f"in literal {literal} (expecting '{literal[at]}')"
                return f"json parse error: invalid character '{text[at]}' {wanted} {shown}"
    if text[0] not in '{["-0123456789tfn':
        return f"json parse error: invalid character '{text[0]}' looking for beginning of value {shown}"
    return f"json parse error: the body is not one JSON document {shown}"


def encode(value: JsonValue, encoding: Encoding) -> bytes:
    """A value as a body; one line of JSON ends with a line feed, as curl users like it.

    YAML has its keys sorted, as the kube-apiserver's. What it cannot say as Kubernetes reads it (an integer beyond 64 bits)
    is said in JSON, which is YAML too.
    """
    if encoding is Encoding.YAML:
        with suppress(YamlError):
            return write_yaml(_sorted(value)).encode()
    return encode_json(value) + b"\n"


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
