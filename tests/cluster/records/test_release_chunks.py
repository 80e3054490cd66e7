"""Records larger than a Secret: how they are split and reassembled."""

import base64
import hashlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster.support.large_records import HOOK, LARGE, NOW, US, noise, record
from tests.scale import scaled
from wharfinger.cluster.records.release import (
    MAX_DOCUMENT_BYTES,
    MAX_RECORD_BYTES,
    Release,
    ReleaseRecordError,
    ReleaseStatus,
    from_secret,
    gzip,
    to_secret,
)
from wharfinger.cluster.records.release_chunks import (
    CHUNK_BYTES,
    CHUNK_TYPE,
    INDEX_ANNOTATION,
    MAX_CHUNKS,
    STAND_IN,
    ChunkIndex,
    assemble,
    index_of,
    pack_release,
    repack_head,
    without_stand_in,
)
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_object, find_str

BIG: JsonObject = {"x": LARGE}


def opened(release: Release) -> tuple[Release, ChunkIndex, list[JsonObject | None]]:
    """Pack a release that is larger than a Secret. Return the head as it is read back, the chunk index, and the chunks."""
    packed = pack_release(release, NOW)
    head = from_secret(packed.head)
    index = index_of(head)
    assert index is not None
    assert (index, packed.chunk_names) == (packed.index, index.names("web"))
    return head, index, list(packed.chunks)


def test_a_small_record_is_one_secret_in_the_format_of_helm() -> None:
    packed = pack_release(record(), NOW)
    assert (packed.head, packed.index, packed.chunks) == (to_secret(record(), NOW), None, ())
    assert index_of(from_secret(packed.head)) is None


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("release", "manifest", "hooks", "values"),
    [
        (record(chart_values=BIG), "---\nkind: A\n", ["hook"], {"v": 1}),
        (record(notes=LARGE), "---\nkind: A\n", ["hook"], {"v": 1}),
        (record(manifest=LARGE), None, ["hook", STAND_IN], {"v": 1}),
        (
            replace(record(), document={**record().document, "hooks": [{**HOOK, "manifest": LARGE}]}),
            None,
            [STAND_IN],
            {"v": 1},
        ),
        (record(values=BIG), None, [STAND_IN], {}),
        (record(manifest=LARGE, values=BIG, chart_values=BIG, notes=LARGE), None, [STAND_IN], {}),
    ],
    ids=["chart", "notes", "manifest", "hooks", "values", "everything"],
)
def test_a_split_record_is_reassembled(
    release: Release, manifest: str | None, hooks: list[str], values: JsonObject
) -> None:
    head, index, chunks = opened(release)
    assert (head.name, head.revision, head.status, head.chart["version"]) == ("web", 1, ReleaseStatus.DEPLOYED, "1.2.3")
    assert (head.description, head.values) == ("revision 1", values)
    assert [find_str(hook, "name") for hook in head.hooks] == hooks
    notes = find_str(head.document, "info", "notes")
    assert notes.startswith("This release record is larger than a Secret can be.")
    if manifest is None:
        assert f"name: {STAND_IN}" in head.manifest
        assert "the manifest" in notes
        assert "Helm cannot uninstall the release or roll it back" in notes
    else:
        assert head.manifest == manifest
        assert "Helm can do everything with it." in notes
    assert assemble(head, index, chunks) == release


def test_chunks_are_secrets_that_helm_does_not_list() -> None:
    release = record(manifest=LARGE)
    _, index, chunks = opened(release)
    assert len(chunks) == 3
    for chunk, digest in zip(chunks, index.digests, strict=True):
        assert chunk is not None
        assert (chunk["type"], chunk["immutable"]) == (CHUNK_TYPE, True)
        assert find(chunk, "metadata", "labels") == {"owner": "wharfinger", "name": "web", "version": "1"}
        assert find(chunk, "metadata", "annotations") == {
            "wharfinger.dev/holder": US.identity,
            "wharfinger.dev/fence": "3",
            "wharfinger.dev/lease": US.lease,
            "wharfinger.dev/sha256": digest,
        }
        assert len(base64.b64decode(find_str(chunk, "data", "chunk"))) <= CHUNK_BYTES
        assert len(encode_json(chunk)) < 1.4 * 1024 * 1024


def test_a_record_without_notes_has_none_after_reassembly() -> None:
    release = record(manifest=LARGE, notes="")
    assert "notes" not in find_object(release.document, "info")
    assert assemble(*opened(release)) == release


@pytest.mark.slow
def test_a_new_status_rewrites_only_the_head() -> None:
    release = record(manifest=LARGE)
    packed = pack_release(release, NOW)
    failed = release.with_status(ReleaseStatus.FAILED, "it failed", deleted="now")
    head = from_secret(repack_head(packed.cut, failed, NOW))
    assert (head.status, head.description) == (ReleaseStatus.FAILED, "it failed")
    assert find_str(head.document, "info", "notes").startswith("This release record is larger")
    assert packed.index is not None
    assert assemble(head, packed.index, packed.chunks) == failed
    with pytest.raises(ReleaseRecordError, match="revision 1 with its new status is"):
        repack_head(packed.cut, failed.with_status(ReleaseStatus.FAILED, LARGE), NOW)


