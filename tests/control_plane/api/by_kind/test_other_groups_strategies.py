import pytest

from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.api.by_kind.other_groups_strategies import GROUP_STRATEGIES
from wharfinger.formats.json.value import JsonObject, find_list, find_object

LEASE = GROUP_STRATEGIES["Lease.coordination.k8s.io"]
COORDINATED: JsonObject = {"spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "a"}}


def test_coordination_fields_of_leases_are_dropped_unless_already_set() -> None:
    plain: JsonObject = {"spec": {"holderIdentity": "a"}}

    assert LEASE.create(COORDINATED, FakeView()) == plain
    assert LEASE.update(COORDINATED, plain, FakeView()) == plain
    assert LEASE.update(COORDINATED, COORDINATED, FakeView()) == COORDINATED


def test_approvals_get_a_time_and_survive_status_writes() -> None:
    requests = GROUP_STRATEGIES["CertificateSigningRequest.certificates.k8s.io"]
    asked: JsonObject = {"spec": {}, "status": {"conditions": [{"type": "Approved", "status": "True"}]}}
    approved = requests.subresources["approval"](asked, {"spec": {}}, FakeView())

    time = "2026-11-21T04:00:00Z"
    assert approved["status"] == {
        "conditions": [{"type": "Approved", "status": "True", "lastUpdateTime": time, "lastTransitionTime": time}]
    }
    assert requests.status(asked, approved, FakeView())["status"] == approved["status"]


def test_local_services_are_available() -> None:
    services = GROUP_STRATEGIES["APIService.apiregistration.k8s.io"]

    (condition,) = find_list(find_object(services.create({"spec": {}}, FakeView()), "status"), "conditions")
    assert isinstance(condition, dict)
    assert condition["reason"] == "Local"
    assert services.create({"spec": {"service": {}}}, FakeView()) == {"spec": {"service": {}}}


@pytest.mark.parametrize("kind", sorted(GROUP_STRATEGIES))
def test_strategies_do_not_modify_their_arguments(kind: str) -> None:
    strategy = GROUP_STRATEGIES[kind]
    bare: JsonObject = {"metadata": {"name": "a"}}
    whole: JsonObject = {**bare, "spec": {}, "status": {"conditions": [{"type": "Approved"}]}}
    for obj in (bare, whole):
        before = repr(obj)
        strategy.create(obj, FakeView())
        strategy.update(obj, {}, FakeView())
        strategy.status(obj, {}, FakeView())
        assert repr(obj) == before
