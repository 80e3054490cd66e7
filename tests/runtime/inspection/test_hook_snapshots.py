"""The objects that the hooks of a package would see now. The contents of Secrets are masked."""

import json
from pathlib import Path

import pytest

from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.runtime.inspection.hook_snapshots import hook_snapshots, masked

HOOK = bash(
    "configVersion: v1\nkubernetes:\n"
    "- {name: maps, apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {watch: me}}, jqFilter: .metadata.name}\n"
    "- {name: logins, apiVersion: v1, kind: Secret, nameSelector: {matchNames: [login]}, jqFilter: .data}\n"
    "- {name: whole, apiVersion: v1, kind: Secret, nameSelector: {matchNames: [login]}}\n",
    "true",
)


def test_every_text_and_number_is_masked() -> None:
    value: JsonObject = {"a": "x", "b": [1, True, None], "c": {"d": 2.5}}
    assert masked(value) == {"a": "***", "b": ["***", True, None], "c": {"d": "***"}}


@pytest.mark.slow
async def test_snapshots_of_a_packages_hooks_are_shown(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": HOOK}), "hooked", "1.0.0")
        await world.client.create(config_map("seen", {"watch": "me"}))
        await world.secret("login", password="hunter2hunter2")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        (found,) = hook_snapshots(world.runtime.instances["prod.app"])
        assert found.hook == "hooks/a.sh"
        assert find(found.bindings, "maps", 0, "filterResult") == "seen"
        assert find(found.bindings, "logins", 0, "filterResult") == {"password": "***"}
        assert find(found.bindings, "whole", 0, "object", "kind") == "Secret"
        assert "aHVudGVyMmh1bnRlcjI=" not in json.dumps(found.bindings)
