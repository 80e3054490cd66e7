"""What a package's workloads left behind goes with it, as far as it says so, and nothing else does."""

from pathlib import Path

import pytest

from tests.runtime.test_hook_runs import hooked
from tests.runtime.world import World, open_world
from wharfinger.formats.json_value import JsonObject, JsonValue
from wharfinger.formats.yaml_writer import write_yaml
from wharfinger.runtime.resources import CONFIG_MAP, SECRET

SCHEMA = (
    "type: object\nproperties:\n  seen: {type: integer, default: 0}\n"
    "  orphanResources: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}\n"
)


def left(kind: str, name: str, **metadata: JsonValue) -> JsonObject:
    """What a workload of prod/app made."""
    labels: JsonObject = {"app.kubernetes.io/instance": "app"}
    body: JsonObject = {"name": name, "namespace": "prod", "labels": labels, **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": body}


async def installed(world: World, tmp_path: Path, orphans: JsonValue) -> None:
    await world.repository()
    folder = hooked(
        tmp_path / "hooked",
        {},
        files={"openapi/values.yaml": SCHEMA, "values.yaml": write_yaml({"orphanResources": orphans})},
    )
    await world.push_folder(folder, "hooked", "1.0.0")
    await world.create("prod", "app", package="hooked")
    await world.until_state("prod", "app", "Ready")


async def test_declared_kinds_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await installed(
            world, tmp_path, [{"kind": "ConfigMap", "version": "v1"}, {"kind": "Namespace", "version": "v1"}]
        )
        kept: JsonObject = {"helm.sh/resource-policy": "keep"}
        foreign: JsonObject = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "prod"}
        await world.client.create(left("ConfigMap", "orphan"))
        await world.client.create(left("ConfigMap", "kept", annotations=kept))
        await world.client.create(left("ConfigMap", "foreign", annotations=foreign))
        await world.client.create(left("ConfigMap", "somebody-elses", labels={"app.kubernetes.io/instance": "b"}))
        await world.client.create(left("Secret", "undeclared"))
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        names = {str(item.get("metadata")) for item in (await world.client.list(CONFIG_MAP, "prod")).items}
        found = {
            name for name in ("orphan", "kept", "foreign", "somebody-elses") if any(f"'{name}'" in one for one in names)
        }
        assert found == {"kept", "foreign", "somebody-elses"}
        secrets = {str(item.get("metadata")) for item in (await world.client.list(SECRET, "prod")).items}
        assert any("'undeclared'" in one for one in secrets)


async def test_a_declaration_that_cannot_be_read_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    orphans: JsonValue = [{"kind": "ConfigMap"}, "x", {"kind": 1, "version": "v1"}, {"kind": "Ghost", "version": "v9"}]
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, orphans)
        await world.client.create(left("ConfigMap", "stays"))
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert any("'stays'" in str(item) for item in (await world.client.list(CONFIG_MAP, "prod")).items)
    assert "orphanResources[0]: kind and version are required" in caplog.text
