"""The status of CustomResourceDefinitions."""

from datetime import UTC, datetime

from wharfinger.control_plane.api.apiextensions.status import is_established, settled_status, terminating_status
from wharfinger.formats.json.value import JsonObject, find, find_list

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES: JsonObject = {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList", "shortNames": ["x"]}


def definition() -> JsonObject:
    """Return a CustomResourceDefinition with an empty status."""
    schema: JsonObject = {"openAPIV3Schema": {"properties": {}}}
    return {"spec": {"group": "x.k8s.io", "names": NAMES, "versions": [{"name": "v1", "schema": schema}]}, "status": {}}


def test_a_new_definition_gets_conditions_and_is_established() -> None:
    status = settled_status(definition(), [], NOW)
    assert [find(item, "type") for item in find_list(status, "conditions")] == [
        "KubernetesAPIApprovalPolicyConformant", "NamesAccepted", "Established", "NonStructuralSchema",
    ]  # fmt: skip
    assert is_established({"status": status})
    again: JsonObject = {**definition(), "status": status}
    assert settled_status(again, [], NOW.replace(hour=3)) == status
    assert find(terminating_status(again, "R", "m", NOW), "conditions", 4, "type") == "Terminating"


def test_a_definition_with_conflicting_names_is_not_accepted() -> None:
    other: JsonObject = {"status": {"acceptedNames": NAMES}}
    status = settled_status(definition(), [other], NOW)
    assert find(status, "conditions", 1, "reason") == "ListKindConflict"
    assert find(status, "conditions", 2, "reason") == "NotAccepted"
    assert find(status, "acceptedNames") == {"plural": "", "kind": ""}


def held(how: str) -> JsonObject:
    return {**definition(), "metadata": {"annotations": {"wharfinger.dev/never-established": how}}}


def test_a_definition_held_from_establishment_is_installing() -> None:
    for how in ("true", "until-touched"):
        status = settled_status(held(how), [], NOW)
        assert not is_established({"status": status})
        assert find(status, "conditions", 1, "status") == "True"
        assert find(status, "conditions", 2, "reason") == "Installing"
        assert settled_status({**held(how), "status": status}, [], NOW.replace(hour=3)) == status
        freed: JsonObject = {**definition(), "status": status}
        assert is_established({"status": settled_status(freed, [], NOW)})


def test_a_definition_held_until_touched_is_established_when_touched() -> None:
    begun = settled_status(held("until-touched"), [], NOW)
    again: JsonObject = {**held("until-touched"), "status": begun}
    assert is_established({"status": settled_status(again, [], NOW, touched=True)})
    never: JsonObject = {**held("true"), "status": settled_status(held("true"), [], NOW)}
    assert not is_established({"status": settled_status(never, [], NOW, touched=True)})


def test_an_established_definition_remains_established() -> None:
    status = settled_status(definition(), [], NOW)
    assert is_established({"status": settled_status({**held("true"), "status": status}, [], NOW)})
