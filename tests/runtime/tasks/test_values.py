"""The layers of a package's values. The patches of hooks are the last layer."""

from pathlib import Path

from tests.runtime.lifecycle.test_package_state import open_cluster
from tests.runtime.support.notes import instance, put
from tests.runtime.tasks.test_hook_runs import hooked
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.definition import read_definition
from wharfinger.runtime.lifecycle.package_state import PackageState, state_record
from wharfinger.runtime.tasks.values import MAX_PATHS, changed_paths, values_of


async def test_layers_override_each_other_in_order(tmp_path: Path) -> None:
    one = instance()
    hooked(tmp_path, {}, files={"values.yaml": "mode: a\nseen: 1\n"})
    put(one, files={"definition": read_definition(tmp_path, name="hooked", version="1.0.0")})
    assert values_of(one, {}) == {"mode": "a", "seen": 1}
    assert values_of(one, {"mode": "b"}) == {"mode": "b", "seen": 1}
    async with open_cluster() as client:
        one.record = state_record(client, one.id)
        one.record.state = PackageState(patches=({"op": "add", "path": "/hooked/seen", "value": 4},))
        assert values_of(one, {"mode": "b"}) == {"mode": "b", "seen": 4}


def test_changes_are_listed_by_path_without_values() -> None:
    before: JsonObject = {"web": {"replicas": 1, "same": [1]}, "gone": True}
    after: JsonObject = {"web": {"replicas": 2, "same": [1]}, "list": [1], "secret": "hunter"}
    assert changed_paths(before, after) == ("gone", "list", "secret", "web.replicas")
    assert changed_paths(after, after) == ()
    many: JsonObject = {str(number): number for number in range(MAX_PATHS + 3)}
    assert len(changed_paths({}, many)) == MAX_PATHS
