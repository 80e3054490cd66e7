"""Validation of probes and lifecycle hooks of containers."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.probes import lifecycle_errors, probe_errors
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    "handler",
    [
        {"exec": {"command": ["a"]}},
        {"httpGet": {"port": "web", "path": "/", "scheme": "HTTP", "httpHeaders": [{"name": "A"}]}},
        {"tcpSocket": {"port": 80}},
        {"grpc": {"port": 80}},
    ],
)
def test_valid_probes_are_accepted(handler: JsonObject) -> None:
    probe: JsonObject = {**handler, "successThreshold": 1, "terminationGracePeriodSeconds": 3}
    assert probe_errors({"livenessProbe": probe}, "c", 30) == []


def test_a_sleep_may_not_exceed_the_grace_period() -> None:
    hook: JsonObject = {"lifecycle": {"preStop": {"sleep": {"seconds": 60}}}}
    assert lifecycle_errors(hook, "c", 60) == lifecycle_errors(hook, "c", None) == []
    assert len(lifecycle_errors(hook, "c", 59)) == 1
