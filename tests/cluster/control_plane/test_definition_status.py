"""The status of definitions."""

from datetime import UTC, datetime

from wharfinger.cluster.control_plane.definition_status import is_established, settled_status, terminating_status
from wharfinger.formats.json_value import JsonObject, find, find_list

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES: JsonObject = {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList", "shortNames": ["x"]}


def definition() -> JsonObject:
    """A definition of that status."""
    schema: JsonObject = {"openAPIV3Schema": {"properties": {}}}
    return {"spec": {"group": "x.k8s.io", "names": NAMES, "versions": [{"name": "v1", "schema": schema}]}, "status": {}}


def test_conditions() -> None:
    status = settled_status(definition(), [], NOW)
    assert [find(item, "type") for item in find_list(status, "conditions")] == [
        "KubernetesAPIApprovalPolicyConformant", "NamesAccepted", "Established", "NonStructuralSchema",
    ]  # fmt: skip
    assert is_established({"status": status})
    again: JsonObject = {**definition(), "status": status}
    assert settled_status(again, [], NOW.replace(hour=3)) == status
    assert find(terminating_status(again, "R", "m", NOW), "conditions", 4, "type") == "Terminating"


def test_conflicts() -> None:
    other: JsonObject = {"status": {"acceptedNames": NAMES}}
    status = settled_status(definition(), [other], NOW)
    assert find(status, "conditions", 1, "reason") == "ListKindConflict"
    assert find(status, "conditions", 2, "reason") == "NotAccepted"
    assert find(status, "acceptedNames") == {"plural": "", "kind": ""}
