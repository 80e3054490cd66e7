"""Votes of enabled scripts: the keys of cached votes, and the cases in which a script runs again. No other package waits for a
script.
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.charts import write
from tests.runtime.support.notes import learn
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.hooks.running import enabled_script
from wharfinger.packages.digest import Digest
from wharfinger.runtime.package.enabled_vote import globals_for, vote_key
from wharfinger.runtime.package.events import Report, ReportBase, Voted
from wharfinger.runtime.package.findings import Finding
from wharfinger.runtime.package.instance import Host, Instance
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.tasks.install_tasks import ask_enabled_script

pytestmark = pytest.mark.unmeasured

ONE, OTHER = (Digest("sha256:" + digit * 64) for digit in "12")
VALUES: JsonObject = {"global": {"enabledModules": ["dns"]}, "web": {"a": 1, "b": [1, 2]}}
CONFIG: JsonObject = {"global": {}, "web": {"a": 1}}
ASKED = vote_key(ONE, Directives(), VALUES, CONFIG)


def test_equal_inputs_have_equal_keys_in_any_notation() -> None:
    again: JsonObject = {"web": {"b": [1, 2], "a": 1}, "global": {"enabledModules": ["dns"]}}
    assert vote_key(ONE, Directives(), again, {"web": {"a": 1}, "global": {}}) == ASKED


def test_every_input_of_a_vote_is_in_its_key() -> None:
    globally: JsonObject = {"global": {"enabledModules": ["dns", "web"]}, "web": {"a": 1, "b": [1, 2]}}
    keys = {
        ASKED,
        vote_key(OTHER, Directives(), VALUES, CONFIG),
        vote_key(ONE, Directives(requested="now"), VALUES, CONFIG),
        vote_key(ONE, Directives(forced="now"), VALUES, CONFIG),
        vote_key(ONE, Directives(), globally, CONFIG),
        vote_key(ONE, Directives(), VALUES, {"global": {}, "web": {"a": 2}}),
        vote_key(ONE, Directives(), {}, VALUES),
        vote_key(ONE, Directives(), VALUES, {}),
    }
    assert len(keys) == 8


def test_directives_that_a_script_does_not_see_are_not_in_the_key() -> None:
    wanted = replace(
        Directives(), reset="now", suspended=True, maintenance="x", settings_version=3, ignore_dependents=True
    )
    assert vote_key(ONE, wanted, VALUES, CONFIG) == ASKED


def test_a_script_does_not_see_that_its_own_package_is_on() -> None:
    seen = globals_for("web", {"enabledModules": ["dns", "web", "web-crd", "web-2"], "discovery": {"a": 1}})
    assert seen == {"enabledModules": ["dns", "web-2"], "discovery": {"a": 1}}
    assert globals_for("web", {}) == {}


@given(st.lists(st.sampled_from(["a", "b", "b-crd", "c"]), unique=True))
def test_the_state_of_a_package_is_hidden_from_its_own_script(others: list[str]) -> None:
    without: JsonObject = {"enabledModules": [*(name for name in others)]}
    with_own: JsonObject = {"enabledModules": [*(name for name in others), "own", "own-crd"]}
    assert globals_for("own", with_own) == globals_for("own", without) == without


# --- runs and cached votes ---------------------------------------------------------------------------------------------------


def voting(folder: Path, script: str = "") -> Path:
    """Write a module with an enabled script. The enabled script records each run, executes the commands in ``script``, and
    votes no if the setting ``mode`` is ``night``.
    """
    files = {
        "module.yaml": "name: voting\nversion: 1.0.0\n",
        "enabled": f'#!/usr/bin/env bash\necho asked >>"{folder.parent}/asks"\n{script}\n'
        'jq ".voting.mode != \\"night\\"" "$VALUES_PATH" >"$MODULE_ENABLED_RESULT"\n'
        'echo "not at night" >"$MODULE_ENABLED_REASON"\n',
        "openapi/config-values.yaml": "type: object\nproperties: {mode: {type: string, default: day}}\n",
        "openapi/values.yaml": "x-extend: {schema: config-values.yaml}\ntype: object\n",
        "templates/out.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\n",
    }
    write(folder, files)
    (folder / "enabled").chmod(0o755)
    return folder


def asks(folder: Path) -> int:
    """Return the number of runs of the script."""
    return len((folder / "asks").read_text().split())


async def voted(world: World, folder: Path, script: str = "") -> Instance:
    """Install the module, and wait until its script has voted and it is Ready."""
    await world.repository()
    await world.push_folder(voting(folder / "voting", script), "voting", "1.0.0")
    await world.create_module("voting")
    await world.until_state("", "voting", "Ready")
    return world.runtime.instances["voting"]


async def reloaded(world: World) -> None:
    """Load the module again without any change."""
    await world.change("", "voting", {"suspend": True})
    await world.until_state("", "voting", "Suspended")
    await world.change("", "voting", {"suspend": False})
    await world.until_state("", "voting", "Ready")


@pytest.mark.slow
async def test_a_reload_without_changes_does_not_run_the_script(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        instance = await voted(world, tmp_path)
        assert asks(tmp_path) == 1
        await reloaded(world)
        assert asks(tmp_path) == 1
        await world.change("", "voting", {"settings": {"mode": "night"}})
        off = await world.until_state("", "voting", "Disabled")
        assert find_str(off, "status", "summary", "message") == "not at night"
        assert asks(tmp_path) == 2
        assert instance.vote.kept is not None
        assert (instance.vote.kept.enabled, instance.vote.kept.reason) == (False, "not at night")
        await world.change("", "voting", {"settings": {"mode": "day"}})
        await world.until_state("", "voting", "Ready")
        assert asks(tmp_path) == 3


@pytest.mark.slow
async def test_a_requested_reconciliation_runs_the_script_again(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await voted(world, tmp_path)
        await world.request("", "voting")
        await world.until_state("", "voting", "Ready")
        assert asks(tmp_path) == 2


@dataclass
class Globally:
    """A Host that records votes, and has its own global values."""

    global_values_now: JsonObject
    votes: list[tuple[bool | None, str, bool]] = field(default_factory=list)

    def emit(self, instance: Instance, event: Report | Finding) -> None:
        if not isinstance(event, ReportBase):
            learn(instance, event)
            return
        assert isinstance(event, Voted)
        self.votes.append((event.enabled, event.reason, event.failed))

    def modules_before(self, _instance: Instance) -> tuple[str, ...]:
        """Return the names of all enabled modules."""
        return tuple(str(each) for each in find_list(self.global_values_now, "enabledModules"))

    def global_values(self) -> JsonObject:
        return self.global_values_now

    def global_settings(self) -> JsonObject:
        return {}


async def test_other_enabled_modules_are_an_input_of_a_script(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        instance = await voted(world, tmp_path)
        tools = world.runtime.tools
        seen = world.runtime.packages.global_values()
        assert seen["enabledModules"] == ["voting"]
        host = Globally(seen)
        await ask_enabled_script(instance, tools, cast("Host", host))
        assert asks(tmp_path) == 1
        host.global_values_now = {**seen, "enabledModules": ["dns", "voting"]}
        for _ in range(2):
            await ask_enabled_script(instance, tools, cast("Host", host))
        assert asks(tmp_path) == 2
        # The vote is reported to the scheduler each time, because the scheduler may have dropped the node in the meantime.
        assert host.votes == [(True, "not at night", False)] * 3


async def test_a_failed_vote_is_not_cached(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    async with open_world(tmp_path) as world:
        instance = await voted(world, tmp_path, f'[ ! -e "{broken}" ] || exit 3')
        tools, host = world.runtime.tools, Globally({"enabledModules": ["dns"]})
        broken.touch()
        for count in (2, 3):
            await ask_enabled_script(instance, tools, cast("Host", host))
            assert asks(tmp_path) == count
        assert [(enabled, failed) for enabled, _, failed in host.votes] == [(None, True), (None, True)]
        assert "exit status 3" in host.votes[0][1]
        broken.unlink()
        for _ in range(2):
            await ask_enabled_script(instance, tools, cast("Host", host))
        assert asks(tmp_path) == 4
        assert host.votes[2:] == [(True, "not at night", False)] * 2


async def test_a_secret_of_short_lines_is_masked_in_a_reason(tmp_path: Path) -> None:
    """The script writes a secret of several lines as its reason. Each line alone is too short to be recognized as a secret."""
    config = "type: object\nproperties: {mode: {type: string, default: day}, key: {type: string, writeOnly: true}}\n"
    says = 'jq -r ".voting.key" "$VALUES_PATH" >"$MODULE_ENABLED_REASON"\n'
    async with open_world(tmp_path) as world:
        await world.repository()
        place = voting(tmp_path / "voting")
        write(place, {"openapi/config-values.yaml": config})
        (place / "enabled").write_text((place / "enabled").read_text() + says)
        await world.push_folder(place, "voting", "1.0.0")
        await world.create_module("voting", spec={"settings": {"mode": "night", "key": "abcd\nefgh\nijkl"}})
        off = await world.until_state("", "voting", "Disabled")
        assert find_str(off, "status", "summary", "message")
        assert "efgh" not in str(off["status"])


@pytest.mark.slow
async def test_a_failed_script_runs_again_at_the_next_reload(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(voting(tmp_path / "voting", f'[ ! -e "{broken}" ] || exit 3'), "voting", "1.0.0")
        await world.create_module("voting")
        failed = await world.until("", "voting", has_reason("EnabledScriptError"))
        assert "exit status 3" in find_str(failed, "status", "summary", "message")
        broken.unlink()
        await world.change("", "voting", {"suspend": True})
        await world.until_state("", "voting", "Suspended")
        await world.change("", "voting", {"suspend": False})
        await world.until_state("", "voting", "Ready")
        assert asks(tmp_path) == 2


# --- no other package waits --------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_other_packages_do_not_wait_for_a_script(tmp_path: Path) -> None:
    """While the script of one package runs, another package is loaded and installed, and the scheduler still answers."""
    for name in ("reached", "gate"):
        os.mkfifo(tmp_path / name)
    gate = os.open(tmp_path / "gate", os.O_RDWR)
    held = f'echo >"{tmp_path}/reached"; read -r _ <"{tmp_path}/gate"'
    try:
        async with open_world(tmp_path) as world:
            await world.repository()
            await world.push("web", "1.0.0")
            await world.push_folder(voting(tmp_path / "voting", held), "voting", "1.0.0")
            await world.create_module("voting")
            with trio.fail_after(60):
                await trio.to_thread.run_sync((tmp_path / "reached").read_text, abandon_on_cancel=True)
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
            assert not world.runtime.scheduler.enabled("voting")
            os.write(gate, b"\n")
            await world.until_state("", "voting", "Ready")
    finally:
        os.close(gate)


async def test_a_script_that_exceeds_its_deadline_is_killed_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enabled_script, "WALL_S", 0.3)
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(voting(tmp_path / "voting", "sleep 1000"), "voting", "1.0.0")
        await world.create_module("voting")
        failed = await world.until("", "voting", has_reason("EnabledScriptError"))
        assert "deadline passed" in find_str(failed, "status", "summary", "message")
