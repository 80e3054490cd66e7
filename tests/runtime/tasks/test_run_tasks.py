"""Removals, and the task Run: it repeats its passes (render, apply, afterHelm hooks) as long as hooks change values."""

import dataclasses
import os
from contextlib import closing
from pathlib import Path

import pytest
import trio

from tests.runtime.support.killing import held, held_hook
from tests.runtime.support.notes import NO_TOOLS, Notes, instance
from tests.runtime.support.world import open_ground, open_world
from tests.runtime.tasks.test_crd_tasks import module
from tests.runtime.tasks.test_hook_runs import bash, hooked, until_data
from tests.runtime.tasks.test_start_tasks import notes, noting
from wharfinger.formats.json.value import find_int, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.process.journal_file import JournalFile
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.journal_machine import Effect, Event, Keep, State
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId
from wharfinger.runtime.resources.resources import CONFIG_MAP, MODULE, SECRET
from wharfinger.runtime.tasks.pipeline import Pipeline
from wharfinger.runtime.tasks.run_tasks import MAX_ROUNDS

DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)


def counting_up(limit: int) -> str:
    """Return an afterHelm hook that increments a value up to a limit."""
    return bash(
        "{configVersion: v1, afterHelm: 1}",
        f'seen=$(jq .hooked.seen "$VALUES_PATH"); [ "$seen" -ge {limit} ] || '
        'echo "{\\"op\\":\\"add\\",\\"path\\":\\"/hooked/seen\\",\\"value\\":$((seen + 1))}" >"$VALUES_JSON_PATCH_PATH"',
    )


@pytest.mark.slow
async def test_values_changed_by_afterhelm_hooks_are_applied_until_stable(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"up.sh": counting_up(3)}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await until_data(world, "out", "seen", "3")


@pytest.mark.slow
async def test_endless_value_changes_of_hooks_are_reported(tmp_path: Path) -> None:
    folder = hooked(tmp_path / "hooked", {"up.sh": counting_up(99)})
    values = folder / "openapi" / "values.yaml"
    values.write_text(values.read_text().replace("maximum: 5, ", ""))
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        failed = await world.until_state("prod", "app", "Failed")
        message = find_str(failed, "status", "summary", "message")
        assert f"{MAX_ROUNDS} times in a row: hooks/up.sh (seen);" in message
        assert find_str(world.condition(failed, "Ready"), "reason") == "ValuesLoop"


async def test_hooks_run_before_and_after_the_uninstall(tmp_path: Path) -> None:
    hooks = {
        "before.sh": noting(tmp_path, "{configVersion: v1, beforeDeleteHelm: 1}", "before"),
        "after.sh": noting(tmp_path, "{configVersion: v1, afterDeleteHelm: 1}", "after"),
    }
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", hooks), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert notes(tmp_path) == ["before", "after"]
        assert await world.config_map("prod", "out") is None


@pytest.mark.slow
async def test_a_release_missing_in_the_cluster_is_applied_again(tmp_path: Path) -> None:
    """While no daemon runs, a user deletes the release. The next daemon applies it again, and then runs the afterHelm hook, which
    had failed before.
    """
    hook = bash("{configVersion: v1, afterHelm: 1}", f'[ -e "{tmp_path}/works" ]')
    async with open_ground(tmp_path) as ground:
        with closing(JournalFile(tmp_path / "journal.db")) as file:
            async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                await world.repository()
                await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
                await world.create("prod", "app", package="hooked")
                await world.until(
                    "prod", "app", lambda obj: "exit status 1" in find_str(obj, "status", "summary", "message")
                )
                assert await world.config_map("prod", "out") is not None
            for secret in (await ground.client.list(SECRET, "prod")).items:
                await ground.client.delete(ObjectKey(SECRET, "prod", find_str(secret, "metadata", "name")))
            await ground.client.delete(ObjectKey(CONFIG_MAP, "prod", "out"))
            (tmp_path / "works").touch()
            async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                await world.until_state("prod", "app", "Ready")
                assert await world.config_map("prod", "out") is not None


@pytest.mark.slow
async def test_a_restart_without_changes_writes_nothing_to_the_journal(tmp_path: Path) -> None:
    """The restarted daemon writes to the journal only when the settings change later."""
    seen: list[Effect] = []

    def observe(_package: str, _before: State, _event: Event, _after: State, effects: tuple[Effect, ...]) -> None:
        seen.extend(effects)

    async with open_ground(tmp_path) as ground:
        with closing(JournalFile(tmp_path / "journal.db")) as file:
            async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                await world.repository()
                await world.push("web", "1.0.0")
                await world.create("prod", "app", package="web")
                await world.until_state("prod", "app", "Ready")
            journal = Journal(file)
            journal.observe = observe
            async with dataclasses.replace(ground, journal=journal).open_world() as world:
                world.generations[("prod", "app")] = 1
                await world.until_state("prod", "app", "Ready")
                assert seen == []
                await world.change("prod", "app", {"settings": {"text": "other"}})
                await world.until_state("prod", "app", "Ready")
                assert {effect.name for effect in seen if isinstance(effect, Keep)} == {"apply/1"}


