"""The effects of a hook's run, if it succeeds and if it fails: lines in the log, and patches of objects and values."""

import base64
import json
import logging
import re
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import VALUES, bash, hooked
from tests.runtime.tasks.test_start_tasks import notes, noting
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.hooks.running.log_budget import BURST_LINES
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.resources import APPLICATION, SECRET
from wharfinger.runtime.tasks.hook_runs import MAX_PROBLEMS

pytestmark = pytest.mark.unmeasured

ON_STARTUP = "{configVersion: v1, onStartup: 1}"
STATE = ObjectKey(SECRET, "prod", "wharfinger.app.app")


def leaving(*documents: JsonObject, variable: str, then: str = "true", config: str = ON_STARTUP) -> str:
    """Return a hook that writes these documents into the file that the environment variable ``variable`` names."""
    lines = "\n".join(json.dumps(document) for document in documents)
    return bash(config, f"cat >\"${variable}\" <<'J'\n{lines}\nJ\n{then}")


async def installed(world: World, folder: Path, hook: str, *, state: str, files: dict[str, str] | None = None) -> str:
    """Install a package with this hook, wait for this state, and return the message of the summary."""
    await world.repository()
    await world.push_folder(hooked(folder / "hooked", {"a.sh": hook}, files=files), "hooked", "1.0.0")
    await world.create("prod", "app", package="hooked")
    obj = await world.until_state("prod", "app", state)
    return find_str(obj, "status", "summary", "message")


async def test_a_failed_hook_may_still_write_a_status_if_marked_so(tmp_path: Path) -> None:
    api = "networking.k8s.io/v1"
    ingress: JsonObject = {
        "apiVersion": api,
        "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "prod"},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    }
    target: JsonObject = {"operation": "MergePatch", "apiVersion": api, "kind": "Ingress", "name": "web"}
    target["namespace"] = "prod"
    reported: JsonObject = {
        **target,
        "subresource": "status",
        "ignoreHookError": True,
        "mergePatch": {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}},
    }
    silent: JsonObject = {**target, "mergePatch": {"metadata": {"labels": {"touched": "yes"}}}}
    hook = leaving(reported, silent, variable="KUBERNETES_PATCH_PATH", then="exit 1")
    async with open_world(tmp_path) as world:
        await world.client.create(ingress)
        assert "exit status 1" in await installed(world, tmp_path, hook, state="Failed")
        resource = await world.client.resource_type(api, "Ingress")
        seen = await world.until_object(
            ObjectKey(resource, "prod", "web"), lambda obj: bool(find_list(obj, "status", "loadBalancer", "ingress"))
        )
        assert find_str(seen, "metadata", "labels", "touched") == ""


@pytest.mark.parametrize(("then", "why"), [("true", "operation"), ("exit 1", "exit status 1")], ids=["good", "bad"])
async def test_invalid_patches_fail_the_hook(tmp_path: Path, then: str, why: str) -> None:
    hook = leaving({"operation": "Unheard"}, variable="KUBERNETES_PATCH_PATH", then=then)
    async with open_world(tmp_path) as world:
        message = await installed(world, tmp_path, hook, state="Failed")
        assert "hooks/a.sh" in message
        assert why in message


async def test_unreadable_metrics_prevent_object_patches(tmp_path: Path) -> None:
    made: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "prod"}}
    nameless = 'echo \'{"action": "set", "value": 1}\' >"$METRICS_PATH"'
    hook = leaving({"operation": "Create", "object": made}, variable="KUBERNETES_PATCH_PATH", then=nameless)
    async with open_world(tmp_path) as world:
        assert "name: required for set" in await installed(world, tmp_path, hook, state="Failed")
        assert await world.config_map("prod", "made") is None


async def test_only_the_first_failed_operations_are_reported(tmp_path: Path) -> None:
    patch: JsonObject = {"operation": "MergePatch", "kind": "ConfigMap", "mergePatch": {"data": {"a": "b"}}}
    lost = [{**patch, "name": f"lost-{number}"} for number in range(MAX_PROBLEMS + 5)]
    async with open_world(tmp_path) as world:
        hook = leaving(*lost, variable="KUBERNETES_PATCH_PATH")
        message = await installed(world, tmp_path, hook, state="Failed")
        assert f"lost-{MAX_PROBLEMS - 1}" in message
        assert f"lost-{MAX_PROBLEMS}:" not in message
        assert message.endswith("and 5 more")


async def test_a_hook_may_not_patch_the_settings(tmp_path: Path) -> None:
    patch: JsonObject = {"op": "add", "path": "/hooked/mode", "value": "fast"}
    async with open_world(tmp_path) as world:
        hook = leaving(patch, variable="CONFIG_VALUES_JSON_PATCH_PATH")
        assert "only hooks of packages in addon-operator" in await installed(world, tmp_path, hook, state="Failed")


async def test_a_patch_that_changes_nothing_is_not_recorded(tmp_path: Path) -> None:
    patch: JsonObject = {"op": "add", "path": "/hooked/seen", "value": 0}
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, leaving(patch, variable="VALUES_JSON_PATCH_PATH"), state="Ready")
        assert world.runtime.instances["prod.app"].patches == ()


