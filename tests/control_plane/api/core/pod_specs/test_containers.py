"""Validation of containers: restart rules, ephemeral containers, and white space around the names of images."""

from tests.control_plane.support.pod_samples import spec_of
from wharfinger.control_plane.api.core.pod_specs.containers import ContainerRules, image_space_errors
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.formats.json.value import JsonObject, JsonValue

RULES = ContainerRules({}, (), 30, "Always", host_users=True)


def test_too_many_restart_rules_or_exit_codes_are_refused() -> None:
    values: list[JsonValue] = [1] * 256
    rule: JsonObject = {"action": "Restart", "exitCodes": {"operator": "In", "values": values}}
    container: JsonObject = {"name": "a", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule] * 21}
    found = RULES.regular(parts(spec_of(container), "containers"), "c")
    assert [error.reason for error in found] == ["FieldValueTooMany"] * 22


def test_an_ephemeral_container_may_target_another_container() -> None:
    spec = spec_of(ephemeralContainers=[{"name": "e", "image": "i", "targetContainerName": "a"}])
    others = parts(spec, "containers")
    assert RULES.ephemeral(parts(spec, "ephemeralContainers"), others, "e") == []


def test_white_space_around_an_image_is_refused() -> None:
    assert image_space_errors({"image": "i"}, "c") == []
    assert len(image_space_errors({"image": "i\n"}, "c")) == 1
