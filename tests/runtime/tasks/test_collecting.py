"""Objects that the hooks of a package write. The removal of the package deletes those that its hooks created.

The deletion policy of the package, or the annotation ``helm.sh/resource-policy`` of an object, can prevent this.
"""

from pathlib import Path

import pytest

from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find_object
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.resources.resources import CONFIG_MAP

CLAIM = ResourceType("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
CLAIMED: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
KEEP: JsonObject = {"annotations": {"helm.sh/resource-policy": "keep"}}


def operation(how: str, name: str, *, kind: str = "ConfigMap", **more: JsonValue) -> str:
    """Return an object operation of a hook (``Create``, ``CreateIfNotExists`` or ``CreateOrUpdate``) as one line of JSON."""
    metadata: JsonObject = {"name": name, **(KEEP if name == "kept" else {})}
    obj: JsonObject = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}
    return encode_json({"operation": how, "object": obj}).decode()


OPERATIONS = (
    operation("Create", "made"),
    operation("CreateIfNotExists", "there"),
    operation("CreateOrUpdate", "replaced", data={"a": "2"}),
    operation("CreateOrUpdate", "kept"),
    operation("Create", "data", kind="PersistentVolumeClaim", spec=CLAIMED),
)
MAKING = "cat >\"$KUBERNETES_PATCH_PATH\" <<'E'\n" + "\n".join(OPERATIONS) + "\nE\n"
ALL = {"made", "there", "replaced", "kept", "data"}


async def installed(world: World, tmp_path: Path, more: JsonObject | None = None) -> None:
    await world.repository()
    hook = bash("{configVersion: v1, onStartup: 1}", MAKING)
    await world.push_folder(hooked(tmp_path / "hooked", {"make.sh": hook}), "hooked", "1.0.0")
    for name in ("there", "replaced"):
        await world.client.create(config_map(name))
    await world.create("prod", "app", package="hooked", more=more)
    await world.until_state("prod", "app", "Ready")
    assert await left(world) == ALL


async def left(world: World) -> set[str]:
    """Return the names of the objects that still exist."""
    found: set[str] = set()
    for name in ALL:
        try:
            await world.client.get(ObjectKey(CLAIM if name == "data" else CONFIG_MAP, "prod", name))
            found.add(name)
        except NotFoundError:
            continue
    return found


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("policy", "stays"),
    [
        (None, {"there", "replaced", "kept", "data"}),
        ("DeleteAll", {"there", "replaced", "kept"}),
        ("Orphan", ALL),
    ],
)
async def test_objects_of_hooks_are_deleted_with_the_release(
    tmp_path: Path, policy: JsonValue, stays: set[str]
) -> None:
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, None if policy is None else {"deletionPolicy": policy})
        replaced = await world.client.get(ObjectKey(CONFIG_MAP, "prod", "replaced"))
        assert find_object(replaced, "data") == {"a": "2"}
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert await left(world) == stays