async def test_excessive_output_of_a_hook_is_logged_only_in_part(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger")
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, bash(ON_STARTUP, f"seq 1 {BURST_LINES + 50}"), state="Ready")
    said = [record.message for record in caplog.records if record.message.startswith("hooks/a.sh: ")]
    left_out = re.fullmatch(
        r"hooks/a\.sh: (\d+) lines left out; a hook may log 1000 lines or 1024 KiB in a burst, and 2 lines .*", said[-1]
    )
    assert left_out is not None, said[-1]
    # A slow machine may need seconds to read the output, and for each second two more lines may be logged.
    assert BURST_LINES <= len(said) - 1 < BURST_LINES + 50
    assert len(said) - 1 + int(left_out[1]) == BURST_LINES + 50


SECRET_OF_ALL = {
    "global-hooks/hooks/all.sh": bash("{configVersion: v1, beforeAll: 1}", ":"),
    "global-hooks/openapi/config-values.yaml": "type: object\nproperties: {token: {type: string, writeOnly: true}}\n",
    "global-hooks/openapi/values.yaml": "x-extend: {schema: config-values.yaml}\ntype: object\n",
    "alpha/hooks/own.sh": bash(
        "{configVersion: v1, beforeHelm: 1}",
        'token=$(jq -r .global.token "$VALUES_PATH"); echo "the token is $token"\n'
        'echo "{\\"name\\": \\"m\\", \\"set\\": 1, \\"labels\\": {\\"t\\": \\"$token\\"}}" >"$METRICS_PATH"',
    ),
}


async def test_secret_global_values_are_masked_in_the_output_of_all_hooks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger")
    write(tmp_path / "modules", SECRET_OF_ALL)
    for name in ("global-hooks/hooks/all.sh", "alpha/hooks/own.sh"):
        (tmp_path / "modules" / name).chmod(0o755)
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        settings: JsonObject = {"settings": {"token": "hunter22-secret"}}
        await world.create_module("global", package="global-hooks", version="0.0.0", spec=settings)
        await world.create_module("alpha", version="0.0.0")
        await world.until_state("", "alpha", "Ready")
        published = world.runtime.tools.metrics.exposition_hooks()
    assert "the token is" in caplog.text
    assert 'module="alpha"' in published
    assert "hunter22-secret" not in caplog.text + published


async def test_global_settings_are_in_the_configuration_values_of_every_hook(tmp_path: Path) -> None:
    """Global hooks, hooks of Modules and enabled scripts all get the global settings in the field ``global``
    (spec/hook-protocol §1.6).
    """
    note = f'jq -c . "$CONFIG_VALUES_PATH" >>"{tmp_path}/notes"'
    write(
        tmp_path / "modules",
        {
            "global-hooks/hooks/all.sh": bash("{configVersion: v1, beforeAll: 1}", note),
            "alpha/hooks/own.sh": bash("{configVersion: v1, beforeHelm: 1}", note),
            "alpha/enabled": f'#!/bin/bash\n{note}\necho true >"$MODULE_ENABLED_RESULT"\n',
        },
    )
    for name in ("global-hooks/hooks/all.sh", "alpha/hooks/own.sh", "alpha/enabled"):
        (tmp_path / "modules" / name).chmod(0o755)
    settings: JsonObject = {"settings": {"colour": "blue"}}
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        await world.create_module("global", package="global-hooks", version="0.0.0", spec=settings)
        await world.until_state("", "global", "Ready")
        await world.create_module("alpha", version="0.0.0")
        await world.until_state("", "alpha", "Ready")
    seen = '{"alpha":{},"global":{"colour":"blue"}}'
    assert sorted(set(notes(tmp_path))) == [seen, '{"global":{"colour":"blue"}}']
    assert notes(tmp_path).count(seen) >= 2


async def test_secrets_are_not_collected_for_each_published_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[str] = []

    def secrets(instance: Instance) -> tuple[str, ...]:
        gathered.append(instance.id.name)
        return ()

    monkeypatch.setattr(Instance, "secrets", property(secrets))
    line = '{\\"name\\": \\"m\\", \\"set\\": 1, \\"labels\\": {\\"a\\": \\"$i\\", \\"b\\": \\"$i\\"}}'
    hook = bash(ON_STARTUP, f'for i in $(seq 500); do echo "{line}"; done >"$METRICS_PATH"')
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, hook, state="Ready")
        assert world.runtime.tools.metrics.exposition_hooks().count('b="') == 500
    assert len(gathered) < 50


