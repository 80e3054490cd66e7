"""Renders, and other values, as bytes: the form of entries of the cache, in memory and in files. Pure.

A file is one line (format, key, sha256 and length of the rest) and compressed JSON. A file is refused with a FormatError if its
first line has another key than the requested one, if the rest does not have the stated digest and length, or if the JSON is too
large. The digest does not prove who wrote the file; the permissions of its folder do.
"""

import hashlib
import re
import zlib
from dataclasses import fields
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    canonical_json,
    decode_json,
    encode_json,
    find_list,
    find_str,
)
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest

FORMAT: Final = 1
"""The version of the format. Raise it if the meaning of a render or its file changes; then old entries are not found."""
MAX_TEXT: Final = 64 * 1024 * 1024
"""The largest size of a cached render, in bytes of JSON."""
_MAX_HEADER: Final = 256
_APART: Final = frozenset({"chart", "api_versions", "confined", "reader"})
_FIELDS: Final = tuple(field.name for field in fields(RenderRequest) if field.name not in _APART)
_LEVEL: Final = 1
_HEADER: Final = re.compile(rb"wharfinger-render (\d{1,4}) ([0-9a-f]{64}) ([0-9a-f]{64}) (\d{1,12})\n")


class EntryError(FormatError):
    """The bytes are not a cached render."""


def entry_key(request: RenderRequest, identity: str) -> str:
    """Return the key of a request: 64 hex digits. Requests with the same key have the same result. Raises ShapeError.

    ``identity`` is the identity of the renderer. The chart's folder does not matter, because its digest identifies its content.
    """
    parts: JsonObject = {name: getattr(request, name) for name in _FIELDS}
    versions: list[JsonValue] = [*sorted(set(request.api_versions))]
    parts |= {"api_versions": versions, "format": FORMAT, "identity": identity}
    return hashlib.sha256(canonical_json(parts)).hexdigest()


def pack_rendered(rendered: Rendered) -> bytes:
    """Return the bytes that `unpack_rendered` reads. Raises FormatError for values without a JSON form, or with more than
    MAX_TEXT bytes.
    """
    whole: JsonObject = {
        "crds": [*rendered.crds],
        "hooks": [*rendered.hooks],
        "objects": [*rendered.objects],
        "manifest": rendered.manifest,
        "notes": rendered.notes,
    }
    return pack_value(whole)


def pack_value(value: JsonValue) -> bytes:
    """Return the bytes that `unpack_value` reads. Raises FormatError for values without a JSON form, or with more than MAX_TEXT
    bytes.
    """
    text = encode_json(value)
    if len(text) > MAX_TEXT:
        raise EntryError(f"{len(text)} bytes are more than {MAX_TEXT}")
    decode_json(text, max_bytes=MAX_TEXT, what="a result")  # a result that is too deep to be read again is not cached
    return zlib.compress(text, _LEVEL)


def unpack_value(packed: bytes) -> JsonValue:
    """Unpack the bytes of `pack_value` into a new value. Raises FormatError."""
    unzip = zlib.decompressobj()
    try:
        text = unzip.decompress(packed, MAX_TEXT + 1)
    except zlib.error as error:
        raise EntryError(f"not compressed text: {error}") from error
    if len(text) > MAX_TEXT or not unzip.eof or unzip.unused_data:
        raise EntryError("not one compressed text within the limit")
    return decode_json(text, max_bytes=MAX_TEXT, what="a cached result")


def unpack_rendered(packed: bytes) -> Rendered:
    """Unpack the bytes of `pack_rendered` into new objects. Raises FormatError."""
    whole = as_object(unpack_value(packed), "a cached render")
    return Rendered(
        _objects(whole, "crds"),
        _objects(whole, "hooks"),
        _objects(whole, "objects"),
        find_str(whole, "manifest"),
        find_str(whole, "notes"),
    )


def write_entry(key: str, packed: bytes) -> bytes:
    """Return the content of the cache file for an entry: the header line, then the packed bytes."""
    digest = hashlib.sha256(packed).hexdigest()
    return b"wharfinger-render %d %s %s %d\n" % (FORMAT, key.encode(), digest.encode(), len(packed)) + packed


def read_entry(key: str, data: bytes) -> bytes:
    """Return the packed bytes in the file of an entry. Raises EntryError."""
    header = _HEADER.match(data[:_MAX_HEADER])
    if header is None or int(header[1]) != FORMAT:
        raise EntryError("not the file of a render in this format")
    if header[2] != key.encode():
        raise EntryError("the file of another render")
    packed = data[header.end() :]
    if len(packed) != int(header[4]) or hashlib.sha256(packed).hexdigest().encode() != header[3]:
        raise EntryError("damaged: its digest does not match")
    return packed


def _objects(whole: JsonObject, key: str) -> tuple[JsonObject, ...]:
    return tuple(as_object(entry, key) for entry in find_list(whole, key))
