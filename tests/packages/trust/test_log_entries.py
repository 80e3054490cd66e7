"""Entries of a transparency log: their formats, and their inclusion proofs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.sigstore import GOOD, LOG, NOW, OTHER_LOG, path_of, tree_root
from wharfinger.formats.json.value import JsonObject, encode_json, find_object
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.log_entries import MAX_HASHES, check_entry, read_annotation, read_entry, root_of

BODY: JsonObject = {"kind": "dsse", "apiVersion": "0.0.1"}
ENTRY = read_entry(GOOD.bundle_entry(BODY))
KEYS = [OTHER_LOG.public_key(), LOG.public_key()]


def test_annotations_and_bundles_have_equal_entries() -> None:
    assert read_annotation(encode_json(GOOD.entry(BODY)).decode()).body == ENTRY.body
    check_entry(ENTRY, KEYS)
    check_entry(replace(ENTRY, proof=None), KEYS)
    assert ENTRY.moment == NOW.replace(microsecond=0)


@given(st.integers(1, 40), st.data())
@pytest.mark.sampled(60)
def test_inclusion_proofs_verify_only_their_entry(size: int, data: st.DataObject) -> None:
    leaves = [b"%d" % number for number in range(size)]
    index = data.draw(st.integers(0, size - 1))
    root, path = tree_root(leaves), path_of(leaves, index)
    assert root_of(leaves[index], index, size, path) == root
    assert root_of(b"another", index, size, path) != root
    assert root_of(leaves[index], size, size, path) == b""
    assert root_of(leaves[index], index, size, [*path, b"x" * 32]) != root
    if path:
        assert root_of(leaves[index], index, size, path[:-1]) != root
    other = data.draw(st.integers(0, size - 1))
    if other != index:
        assert root_of(leaves[index], other, size, path) != root


@pytest.mark.parametrize(
    "note",
    [
        "",
        "log.example\n6\n\n",
        "log.example\nsix\nAAAA\n\n",
        "log.example\n6\nAAAA\n\n\u2014 log.example !\n",
        "a\n6\n!\n\n\u2014 l AAAA",
    ],
)
def test_invalid_checkpoints_are_refused(note: str) -> None:
    assert ENTRY.proof is not None
    with pytest.raises(ArtifactError, match="proof of inclusion does not verify"):
        check_entry(replace(ENTRY, proof=replace(ENTRY.proof, checkpoint=note)), KEYS)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("canonicalizedBody", "!"),
        ("integratedTime", "-1"),
        ("integratedTime", True),
        ("integratedTime", "9" * 19),
        ("logIndex", "x"),
        ("logId", {"keyId": "!"}),
        ("inclusionProof", {"hashes": ["AAAA"] * (MAX_HASHES + 1)}),
        ("inclusionProof", {"hashes": [3], "logIndex": "1", "treeSize": "2"}),
    ],
)
def test_invalid_log_entries_are_refused(field: str, value: JsonObject | str) -> None:
    entry = {**GOOD.bundle_entry(BODY), field: value}
    if field == "inclusionProof" and find_object(entry, field).get("hashes") == [3]:
        assert read_entry(entry).proof is not None  # The entry is read, but its proof is valid for no root hash.
        return
    with pytest.raises(ArtifactError, match="entry of the transparency log cannot be read"):
        read_entry(entry)


def test_invalid_annotations_are_refused() -> None:
    for text in ("", "[]", '{"Payload": {"logID": "xyz"}}'):
        with pytest.raises(ArtifactError, match="entry of the transparency log cannot be read"):
            read_annotation(text)