@pytest.mark.slow
async def test_an_unreadable_state_record_is_reported_and_does_not_delay_a_removal(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            hook = noting(tmp_path, "{configVersion: v1, beforeDeleteHelm: 1}", "before")
            await installed(world, tmp_path, hook, state="Ready")
        broken = base64.b64encode(b"{").decode()
        await ground.client.merge_patch(STATE, {"data": {"state.json": broken}})
        async with ground.open_world() as world:
            failed = await world.until_state("prod", "app", "Degraded")
            assert "delete the Secret to start without a recorded state" in find_str(
                failed, "status", "summary", "message"
            )
        await ground.client.delete(app_key("app"))
        async with ground.open_world() as world:
            await world.until_gone("prod", "app")
            assert await world.config_map("prod", "out") is None
            await world.until_no_object(STATE)
        assert notes(tmp_path) == []


@pytest.mark.slow
async def test_patches_invalid_for_a_new_version_are_dropped(
    tmp_path: Path,
) -> None:
    patch: JsonObject = {"op": "add", "path": "/hooked/seen", "value": 5}
    folder = tmp_path / "hooked"
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, leaving(patch, variable="VALUES_JSON_PATCH_PATH"), state="Ready")
        assert find_str(await world.config_map("prod", "out"), "data", "seen") == "5"
        (folder / "package.yaml").write_text((folder / "package.yaml").read_text().replace("1.0.0", "1.1.0"))
        (folder / "openapi" / "values.yaml").write_text(VALUES.replace("maximum: 5", "maximum: 3"))
        lower: JsonObject = {**patch, "value": 2}
        (folder / "hooks" / "a.sh").write_text(leaving(lower, variable="VALUES_JSON_PATCH_PATH"))
        await world.push_folder(folder, "hooked", "1.1.0")
        await world.change("prod", "app", {"packageVersion": "1.1.0"})
        await world.until_state("prod", "app", "Ready")
        assert find_str(await world.config_map("prod", "out"), "data", "seen") == "2"


async def test_a_failed_synchronisation_with_allow_failure_does_not_delay_the_package(tmp_path: Path) -> None:
    config = (
        "configVersion: v1\nkubernetes:\n"
        "- {kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, allowFailure: true}\n"
    )
    (tmp_path / "fail-sync").touch()
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, noting(tmp_path, config, "sync"), state="Ready")
        assert notes(tmp_path) == ["sync"]


async def test_a_package_without_a_chart_becomes_ready(tmp_path: Path) -> None:
    folder = hooked(tmp_path / "hooked", {"a.sh": noting(tmp_path, ON_STARTUP, "x")})
    (folder / "templates" / "out.yaml").unlink()
    (folder / "templates").rmdir()
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        inspector = RuntimeInspector("x", world.runtime.now(), world.runtime)
        rendered = await inspector.render("prod.app")
        assert rendered is not None
        assert (rendered.manifest, rendered.problem, rendered.has_chart) == ("", "", False)
        assert world.runtime.dump()[0].release_revision == 0


def app_key(name: str) -> ObjectKey:
    """Return the key of an Application in ``prod``."""
    return ObjectKey(APPLICATION, "prod", name)


async def test_json_output_of_a_hook_is_logged_with_fields_and_masked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="wharfinger")
    said = '{"level":"warn","msg":"disk is low","disk":"sda","note":"hunter2-secret","password":"x1y2z3"}'
    hook = bash(ON_STARTUP, f"echo '{said}'")
    async with open_world(tmp_path) as world:
        folder = hooked(tmp_path / "hooked", {"a.sh": hook})
        schema = folder / "openapi" / "settings.yaml"
        schema.write_text("type: object\nproperties: {token: {type: string, writeOnly: true}}\n")
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked", settings={"token": "hunter2-secret"})
        await world.until_state("prod", "app", "Ready")
    record = next(record for record in caplog.records if record.getMessage() == "hooks/a.sh: disk is low")
    assert record.levelname == "WARNING"
    fields = vars(record)["fields"]
    assert fields["hook_disk"] == "sda"
    assert (fields["hook"], fields["binding"], fields["queue"], fields["output"]) == (
        "hooks/a.sh",
        "onStartup",
        "main",
        "stdout",
    )
    assert "hunter2-secret" not in str(fields)
    assert "x1y2z3" not in str(fields)


async def test_metrics_of_a_successful_run_are_published_until_the_hooks_stop(tmp_path: Path) -> None:
    metric: JsonObject = {"name": "depth", "action": "set", "value": 3, "labels": {"queue": "mail"}}
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, leaving(metric, variable="METRICS_PATH"), state="Ready")
        published = world.runtime.tools.metrics.exposition_hooks()
        assert 'depth{hook="hooks/a.sh",module="app",namespace="prod",queue="mail"} 3' in published
        measured = world.runtime.tools.metrics.exposition()
        counted = 'success_total{module="app",namespace="prod",hook="hooks/a.sh",binding="onStartup",queue="main"} 1'
        assert f"wharfinger_hook_run_{counted}" in measured
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert "depth" not in world.runtime.tools.metrics.exposition_hooks()


async def test_invalid_metrics_fail_the_run_and_are_not_published(tmp_path: Path) -> None:
    bad: JsonObject = {"name": "depth", "action": "set"}
    async with open_world(tmp_path) as world:
        message = await installed(world, tmp_path, leaving(bad, variable="METRICS_PATH"), state="Failed")
        assert "got bad metrics" in message
        assert world.runtime.tools.metrics.exposition_hooks() == ""