def test_a_head_rewritten_by_helm_can_be_reassembled() -> None:
    release = record(manifest=LARGE)
    head, index, chunks = opened(release)
    rewritten = Release({**head.document, "info": {"status": "superseded", "description": "over"}}, {})
    again = index_of(rewritten)
    assert again == index
    whole = assemble(rewritten, index, chunks)
    assert (whole.manifest, whole.hooks, whole.status.value) == (release.manifest, release.hooks, "superseded")
    assert find_str(whole.document, "info", "notes") == "Hello\n"


def test_a_copy_of_a_head_made_by_helm_has_no_chunks_or_objects() -> None:
    head, *_ = opened(record(manifest=LARGE))
    copy = replace(head, document={**head.document, "version": 2})
    assert index_of(copy) is None
    bare = without_stand_in(copy)
    assert (bare.manifest, [find_str(hook, "name") for hook in bare.hooks]) == ("", ["hook"])
    assert without_stand_in(record()) == record()


def test_lost_or_damaged_chunks_are_reported() -> None:
    head, index, chunks = opened(record(manifest=LARGE))
    name = f"default/{index.names('web')[1]}"
    good = chunks[1]
    assert good is not None
    cases: list[tuple[JsonObject | None, str]] = [
        (None, "gone"),
        ({}, "damaged"),
        ({**good, "data": {"chunk": "AAAA"}}, "damaged"),
        ({**good, "data": {"chunk": "!"}}, "damaged"),
        ({**good, "data": {"chunk": 5}}, "damaged"),
        ({**good, "data": {"chunk": "A" * (2 * MAX_RECORD_BYTES + 4)}}, "damaged"),
    ]
    for bad, state in cases:
        damaged: list[JsonObject | None] = [chunks[0], bad, chunks[2]]
        with pytest.raises(
            ReleaseRecordError, match=rf"revision 1 is kept in chunks, and the Secret {name} is {state}"
        ):
            assemble(head, index, damaged)
    with pytest.raises(ReleaseRecordError):
        assemble(head, index, [chunks[1], chunks[0], chunks[2]])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("data", [b"", b"x", gzip(b"[]"), gzip(b"{"), gzip(b"{}")[:-5], gzip(b'{"manifest":5}')])
def test_chunks_with_a_valid_digest_and_invalid_content_are_refused(data: bytes) -> None:
    head, *_ = opened(record(manifest=LARGE))
    chunk, index = chunk_of(data)
    with pytest.raises(ReleaseRecordError, match="default/web: revision 1"):
        assemble(head, index, [chunk])


def chunk_of(data: bytes) -> tuple[JsonObject, ChunkIndex]:
    return {"data": {"chunk": base64.b64encode(data).decode()}}, ChunkIndex(1, (hashlib.sha256(data).hexdigest(),))


@pytest.mark.parametrize(
    "index",
    [
        5,
        "",
        "x",
        "[]",
        "{}",
        '{"sha256":[]}',
        '{"sha256":5}',
        '{"sha256":["x"]}',
        '{"sha256":[5]}',
        f'{{"sha256":["{"a" * 64}"],"revision":"1"}}',
        f'{{"sha256":[{",".join(["1"] * (MAX_CHUNKS + 1))}]}}',
    ],
)
def test_an_unreadable_index_is_refused(index: JsonValue) -> None:
    with pytest.raises(ReleaseRecordError, match="index of chunks in revision 1"):
        index_of(with_index(index))


def with_index(index: JsonValue) -> Release:
    document = record().document
    return Release({**document, "chart": {"metadata": {"annotations": {INDEX_ANNOTATION: index}}}})


@settings(max_examples=scaled(5_000, 200))
@given(st.text(max_size=40) | st.binary(max_size=20).map(lambda data: f'{{"sha256":["{data.hex()}"]}}'))
def test_any_index_is_read_or_refused(index: str) -> None:
    try:
        found = index_of(with_index(index))
    except ReleaseRecordError:
        return
    assert found is None or found.names("web")


@pytest.mark.slow
def test_a_record_too_large_to_split_is_refused() -> None:
    document = record().document
    chart: JsonObject = {"metadata": {"name": "web", "description": LARGE}}
    with pytest.raises(ReleaseRecordError, match=r"without manifest, hooks and values is \d+ bytes .* make its Chart"):
        pack_release(Release({**document, "chart": chart}), NOW)
    with pytest.raises(ReleaseRecordError, match=rf"at most {MAX_DOCUMENT_BYTES} are kept; split the package"):
        pack_release(record(manifest=noise(2_000_000) + " " * MAX_DOCUMENT_BYTES), NOW)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_record_is_reassembled_and_its_head_fits(data: st.DataObject) -> None:
    def part() -> str:
        return noise(data.draw(st.integers(0, 1_200_000)), data.draw(st.integers(0, 5)))

    release = record(manifest=part(), values={"x": part()}, chart_values={"y": part()}, notes=part())
    packed = pack_release(release, NOW)
    text = base64.b64decode(find_str(packed.head, "data", "release"))
    assert len(text) <= MAX_RECORD_BYTES
    head = from_secret(packed.head)
    if packed.index is not None:
        head = assemble(head, packed.index, packed.chunks)
    assert head.manifest == release.manifest
    assert head.document == {**release.document, "info": head.document["info"]}
    assert find_str(head.document, "info", "notes") == find_str(release.document, "info", "notes")
