"""Validation of the fields that control scheduling."""

from wharfinger.control_plane.api.core.pod_specs.scheduling import (
    affinity_errors,
    gate_errors,
    node_selector_errors,
    spread_errors,
    toleration_errors,
)
from wharfinger.formats.json.value import JsonObject

TERM: JsonObject = {
    "matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}, {"key": "b", "operator": "Exists"}]
}
FIELD: JsonObject = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}


def test_valid_scheduling_fields_are_accepted() -> None:
    assert node_selector_errors({"nodeSelectorTerms": [TERM, FIELD]}, "p") == []
    pods: JsonObject = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z", "labelSelector": {}}]}
    assert affinity_errors({"affinity": {"podAffinity": pods}}, "spec") == []
    constraint: JsonObject = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
    assert spread_errors({"topologySpreadConstraints": [constraint]}, "spec") == []
    assert toleration_errors([{"operator": "Exists"}, {"key": "a", "value": "b"}], "t") == []
    assert gate_errors({"schedulingGates": [{"name": "a"}], "readinessGates": [{"conditionType": "a/b"}]}, "spec") == []


def test_tolerations_of_a_wrong_type_are_ignored() -> None:
    assert toleration_errors({"a": 1}, "t") == toleration_errors(None, "t") == []
