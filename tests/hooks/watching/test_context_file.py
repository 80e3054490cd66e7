"""The file of contexts that a hook reads. It is written from values, some of which are already JSON texts (`PackedJson`)."""

import io
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.values import json_values
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonValue, ShapeError, canonical_json, encode_json
from wharfinger.hooks.watching.context_file import Context, ContextValue, write_contexts


def text_of(contexts: Sequence[Context]) -> bytes:
    file = io.BytesIO()
    write_contexts(file, contexts)
    return file.getvalue()


def test_context_file_is_compact_sorted_json_with_a_newline() -> None:
    assert text_of([]) == b"[]\n"
    assert text_of([{}]) == b"[{}]\n"
    context: Context = {"type": "Event", "binding": "p", "snapshots": {"b": [], "a": ({"object": PackedJson(b"{}")},)}}
    assert text_of([context, {}]) == b'[{"binding":"p","snapshots":{"a":[{"object":{}}],"b":[]},"type":"Event"},{}]\n'


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values()))
def test_unpacked_values_are_written_as_canonical_json(context: dict[str, JsonValue]) -> None:
    assert text_of([context]) == canonical_json([context]) + b"\n"


@given(json_values())
def test_packed_json_is_written_unchanged(value: JsonValue) -> None:
    text = encode_json(value)
    packed: list[ContextValue] = [PackedJson(text), {"x": PackedJson(text)}]
    assert text_of([{"a": packed}]) == b'[{"a":[' + text + b',{"x":' + text + b"}]}]\n"
    assert json.loads(text_of([{"a": packed}])) == [{"a": [value, {"x": value}]}]


@pytest.mark.parametrize("value", [float("nan"), "\ud800"])
def test_values_without_a_json_form_are_refused(value: JsonValue) -> None:
    with pytest.raises(ShapeError):
        text_of([{"a": value}])


def test_items_are_unpacked_one_at_a_time() -> None:
    class Watched(io.BytesIO):
        longest = 0

        def write(self, piece: object) -> int:
            assert isinstance(piece, bytes)
            self.longest = max(self.longest, len(piece))
            return super().write(piece)

    item = PackedJson(b'"' + b"x" * 10_000 + b'"')
    file = Watched()
    write_contexts(file, [{"objects": [{"object": item}] * 50}])
    assert len(file.getvalue()) > 50 * 10_000
    assert file.longest < 11_000
