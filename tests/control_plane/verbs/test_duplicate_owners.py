"""Duplicate owner references in objects."""

from wharfinger.control_plane.verbs.duplicate_owners import without_repeated_owners
from wharfinger.formats.json.value import JsonObject


def test_duplicate_owners_are_removed_with_a_warning() -> None:
    owner: JsonObject = {"uid": "u1", "name": "a"}
    warnings: list[str] = []
    obj: JsonObject = {"metadata": {"ownerReferences": [owner, {**owner, "name": "b"}, dict(owner)]}}

    found = without_repeated_owners(obj, warnings, admitted=True)

    assert found == {"metadata": {"ownerReferences": [owner, {**owner, "name": "b"}]}}
    assert warnings[0].startswith(
        ".metadata.ownerReferences contains duplicate entries after mutating admission happens;"
    )
    assert warnings[0].endswith("duplicate UID(s) observed: u1")
    assert without_repeated_owners(found, warnings, admitted=False) is found
    assert len(warnings) == 1
