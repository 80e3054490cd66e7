"""The form of patches in the spec of a resource."""

import pytest

from wharfinger.formats.json.value import JsonValue, ShapeError
from wharfinger.packages.kustomizing.patches import MAX_PATCHES, Patch, patches_checksum, patches_document, read_patches

JSON = "[{op: add, path: /a, value: 1}]"
COPIES = str([{"op": "copy", "from": "/a", "path": "/a/-"}] * 7)
MERGE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def test_patches_are_read_and_written() -> None:
    written: JsonValue = [{"patch": JSON, "target": {"kind": "Pod", "name": ""}}, {"patch": MERGE}]
    read = read_patches(written)
    assert read == (Patch(JSON, (("kind", "Pod"),)), Patch(MERGE))
    assert str(read[0]) == "kind=Pod"
    assert read_patches(patches_document(read)) == read
    assert read_patches(None) == ()
    assert patches_checksum(()) == ""
    assert patches_checksum(read) != patches_checksum(read[::-1])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, r"spec\.patches: expected a list"),
        ([{"patch": MERGE}] * (MAX_PATCHES + 1), "expected at most 100 patches, found 101"),
        ([{"target": {"kind": "A"}}], r"spec\.patches\[0\]\.patch: expected the text of a patch, found null"),
        ([{"patch": " "}], r"patch: expected the text of a patch"),
        ([{"patch": MERGE, "options": {}}], r"spec\.patches\[0\]\.options: unknown key"),
        ([{"patch": MERGE, "path": "/etc/passwd"}], r"spec\.patches\[0\]\.path: unknown key"),
        ([{"patch": MERGE, "target": {"kinds": "A"}}], r"target\.kinds: unknown key; did you mean 'kind'\?"),
        ([{"patch": MERGE, "target": {"name": "a" * 1001}}], "expected at most 1000 characters"),
        ([{"patch": JSON}], "does not name its object; add a target"),
        ([{"patch": "[{op: put}]", "target": {"kind": "A"}}], r"patch\[0\]\.op: expected one of add, copy"),
        ([{"patch": "spec: {}"}], "the patch names no object; add apiVersion, kind and metadata.name"),
        (
            [{"patch": COPIES, "target": {"kind": "A"}}] * 3,
            "expected at most 20 copy operations, found 21; write values",
        ),
        ([{"patch": "3"}], "expected an object or a list of operations, found"),
        ([{"patch": f"{MERGE}---\n{MERGE}"}], "expected one document, found 2"),
        ([{"patch": "a: [", "target": {"kind": "A"}}], r"spec\.patches\[0\]\.patch"),
    ],
)
def test_invalid_patches_are_refused(value: JsonValue, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        read_patches(value)
