"""Runs of package hooks: real bash and Python processes, real events, and values that are used in the release.

The control plane runs in this process (`tests/runtime/support/world.py`).
"""

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from tests.packages.support.charts import write
from tests.programs import ROOT
from tests.runtime.support.notes import Notes, instance, put
from tests.runtime.support.world import SOON, World, open_ground, open_world
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.hooks.config.bindings import UNBOUND, HookPool
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.containment.cluster_access import CredentialsPolicy
from wharfinger.hooks.metrics.hook_metrics import HookMetrics
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.log_budget import BURST_LINES, LINES_PER_S
from wharfinger.hooks.running.runner import HookOutcome, HookRun, LogRecord
from wharfinger.hooks.watching.context_file import Context
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import read_definition
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import Kind, SlotLimits
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.identity import AppId, ModuleId
from wharfinger.runtime.resources.resources import CONFIG_MAP
from wharfinger.runtime.tasks.hook_runs import Cause, pools_of, run_hook

PACKAGE = "apiVersion: v1\ntype: Application\nname: {name}\nversion: 1.0.0\n"
VALUES = (
    "x-extend: {schema: settings.yaml}\ntype: object\n"
    "properties:\n  seen: {type: integer, minimum: 0, maximum: 5, default: 0}\n"
)
TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {seen: {{ .Values.seen | quote }}}\n"


def hooked(folder: Path, hooks: dict[str, str], *, name: str = "hooked", files: dict[str, str] | None = None) -> Path:
    """Write a package with a package.yaml and these hooks."""
    texts = {
        "package.yaml": PACKAGE.format(name=name),
        "openapi/settings.yaml": "type: object\nproperties: {mode: {type: string}}\n",
        "openapi/values.yaml": VALUES,
        "templates/out.yaml": TEMPLATE,
        **{f"hooks/{hook}": text for hook, text in hooks.items()},
        **(files or {}),
    }
    write(folder, texts)
    for hook in hooks:
        (folder / "hooks" / hook).chmod(0o755)
    return folder


def bash(config: str, body: str) -> str:
    """Return the script of a hook with this configuration and these commands."""
    return f"#!/usr/bin/env bash\nset -eu\nif [ \"${{1:-}}\" = --config ]; then cat <<'C'\n{config}\nC\nexit 0; fi\n{body}\n"


def config_map(name: str, labels: JsonObject | None = None, namespace: str = "prod") -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


async def until_data(world: World, name: str, key: str, wanted: str, namespace: str = "prod") -> None:
    """Wait until a key of a ConfigMap has this value."""
    await world.until_object(ObjectKey(CONFIG_MAP, namespace, name), lambda obj: find_str(obj, "data", key) == wanted)


COUNTING = bash(
    "configVersion: v1\n"
    "kubernetes:\n- {name: maps, apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {watch: me}}, "
    "jqFilter: .metadata.name, includeSnapshotsFrom: [maps]}\n",
    'count=$(jq ".[-1].snapshots.maps | length" "$BINDING_CONTEXT_PATH")\n'
    'echo "{\\"op\\":\\"add\\",\\"path\\":\\"/hooked/seen\\",\\"value\\":$count}" >"$VALUES_JSON_PATCH_PATH"',
)


@pytest.mark.slow
async def test_an_event_runs_a_hook_and_its_patched_values_are_applied(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"count.sh": COUNTING}), "hooked", "1.0.0")
        await world.client.create(config_map("before", {"watch": "me"}))
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await until_data(world, "out", "seen", "1")
        downloads = len(world.downloads)
        await world.client.create(config_map("after", {"watch": "me"}))
        await until_data(world, "out", "seen", "2")
        assert len(world.downloads) == downloads
        await world.client.delete(ObjectKey(CONFIG_MAP, "prod", "before"))
        await until_data(world, "out", "seen", "1")


@pytest.mark.slow
async def test_a_patch_that_the_schema_refuses_fails_the_hook_and_changes_nothing(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground, replace(ground, backoff=SOON).open_world() as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"count.sh": COUNTING}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        for number in range(6):
            await world.client.create(config_map(f"m{number}", {"watch": "me"}))
        degraded = await world.until_state("prod", "app", "Degraded")
        message = find_str(degraded, "status", "summary", "message")
        assert "count.sh" in message
        assert "seen" in message
        condition = world.condition(degraded, "Ready")
        assert find_str(condition, "reason") == "EventHookFailed"
        await world.client.delete(ObjectKey(CONFIG_MAP, "prod", "m0"))
        await world.until_state("prod", "app", "Ready")


