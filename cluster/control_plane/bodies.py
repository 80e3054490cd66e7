"""Bodies read and written: JSON, the YAML that server-side apply and a few clients send, and the protobuf of typed ones."""

from typing import Final

import yaml

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.negotiation import Encoding
from wharfinger.cluster.control_plane.protobuf import decode_envelope
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonError, JsonValue, ShapeError, decode_json, encode_json, to_json

BODY_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of a request's body, as in the kube-apiserver."""
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_JSON_SPACE: Final = " \t\r\n"
"""White space of RFC 8259 §2, and no other character that Python takes for some."""


class _Loader(yaml.SafeLoader):
    """YAML without aliases (no use in a manifest, and the way to make a bomb) and with times left as text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not accepted")
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


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
        return to_json(yaml.load(data, _Loader), "body")  # noqa: S506 - a safe loader, made stricter
    except (yaml.YAMLError, ShapeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise status.bad_request(f"error decoding YAML: {error}") from error


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
    """A value as a body; one line of JSON ends with a line feed, as curl users like it."""
    if encoding is Encoding.YAML:
        return yaml.safe_dump(value, default_flow_style=False, allow_unicode=True).encode()
    return encode_json(value) + b"\n"
