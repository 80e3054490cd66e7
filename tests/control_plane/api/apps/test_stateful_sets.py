"""Validation of updates of existing StatefulSets."""

from wharfinger.control_plane.api.apps.stateful_sets import stateful_set_update_errors
from wharfinger.formats.json.value import JsonObject


def test_an_invalid_old_template_is_tolerated() -> None:
    obj: JsonObject = {
        "spec": {
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "0%"}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always"}},
        }
    }
    fields = [error.field for error in stateful_set_update_errors(obj, obj)]
    assert fields == ["spec.updateStrategy.rollingUpdate.maxUnavailable"]
