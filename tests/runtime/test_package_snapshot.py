"""One package as a snapshot: everything a person asks for, nothing that may not be shown."""

from pathlib import Path

from tests.runtime.notes import instance
from tests.runtime.test_hook_runs import bash, hooked
from tests.runtime.test_instance import WRITE_ONLY
from tests.runtime.world import open_world
from wharfinger.hooks.config import read_hook_config
from wharfinger.hooks.discovery import Hook
from wharfinger.queue.dump import QueueDump
from wharfinger.runtime.package_snapshot import package_snapshot
from wharfinger.runtime.settings import ResolvedSettings

BUSY = (
    "configVersion: v1\nonStartup: 3\nafterHelm: 1\nschedule: [{name: often, crontab: '* * * * *'}]\n"
    "kubernetes: [{name: maps, kind: ConfigMap}]\n"
)


def test_a_package_just_heard_of() -> None:
    snapshot = package_snapshot(instance(), QueueDump("prod.shop", ()))
    assert (snapshot.name, snapshot.kind, snapshot.namespace) == ("prod.shop", "Application", "prod")
    assert (snapshot.state, snapshot.digest, snapshot.release_revision) == ("Pending", "", 0)
    # Stages that a package may not have are done until their task says otherwise.
    assert [condition.type for condition in snapshot.conditions if condition.status == "True"] == [
        "CustomResourcesApplied", "WebhooksEnsured",
    ]  # fmt: skip
    assert {condition.status for condition in snapshot.conditions} == {"Unknown", "True"}
    assert snapshot.queue.tasks == ()
    assert snapshot.hooks == ()


def test_hooks_say_what_they_are_bound_to_and_how_they_ran() -> None:
    one = instance()
    config = read_hook_config(BUSY.encode(), hook="hooks/a.sh")
    one.hooks = (Hook("hooks/a.sh", Path("/x"), (), Path("/"), config),)
    (hook,) = package_snapshot(one, QueueDump("prod.shop", ())).hooks
    assert hook.bindings == ("onStartup 3", "afterHelm 1", "kubernetes maps", "schedule often * * * * *")
    assert (hook.runs, hook.last_run, hook.last_error) == (0, None, "")


def test_secrets_are_hidden_by_path_and_by_text() -> None:
    one = instance()
    one.wanted_settings = ResolvedSettings(
        {"login": {"key": "hunter2", "pin": 1234}, "note": "it is hunter2", "mode": "fast"},
        ("hunter2",),
        frozenset({("login", "key"), ("login", "pin")}),
    )
    one.values = one.wanted_settings.settings
    snapshot = package_snapshot(one, QueueDump("prod.shop", ()))
    for shown in (snapshot.settings, snapshot.values):
        assert shown["mode"] == "fast"
        assert "hunter2" not in str(shown)
        assert "1234" not in str(shown)


async def test_a_hook_that_ran_and_one_that_failed(tmp_path: Path) -> None:
    """What a hook prints of a secret is masked in what it is said to have failed with."""
    hooks = {
        "a-good.sh": bash("{configVersion: v1, onStartup: 1}", "true"),
        "b-bad.sh": bash("{configVersion: v1, onStartup: 2}", 'jq -r .hooked.token "$CONFIG_VALUES_PATH" >&2; exit 3'),
    }
    files = {
        "openapi/settings.yaml": WRITE_ONLY,
        "openapi/values.yaml": "x-extend: {schema: settings.yaml}\ntype: object\nproperties: {seen: {type: integer}}\n",
    }
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", hooks, files=files), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked", settings={"token": "hunter2222", "mode": "fast"})
        failed = await world.until_state("prod", "app", "Failed")
        snapshot = world.runtime.dump_by_name("prod.app")
        assert snapshot is not None
        good, bad = snapshot.hooks
        assert (good.name, good.runs, good.last_error) == ("hooks/a-good.sh", 1, "")
        assert good.last_run is not None
        assert (bad.name, bad.runs) == ("hooks/b-bad.sh", 1)
        assert "exit status 3" in bad.last_error
        assert snapshot.settings["mode"] == "fast"
        shown = (snapshot.settings, snapshot.values, snapshot.hooks, snapshot.queue, snapshot.message)
        assert "hunter2222" not in str((shown, failed["status"]))