@pytest.mark.slow
async def test_hooks_of_an_application_are_limited_to_their_namespace(tmp_path: Path) -> None:
    touching = bash(
        "configVersion: v1\nonStartup: 1\n",
        'echo \'{"operation":"CreateOrUpdate","object":{"apiVersion":"v1","kind":"ConfigMap",'
        '"metadata":{"name":"mine","namespace":"default"}}}\' >"$KUBERNETES_PATCH_PATH"',
    )
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(
            hooked(tmp_path / "hooked", {"count.sh": COUNTING, "touch.sh": touching}), "hooked", "1.0.0"
        )
        await world.client.create(config_map("elsewhere", {"watch": "me"}, namespace="default"))
        await world.create("prod", "app", package="hooked")
        failed = await world.until_state("prod", "app", "Failed")
        message = find_str(failed, "status", "summary", "message")
        assert "touch.sh" in message
        assert "own namespace" in message
        assert await world.config_map("default", "mine") is None


@pytest.mark.slow
async def test_the_reloader_rolls_a_deployment_when_its_config_map_changes(tmp_path: Path) -> None:
    """The example package ``reloader`` is installed. If a watched ConfigMap is created or changed, an annotation in the pod
    template of the Deployment changes.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(ROOT / "examples" / "reloader", "reloader", "1.0.0")
        deployment: JsonObject = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "prod"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "registry.example/c"}]},
                },
            },
        }
        await world.client.create(deployment)
        token: JsonObject = {"notify": {"token": "hunter2222"}}
        await world.create("prod", "reload", package="reloader", settings=token)
        ready = await world.until_state("prod", "reload", "Ready")
        assert "hunter2222" not in str(ready["status"])
        snapshot = world.runtime.dump_by_name("prod.reload")
        assert snapshot is not None
        assert "hunter2222" not in str((snapshot.settings, snapshot.values, snapshot.conditions))
        watched = config_map("settings", {"wharfinger.dev/reload": "true"})
        watched["metadata"] = {
            "name": "settings",
            "namespace": "prod",
            "labels": {"wharfinger.dev/reload": "true"},
            "annotations": {"wharfinger.dev/reload-targets": "web,missing"},
        }
        await world.client.create(watched)
        deployments = await world.client.resource_type("apps/v1", "Deployment")
        path = ("spec", "template", "metadata", "annotations", "reload.wharfinger.dev/settings")
        rolled = await world.until_object(
            ObjectKey(deployments, "prod", "web"), lambda obj: len(find_str(obj, *path)) == 64
        )
        first = find_str(rolled, *path)
        await world.client.merge_patch(ObjectKey(CONFIG_MAP, "prod", "settings"), {"data": {"a": "2"}})
        await world.until_object(
            ObjectKey(deployments, "prod", "web"), lambda obj: find_str(obj, *path) not in ("", first)
        )


@pytest.mark.slow
async def test_a_schedule_runs_its_hooks_with_snapshots(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(ROOT / "examples" / "reloader", "reloader", "1.0.0")
        await world.create("prod", "reload", package="reloader")
        await world.until_state("prod", "reload", "Ready")
        await until_data(world, "reloader-report", "watched", "0")
        await world.client.create(config_map("settings", {"wharfinger.dev/reload": "true"}))
        with trio.fail_after(60):
            while True:  # the monitor may see the ConfigMap some time after its creation
                tasks = world.runtime.build_schedule_tasks("* * * * *")
                assert [(task.instance.id.name, task.lane) for task in tasks] == [("prod.reload", "hooks/main")]
                world.runtime.submit(tasks)
                await world.runtime.queues.wait_idle("prod.reload")
                report = await world.config_map("prod", "reloader-report")
                if find_str(report, "data", "watched") == "1":
                    break
        await until_data(world, "reload-settings", "watched", "1")


@dataclass
class Watched:
    """Tools with a hook runner that runs no hook, but records each run that is requested."""

    runs: list[HookRun] = field(default_factory=list)
    prints: int = 0
    slots: Slots = field(default_factory=lambda: Slots(SlotLimits(hooks=1)))
    metrics: HookMetrics = field(default_factory=HookMetrics)
    hook_credentials: CredentialsPolicy = CredentialsPolicy.MODULES
    tracer: None = None

    @property
    def hook_runner(self) -> "Watched":
        return self

    async def run(self, run: HookRun) -> HookOutcome:
        self.runs.append(run)
        for number in range(self.prints):
            assert run.on_record is not None
            run.on_record(LogRecord("stdout", "info", f"line {number}"))
        return HookOutcome(True, "", (), (), (), (), (), 0.0, 0.0, 0)


async def test_a_hook_gets_the_state_at_the_start_of_its_run(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The run waits for a slot, and values and events change during the wait. The hook gets the changed values and events.

    The wait is not part of the measured duration of the run.
    """
    one, watched, told = instance(), Watched(), ["old"]
    put(one, files={"definition": read_definition(hooked(tmp_path / "hooked", {}), name="hooked", version="1.0.0")})
    put(one, configuration={"values": {"seen": 1}})
    hook = Hook("hooks/a.sh", Path("a.sh"), (), Path(), UNBOUND)
    tools = cast("Tools", watched)

    async def hold() -> None:
        async with watched.slots.use(Kind.HOOK, "another"):
            await trio.sleep(100)

    def telling() -> Sequence[Context]:
        return ({"binding": told[0]},)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(run_hook, one, tools, Notes(), hook, telling, Cause("maps"))
        await trio.testing.wait_all_tasks_blocked()
        told[0] = "new"
        put(one, configuration={"values": {"seen": 2}})
    (run,) = watched.runs
    assert run.contexts == ({"binding": "new"},)
    assert run.values["hooked"] == {"seen": 2}
    sums = [line for line in watched.metrics.exposition().splitlines() if "hook_run_seconds_sum" in line]
    assert [line.split()[-1] for line in sums] == ["0"]


