"""The writer of BINDING_CONTEXT_PATH: contexts as JSON, with parts that are already stored as text (spec hook-protocol
§1.6, §2).

A context is a small JSON object in which items may be :class:`~wharfinger.formats.json.packed_json.PackedJson`. Packed items
are unpacked one after the other while the file is written, so that a snapshot of ten thousand objects is never in memory as
one text.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, TypeAlias

from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonValue, canonical_json

ContextValue: TypeAlias = "JsonValue | PackedJson | Sequence[ContextValue] | Mapping[str, ContextValue]"
Context: TypeAlias = Mapping[str, ContextValue]
"""One binding context."""


def write_contexts(file: BinaryIO, contexts: Sequence[Context]) -> None:
    """Write the list of contexts as compact JSON with sorted keys, and a newline at the end.

    Raises FormatError for a value without a JSON form.
    """
    for piece in _pieces(contexts):
        file.write(piece)
    file.write(b"\n")


def _pieces(value: ContextValue) -> Iterator[bytes]:
    if isinstance(value, PackedJson):
        yield value.text()
    elif isinstance(value, Mapping):
        before = b"{"
        for key in sorted(value):
            yield before + canonical_json(key) + b":"
            yield from _pieces(value[key])
            before = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        before = b"["
        for item in value:
            yield before
            yield from _pieces(item)
            before = b","
        yield b"]" if value else b"[]"
    else:
        yield canonical_json(value)
