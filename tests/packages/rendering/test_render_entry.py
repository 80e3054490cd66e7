"""Renders as bytes in the cache, and the cache keys of requests."""

import zlib
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.renders import ASKED, some_rendered
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.rendering import render_entry
from wharfinger.packages.rendering.render_entry import (
    EntryError,
    entry_key,
    pack_rendered,
    read_entry,
    unpack_rendered,
    write_entry,
)
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest

KEY = "a" * 64
OTHER: dict[str, RenderRequest] = {
    "chart_digest": replace(ASKED, chart_digest="sha256:" + "2" * 64),
    "release": replace(ASKED, release="other"),
    "namespace": replace(ASKED, namespace="other"),
    "values": replace(ASKED, values={"replicas": 3}),
    "kube_version": replace(ASKED, kube_version="v1.32.0"),
    "api_versions": replace(ASKED, api_versions=("apps/v1",)),
    "is_upgrade": replace(ASKED, is_upgrade=True),
    "chart_file": replace(ASKED, chart_file={}),
    "manifests": replace(ASKED, manifests=True),
}

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
json_objects: st.SearchStrategy[JsonObject] = st.dictionaries(texts, json_values, max_size=4)
many_objects = st.lists(json_objects, max_size=3).map(tuple)


@given(st.builds(Rendered, many_objects, many_objects, many_objects, texts, texts))
def test_a_packed_render_is_unpacked_unchanged(rendered: Rendered) -> None:
    assert unpack_rendered(pack_rendered(rendered)) == rendered


def test_every_field_except_the_chart_path_changes_the_key() -> None:
    assert set(OTHER) == {field.name for field in fields(RenderRequest)} - {"chart", "confined", "reader"}
    keys = [
        entry_key(ASKED, "helm v4"),
        entry_key(ASKED, "helm v3"),
        *(entry_key(one, "helm v4") for one in OTHER.values()),
    ]
    assert len(set(keys)) == len(keys)
    assert entry_key(replace(ASKED, chart=Path("/elsewhere")), "helm v4") == keys[0]
    assert (
        entry_key(replace(ASKED, confined=True, reader="somebody"), "helm v4") == keys[0]
    )  # These fields affect only lookups.


def test_the_order_of_versions_and_values_does_not_change_the_key() -> None:
    first = replace(ASKED, values={"a": 1, "b": 2.0}, api_versions=("v1", "apps/v1", "v1"))
    other = replace(ASKED, values={"b": 2, "a": 1}, api_versions=("apps/v1", "v1"))
    assert entry_key(first, "") == entry_key(other, "")


def test_another_format_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry_key(ASKED, "")
    monkeypatch.setattr(render_entry, "FORMAT", render_entry.FORMAT + 1)
    assert entry_key(ASKED, "") != before


def test_values_without_a_checksum_have_no_key() -> None:
    with pytest.raises(FormatError):
        entry_key(replace(ASKED, values={"a": float("nan")}), "")


def test_oversized_and_too_deep_renders_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: JsonValue = 1
    for _ in range(199):
        deep = [deep]
    with pytest.raises(FormatError, match="deeper"):
        pack_rendered(Rendered((), (), ({"a": deep},), ""))
    monkeypatch.setattr(render_entry, "MAX_TEXT", 20)
    with pytest.raises(EntryError, match="more than 20"):
        pack_rendered(some_rendered())


def test_entries_that_unpack_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack_rendered(some_rendered(text="x" * 1000))
    monkeypatch.setattr(render_entry, "MAX_TEXT", 1000)
    with pytest.raises(EntryError, match="within the limit"):
        unpack_rendered(packed)


@pytest.mark.parametrize(
    "text", [b"[]", b"{", b'{"crds": 1}', b'{"crds": [1]}', b'{"manifest": []}', b"[" * 1000, b'{"notes": "\xff"}']
)
def test_compressed_text_that_is_not_a_render_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        unpack_rendered(zlib.compress(text))


@pytest.mark.parametrize("packed", [b"", b"{}", zlib.compress(b"{}")[:-1], zlib.compress(b"{}") + b"x"])
def test_bytes_that_are_not_compressed_text_are_refused(packed: bytes) -> None:
    with pytest.raises(EntryError):
        unpack_rendered(packed)


def test_a_written_entry_is_read_back() -> None:
    packed = pack_rendered(some_rendered())
    assert read_entry(KEY, write_entry(KEY, packed)) == packed


@given(st.data())
def test_any_changed_byte_is_detected(data: st.DataObject) -> None:
    written = write_entry(KEY, b"some packed bytes")
    place = data.draw(st.integers(0, len(written) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != written[place]))
    with pytest.raises(EntryError):
        read_entry(KEY, written[:place] + bytes([other]) + written[place + 1 :])


@given(st.integers(0, 200))
def test_any_truncation_is_detected(length: int) -> None:
    written = write_entry(KEY, b"some packed bytes")
    with pytest.raises(EntryError):
        read_entry(KEY, written[: min(length, len(written) - 1)])


def test_a_file_under_another_name_is_refused() -> None:
    with pytest.raises(EntryError, match="another render"):
        read_entry("b" * 64, write_entry(KEY, b"x"))


def test_a_file_of_another_format_is_refused() -> None:
    with pytest.raises(EntryError, match="format"):
        read_entry(KEY, write_entry(KEY, b"x").replace(b"render 1", b"render 2"))