@pytest.mark.parametrize(
    ("policy", "module", "application"),
    [(CredentialsPolicy.MODULES, True, False), (CredentialsPolicy.ALL, True, True)],
)
async def test_hooks_of_an_application_get_the_daemons_credentials_only_by_option(
    tmp_path: Path, policy: CredentialsPolicy, module: bool, application: bool
) -> None:
    watched = Watched(hook_credentials=policy)
    hook = Hook("hooks/a.sh", Path("a.sh"), (), Path(), UNBOUND)
    for identity in (ModuleId("shop"), AppId("prod", "shop")):
        one = instance(identity)
        put(one, files={"definition": read_definition(hooked(tmp_path / "hooked", {}), name="hooked", version="1.0.0")})
        await run_hook(one, cast("Tools", watched), Notes(), hook, tuple, Cause("maps"))
        shutil.rmtree(tmp_path / "hooked")
    assert [run.credentials for run in watched.runs] == [module, application]


async def test_the_output_of_a_noisy_hook_is_limited_over_many_runs(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger")
    one, watched = instance(), Watched(prints=BURST_LINES)
    put(one, files={"definition": read_definition(hooked(tmp_path / "hooked", {}), name="hooked", version="1.0.0")})
    noisy, quiet = (Hook(f"hooks/{name}.sh", Path("a.sh"), (), Path(), UNBOUND) for name in ("noisy", "quiet"))
    runs, pause = 43, 2.0
    for _ in range(runs):
        await run_hook(one, cast("Tools", watched), Notes(), noisy, tuple, Cause("maps"))
        await trio.sleep(pause)
    watched.prints = 1
    await run_hook(one, cast("Tools", watched), Notes(), quiet, tuple, Cause("maps"))
    said = [record.message for record in caplog.records]
    lines = [message for message in said if message.startswith("hooks/noisy.sh: line ")]
    reports = [message for message in said if " lines left out; a hook may log " in message]
    assert BURST_LINES <= len(lines) <= BURST_LINES + LINES_PER_S * pause * runs
    assert len(lines) + sum(int(report.split(": ")[1].split()[0]) for report in reports) == runs * BURST_LINES
    assert len(reports) <= runs + 1
    assert said[-1] == "hooks/quiet.sh: line 0"  # the other hook has its own limit


@pytest.mark.parametrize(
    ("config", "of_package", "found"),
    [
        ("", "", (HookPool.WARM, "")),
        ("", "none", (HookPool.NONE, "")),
        ("", "builders", (HookPool.WARM, "builders")),
        ("pool: persistent", "", (HookPool.PERSISTENT, "")),
        ("pool: persistent", "none", (HookPool.NONE, "")),
        ("pool: persistent", "builders", (HookPool.PERSISTENT, "")),
        ("pool: none", "builders", (HookPool.NONE, "")),
        ("workerPool: own", "builders", (HookPool.WARM, "own")),
        ("workerPool: own", "none", (HookPool.NONE, "own")),
    ],
)
def test_the_pool_of_a_package_is_the_default_of_its_hooks(
    config: str, of_package: str, found: tuple[HookPool, str]
) -> None:
    read = read_hook_config(f"configVersion: v1\nonStartup: 1\n{config}\n".encode(), hook="a")
    hook = Hook("a", Path("/hooks/a"), (), Path("/hooks"), read)
    assert pools_of(hook, of_package) == found
