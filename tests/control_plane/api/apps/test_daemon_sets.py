"""Validation of the selectors of existing DaemonSets."""

from wharfinger.control_plane.api.apps.daemon_sets import daemon_set_update_errors
from wharfinger.formats.json.value import JsonObject


def test_invalid_label_values_of_an_old_selector_are_tolerated() -> None:
    term: JsonObject = {"key": "a", "operator": "NotIn", "values": ["a b"]}
    obj: JsonObject = {"spec": {"selector": {"matchExpressions": [term]}, "updateStrategy": {"type": "RollingUpdate"}}}
    fields = [error.field for error in daemon_set_update_errors(obj, obj)]
    assert "spec.selector" not in str([field for field in fields if "selector" in field])
    assert "spec.updateStrategy.rollingUpdate" in fields
