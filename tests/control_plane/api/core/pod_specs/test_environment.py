"""Validation of environment variables with sources that exclude each other."""

from wharfinger.control_plane.api.core.pod_specs.environment import environment_errors
from wharfinger.formats.json.value import JsonObject

KEY: JsonObject = {"name": "m", "key": "k"}


def test_a_variable_with_two_sources_is_refused() -> None:
    fine: JsonObject = {
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": KEY}}],
        "envFrom": [{"secretRef": {"name": "a-"}}],
    }
    assert environment_errors(fine, "c") == []
    both: JsonObject = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": KEY, "secretKeyRef": KEY}}]}
    assert [error.field for error in environment_errors(both, "c")] == ["c.env[0].valueFrom"]
    assert len(environment_errors({"envFrom": [{}, {"configMapRef": {}, "secretRef": {"name": "s"}}]}, "c")) == 3
