"""Suspending and going on, maintenance, force and reset: what people say about how a package is looked after."""

from pathlib import Path

import trio

from tests.packages.charts import write
from tests.runtime.test_hook_runs import bash, hooked
from tests.runtime.test_runtime import SLOW_CONFIG
from tests.runtime.world import World, open_world
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, find, find_int, find_object, find_str
from wharfinger.runtime.rendering import UNMANAGED_LABEL
from wharfinger.runtime.resources import CONFIG_MAP

MAINTENANCE: JsonObject = {"maintenance": "NoResourceReconciliation"}


async def data_of(world: World, name: str) -> JsonObject:
    found = await world.config_map("prod", name)
    assert found is not None
    return found


async def test_a_suspended_package_is_left_as_it_is_until_it_goes_on(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "1.1.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"suspend": True})
        suspended = await world.until_state("prod", "shop", "Suspended")
        assert "spec.suspend" in find_str(suspended, "status", "summary", "message")
        assert find_str(world.condition(suspended, "Ready"), "status") == "True"
        assert find_str(world.condition(suspended, "Reconciling"), "status") == "False"
        downloads = len(world.downloads)
        await world.change("prod", "shop", {"packageVersion": "1.1.0"})
        await world.until_state("prod", "shop", "Suspended")
        await world.runtime.queues.wait_idle("prod.shop")
        assert (len(world.downloads), await world.config_map("prod", "shop") is not None) == (downloads, True)
        await world.change("prod", "shop", {"suspend": False})
        ready = await world.until_state("prod", "shop", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "1.1.0"


async def test_a_package_that_begins_suspended_begins_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", more={"suspend": True})
        await world.until_state("prod", "shop", "Suspended")
        assert world.downloads == []
        await world.change("prod", "shop", {"suspend": None})
        await world.until_state("prod", "shop", "Ready")


async def test_suspending_interrupts_a_wait_and_rests_the_hooks(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        hook = bash("{configVersion: v1, schedule: [{name: never, crontab: '0 0 1 1 *'}]}", ":")
        slow = hooked(tmp_path / "hooked", {"a.sh": hook}, files={"templates/slow.yaml": SLOW_CONFIG})
        await world.push_folder(slow, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until("prod", "app", lambda obj: "0 of 1" in find_str(obj, "status", "summary", "message"))
        assert "prod.app" in world.runtime.tools.hook_services.started()
        await world.change("prod", "app", {"suspend": True})
        await world.until_state("prod", "app", "Suspended")
        await world.runtime.queues.wait_idle("prod.app")
        assert "prod.app" not in world.runtime.tools.hook_services.started()
        assert world.runtime.queues.dump_one("prod.app").tasks == ()
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")


async def test_a_disable_that_is_missed_while_suspended_follows_when_it_goes_on(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        await world.until_state("", "web", "Ready")
        await world.change("", "web", {"suspend": True})
        await world.until_state("", "web", "Suspended")
        await world.change("", "web", {"enabled": False})
        await world.runtime.queues.wait_idle("web")
        assert await world.config_map("wharfinger-system", "web") is not None
        await world.change("", "web", {"suspend": False})
        await world.until_state("", "web", "Disabled")
        assert await world.config_map("wharfinger-system", "web") is None


async def test_a_suspended_module_holds_nobody_back(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        early = write(
            hooked(tmp_path / "early", {}, name="early"),
            {"package.yaml": "apiVersion: v1\ntype: Module\nname: early\nversion: 1.0.0\nweight: 1\ncritical: true\n"},
        )
        await world.push_folder(early, "early", "1.0.0")
        await world.create_module("early")
        await world.until_state("", "early", "Ready")
        await world.change("", "early", {"suspend": True})
        await world.until_state("", "early", "Suspended")
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")


async def test_under_maintenance_what_people_change_is_left_to_them(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", settings={"text": "one"})
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", MAINTENANCE)
        marked = await world.until_state("prod", "shop", "Ready")
        assert find(await data_of(world, "shop"), "metadata", "labels", UNMANAGED_LABEL) == ""
        revision = find_int(marked, "status", "release", "revision")
        await world.change("prod", "shop", {"settings": {"text": "two"}})
        kept = await world.until_state("prod", "shop", "Ready")
        assert find_str(await data_of(world, "shop"), "data", "text") == "one"
        assert find_int(kept, "status", "release", "revision") == revision
        await world.change("prod", "shop", {"maintenance": None})
        await world.until_state("prod", "shop", "Ready")
        after = await data_of(world, "shop")
        assert find_str(after, "data", "text") == "two"
        assert UNMANAGED_LABEL not in find_object(after, "metadata", "labels")


async def test_a_forced_package_is_fetched_again_under_the_same_version(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        before = await world.until_state("prod", "shop", "Ready")
        (tmp_path / "web-1.0.0").rename(tmp_path / "before")
        await world.push("web", "1.0.0", {"templates/more.yaml": "# more\n"})
        await world.annotate("prod", "shop", "wharfinger.dev/force-requested-at", "now")
        digest = find_str(before, "status", "currentVersion", "digest")
        await world.until(
            "prod",
            "shop",
            lambda obj: (
                find_str(obj, "status", "currentVersion", "digest") != digest
                and find_str(obj, "status", "summary", "state") == "Ready"
            ),
        )


async def test_a_reset_forgets_what_hooks_have_done_once(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    hook = bash(
        "{configVersion: v1, onStartup: 1}",
        f'echo ran >>"{notes}"\n'
        'seen=$(jq .hooked.seen "$VALUES_PATH")\n'
        'echo "{\\"op\\":\\"add\\",\\"path\\":\\"/hooked/seen\\",\\"value\\":$((seen + 1))}" >"$VALUES_JSON_PATCH_PATH"',
    )
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.request("prod", "app")
        await world.until_state("prod", "app", "Ready")
        assert notes.read_text() == "ran\n"
        await world.annotate("prod", "app", "wharfinger.dev/reset-requested-at", "now")
        with trio.fail_after(30):
            while notes.read_text() != "ran\nran\n":
                await world.runtime.queues.wait_idle("prod.app")
                await trio.lowlevel.checkpoint()
        await world.until_state("prod", "app", "Ready")
        assert find_str(await data_of(world, "out"), "data", "seen") == "1"


async def test_replicas_and_resources_are_what_the_user_says(tmp_path: Path) -> None:
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: front}\nspec:\n  replicas: 1\n"
        "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
        "    spec: {containers: [{name: main, image: example/a}]}\n"
    )
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/front.yaml": deployment})
        await world.repository()
        overrides: JsonObject = {
            "resourceRequests": [
                {
                    "kind": "Deployment",
                    "name": "front",
                    "replicas": 3,
                    "containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}],
                },
                {"kind": "Deployment", "name": "elsewhere", "replicas": 2},
            ]
        }
        await world.create("prod", "shop", more=overrides)
        ready = await world.until_state("prod", "shop", "Ready")
        resource = await world.client.resource_type("apps/v1", "Deployment")
        live = await world.client.get(ObjectKey(resource, "prod", "front"))
        assert find_int(live, "spec", "replicas") == 3
        assert find_str(live, "spec", "template", "spec", "containers", 0, "resources", "requests", "cpu") == "100m"
        assert "Deployment elsewhere is not in the chart" in str(find(ready, "status", "warnings"))
        await world.change("prod", "shop", {"resourceRequests": None})
        plain = await world.until_state("prod", "shop", "Ready")
        assert find_int(await world.client.get(ObjectKey(resource, "prod", "front")), "spec", "replicas") == 1
        assert find(plain, "status", "warnings") is None


async def test_a_removal_while_suspended_takes_everything_away(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"suspend": True})
        await world.until_state("prod", "shop", "Suspended")
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        await world.until_no_object(ObjectKey(CONFIG_MAP, "prod", "shop"))
