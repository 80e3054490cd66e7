import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.networking.network_policies import network_policy_errors
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("port", "said"),
    [
        ({}, ""),
        ({"port": 80, "endPort": 90, "protocol": "SCTP"}, ""),
        ({"port": "http"}, ""),
        ({"protocol": "ICMP"}, "ports[0].protocol: Unsupported value"),
        ({"endPort": 9}, "may not be specified when `port` is not specified"),
        ({"port": "http", "endPort": 9}, "may not be specified when `port` is non-numeric"),
        ({"port": 80, "endPort": 79}, "must be greater than or equal to `port`"),
        ({"port": 0}, "between 1 and 65535"),
        ({"port": 1, "endPort": 70000}, "ports[0].endPort"),
    ],
)
def test_invalid_ports_are_refused(port: JsonObject, said: str) -> None:
    errors = [str(error) for error in network_policy_errors({"spec": {"egress": [{"ports": [port]}]}})]

    assert not errors if not said else said in errors[0]


@pytest.mark.parametrize(
    ("peer", "said"),
    [
        ({"podSelector": {}, "namespaceSelector": {}}, ""),
        ({}, "must specify a peer"),
        ({"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}, "may not specify both ipBlock and another peer"),
        ({"ipBlock": {}}, "ipBlock.cidr: Required value"),
        ({"ipBlock": {"cidr": "x"}}, "ipBlock.cidr: Invalid value"),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}, ""),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}}, "must be a strict subset of `cidr`"),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["::/64"]}}, "must be a strict subset of `cidr`"),
    ],
)
def test_invalid_peers_are_refused(peer: JsonObject, said: str) -> None:
    errors = [str(error) for error in network_policy_errors({"spec": {"ingress": [{"from": [peer]}]}})]

    assert not errors if not said else said in errors[0]


def test_invalid_policy_types_are_refused() -> None:
    assert network_policy_errors({"spec": {"policyTypes": ["Egress", "Ingress"]}}) == []
    assert len(network_policy_errors({"spec": {"policyTypes": ["A", "B"]}})) == 2
    assert len(network_policy_errors({"spec": {"policyTypes": ["A", "B", "C"]}})) == 1


def test_old_violations_are_tolerated() -> None:
    old: JsonObject = {
        "spec": {
            "podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]},
            "egress": [{"to": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}],
        }
    }

    assert len(network_policy_errors(old)) == 2
    assert network_policy_errors(old, old) == []


NAMES = ("spec", "podSelector", "ingress", "egress", "from", "to", "ipBlock", "cidr", "except", "ports", "policyTypes")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    network_policy_errors(new)
    network_policy_errors(new, old)