REACTING = """\
seen=$(jq .hooked.seen "$VALUES_PATH")
echo "seen$seen" >>"{folder}/notes"
[ -e "{folder}/react" ] || exit 0
if [ "$seen" = 0 ]; then
  echo '{{"op": "add", "path": "/hooked/seen", "value": 1}}' >"$VALUES_JSON_PATCH_PATH"
elif [ ! -e "{folder}/go" ]; then
  sleep 600 &
  echo $$ $! >"{folder}/held"
  wait
fi
"""
"""An afterHelm hook that changes a value once, and is held in the round after that."""


@pytest.mark.slow
async def test_an_interrupted_afterhelm_hook_of_a_round_without_an_apply_runs_again(
    tmp_path: Path,
) -> None:
    """A user requests a reconciliation. Its first pass changes no object, but the afterHelm hook changes a value.

    The daemon ends while the hook runs in the second pass. The next daemon runs the hook again, with the changed value.
    """
    os.mkfifo(tmp_path / "held")
    hook = bash("{configVersion: v1, afterHelm: 1}", REACTING.format(folder=tmp_path))
    async with open_ground(tmp_path) as ground:
        with closing(JournalFile(tmp_path / "journal.db")) as file:
            with trio.CancelScope() as daemon:
                async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                    await world.repository()
                    await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
                    await world.create("prod", "app", package="hooked")
                    await world.until_state("prod", "app", "Ready")
                    (tmp_path / "react").touch()
                    await world.request("prod", "app")
                    await trio.to_thread.run_sync(held, tmp_path)
                    daemon.cancel()
            assert notes(tmp_path) == ["seen0", "seen0", "seen1"]
            (tmp_path / "go").touch()
            async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                await world.until_runtime(lambda: notes(tmp_path) == ["seen0", "seen0", "seen1", "seen1"])
                await world.until_state("prod", "app", "Ready")


@pytest.mark.slow
async def test_a_release_with_an_interrupted_uninstall_is_installed_again(tmp_path: Path) -> None:
    """The daemon ends while the afterDeleteHelm hook runs, when the release is already deleted.

    The Module is enabled again, so the next daemon has to install the release, and must not take it for installed.
    """
    os.mkfifo(tmp_path / "held")
    hooks = {
        "a.sh": noting(tmp_path, "{configVersion: v1, afterHelm: 1}", "helm"),
        "b.sh": held_hook(tmp_path, "{configVersion: v1, afterDeleteHelm: 1}", "gone"),
    }
    async with open_ground(tmp_path) as ground:
        with closing(JournalFile(tmp_path / "journal.db")) as file:
            with trio.CancelScope() as daemon:
                async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                    await world.repository()
                    await world.push_folder(module(tmp_path, "harbour", {}, hooks), "harbour", "1.0.0")
                    await world.create_module("harbour")
                    await world.until_state("", "harbour", "Ready")
                    await world.change("", "harbour", {"enabled": False})
                    await trio.to_thread.run_sync(held, tmp_path)
                    daemon.cancel()
            assert notes(tmp_path) == ["helm", "gone"]
            wanted = await ground.client.merge_patch(ObjectKey(MODULE, "", "harbour"), {"spec": {"enabled": True}})
            async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                world.generations[("", "harbour")] = find_int(wanted, "metadata", "generation")
                await world.until_state("", "harbour", "Ready")
                assert notes(tmp_path) == ["helm", "gone", "helm"]
                assert await world.config_map(SYSTEM_NAMESPACE, "out") is not None


async def test_a_package_without_a_chart_runs_only_hooks(tmp_path: Path) -> None:
    hooks = {"start.sh": noting(tmp_path, "{configVersion: v1, onStartup: 1}", "start")}
    folder = hooked(tmp_path / "hooked", hooks)
    (folder / "templates" / "out.yaml").unlink()
    (folder / "templates").rmdir()
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        ready = await world.until_state("prod", "app", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "1.0.0"
        assert notes(tmp_path) == ["start"]
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")


async def test_uninstalling_an_invalid_release_name_succeeds() -> None:
    one = instance(AppId("prod", "a" * 60))
    assert one.files.definition is None
    await Pipeline(one, NO_TOOLS, Notes(), WorkScope("x")).removal()[0].execute()
