"""Validation of the statuses of Pods, in cases that no recording of a real API server covers."""

from tests.control_plane.support.pod_samples import pod_of
from wharfinger.control_plane.api.core.pods.status_validation import status_errors
from wharfinger.formats.json.value import JsonObject, JsonValue


def with_status(pod: JsonObject, **state: JsonValue) -> JsonObject:
    return {**pod, "status": {**state}}


def ended(name: str = "a", code: int = 0) -> JsonObject:
    return {"name": name, "state": {"terminated": {"exitCode": code}}}


def test_ephemeral_containers_are_not_restarted() -> None:
    old = with_status(pod_of(), ephemeralContainerStatuses=[ended("e")])
    new = with_status(pod_of(), ephemeralContainerStatuses=[{"name": "e", "state": {"running": {}}}])
    assert [error.field for error in status_errors(new, old)] == ["status.ephemeralContainerStatuses[0].state"]


def test_only_containers_with_a_matching_restart_rule_restart() -> None:
    rule: JsonObject = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    container: JsonObject = {"name": "a", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    running: JsonObject = {"name": "a", "state": {"running": {}}}
    for code, count in ((42, 0), (1, 1)):
        old = with_status(pod_of(container), containerStatuses=[ended(code=code)])
        assert len(status_errors(with_status(pod_of(container), containerStatuses=[running]), old)) == count
    rule["action"] = "RestartAllContainers"
    old = with_status(pod_of(container), containerStatuses=[ended()])
    assert status_errors(with_status(pod_of(container), containerStatuses=[running]), old) == []


def test_invalid_resource_health_and_image_status_are_reported() -> None:
    resources: JsonValue = [
        {"resourceID": "1", "health": "Healthy", "message": ""},
        {"resourceID": "2", "health": "Unknown", "message": "m" * 2000},
    ]
    state: JsonObject = {
        "name": "a",
        "allocatedResourcesStatus": [{"name": "claim:c", "resources": resources}],
        "volumeMounts": [{"volumeStatus": {"image": {}}}, {"volumeStatus": {"image": {"imageRef": "r" * 300}}}],
    }
    new = with_status(pod_of(), containerStatuses=[state], ephemeralContainerStatuses=[state])
    assert len(status_errors(new, with_status(pod_of()))) == 8


def test_linux_users_are_refused_on_windows() -> None:
    pod = pod_of(os={"name": "windows"})
    new = with_status(pod, containerStatuses=[{"name": "a", "user": {"linux": {"uid": 1, "gid": 1}}}])
    assert [error.reason for error in status_errors(new, with_status(pod))] == ["FieldValueForbidden"]


def test_a_bound_pod_may_not_be_nominated() -> None:
    old = with_status(pod_of(nodeName="n"))
    errors = status_errors(with_status(pod_of(nodeName="n"), nominatedNodeName="m"), old)
    assert [error.reason for error in errors] == ["FieldValueForbidden"]
