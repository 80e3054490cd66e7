import pytest

from tests.control_plane.support.samples import NOW
from wharfinger.control_plane.api.by_kind import other_groups_cells as group
from wharfinger.control_plane.api.common.cells import Cell
from wharfinger.formats.json.value import JsonObject, JsonValue

HOSTS: JsonValue = [{"host": "a"}, {"host": "b"}, {"host": "c"}, {"host": "d"}, {}]
DEFAULT: JsonObject = {"ingressclass.kubernetes.io/is-default-class": "true"}


def conditions(*types: str) -> JsonObject:
    return {"status": {"conditions": [{"type": type_, "status": "True"} for type_ in types]}}


@pytest.mark.parametrize(
    ("cell", "obj", "shown"),
    [
        (group.class_name, {"kind": "IngressClass", "metadata": {"name": "a", "annotations": DEFAULT}}, "a (default)"),
        (group.class_name, {"kind": "StorageClass", "metadata": {"name": "a", "annotations": DEFAULT}}, "a"),
        (group.ingress_hosts, {"spec": {"rules": HOSTS}}, "a,b,c + 2 more..."),
        (group.ingress_hosts, {}, "*"),
        (group.ingress_address, {"status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}}, "1.1.1.1"),
        (group.ingress_ports, {"spec": {"tls": [{}]}}, "80, 443"),
        (group.ingress_ports, {}, "80"),
        (group.class_parameters, {}, "<none>"),
        (group.class_parameters, {"spec": {"parameters": {"kind": "K", "apiGroup": "g", "name": "n"}}}, "K.g/n"),
        (group.class_parameters, {"spec": {"parameters": {"kind": "K", "name": "n"}}}, "K/n"),
        (group.address_parent, {"spec": {"parentRef": {"resource": "s", "namespace": "n", "name": "x"}}}, "s/n/x"),
        (group.address_parent, {}, "<none>"),
        (group.role_ref, {"roleRef": {"kind": "Role", "name": "r"}}, "Role/r"),
        (group.token_requests, {"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "b"}]}}, "a,b"),
        (group.token_requests, {}, "<unset>"),
        (group.parameter_kind, {"spec": {"paramKind": {"apiVersion": "v1", "kind": "K"}}}, "v1/K"),
        (group.parameter_kind, {}, "<unset>"),
        (group.parameter, {"spec": {"paramRef": {"name": "x"}}}, "*/x"),
        (group.parameter, {}, "<unset>"),
        (
            group.parameter,
            {"spec": {"paramRef": {"selector": {"matchLabels": {"a": "b"}}}}},
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
        (group.certificate_duration, {"spec": {"expirationSeconds": 3600}}, "60m"),
        (group.certificate_duration, {"spec": {"expirationSeconds": 10**30}}, "<none>"),
        (group.certificate_status, conditions(), "Pending"),
        (group.certificate_status, conditions("Approved", "Failed"), "Approved,Failed"),
        (group.certificate_status, conditions("Denied"), "Denied"),
        (group.service_of, {}, "Local"),
        (group.service_of, {"spec": {"service": {"namespace": "n", "name": "s"}}}, "n/s"),
        (group.available, {}, "Unknown"),
        (group.available, conditions("Available"), "True"),
        (
            group.available,
            {"status": {"conditions": [{"type": "Available", "status": "False", "reason": "R"}]}},
            "False (R)",
        ),
        (group.claim_state, {}, "pending"),
        (group.claim_state, {"status": {"allocation": {}, "reservedFor": [{}]}}, "allocated,reserved"),
        (group.claim_state, {"metadata": {"deletionTimestamp": "t"}}, "deleted"),
        (group.dangling, {}, "?"),
    ],
)
def test_cells_of_columns_are_formatted(cell: Cell, obj: JsonObject, shown: JsonValue) -> None:
    assert cell(obj, NOW) == shown


def test_subjects_of_bindings_are_listed_by_kind() -> None:
    subjects: JsonValue = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]

    assert group.subjects("User", {"subjects": subjects}) == "u"
    assert group.subjects("ServiceAccount", {"subjects": subjects}) == "n/s"


def test_cells_of_priority_levels_show_limits() -> None:
    obj: JsonObject = {
        "spec": {"limited": {"nominalConcurrencyShares": 5, "limitResponse": {"queuing": {"queues": 64}}}}
    }

    assert group.limited(("nominalConcurrencyShares",), obj) == 5
    assert group.limited(("limitResponse", "queuing", "queues"), obj) == 64
    assert group.limited(("limitResponse", "queuing", "queues"), {}) == "<none>"


def test_cells_of_components_show_their_health() -> None:
    obj: JsonObject = {"conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]}

    assert [group.component(field, obj) for field in ("status", "message", "error")] == ["Healthy", "ok", ""]
    assert group.component("status", {}) == "Unknown"
