"""Apply configurations of mutating policies. Lists are merged by their keys. Atomic values and unknown fields are refused."""

import pytest

from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.merging.apply_configuration import ConfigurationRefusedError, configured
from wharfinger.formats.json.value import JsonObject

PODS = builtin_list_types("", "v1", "Pod")
LIVE: JsonObject = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "1"}]}}


def test_lists_are_merged_by_their_keys() -> None:
    found = configured(LIVE, {"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "a", "tty": True}]}}, PODS)
    assert found["spec"] == {"containers": [{"name": "b", "image": "2"}, {"name": "a", "image": "1", "tty": True}]}


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (
            {"spec": {"containers": [{"name": "a", "args": ["x"]}]}},
            r"may not mutate atomic .*: .spec.containers\[0\].args",
        ),
        ({"spec": {"nothing": 1}}, "failed to convert patch object to typed object: .spec.nothing: field not declared"),
        ({"spec": {"nothing": 1}, "x": 1}, "failed to convert patch object to typed object: "),
    ],
)
def test_invalid_configurations_are_refused(configuration: JsonObject, message: str) -> None:
    with pytest.raises(ConfigurationRefusedError, match=message):
        configured(LIVE, configuration, PODS)
