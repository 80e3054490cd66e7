"""Removals, disables and version changes that would break dependents. They are held back until they break no dependent any
more.
"""

from pathlib import Path

import pytest
import trio

from tests.runtime.support.dependents import any_of, application, mandatory, message, modules, package, push, went
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import bash
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import IGNORE_DEPENDENTS, SKIP_DELETE_HOOKS
from wharfinger.runtime.status.conditions import MAPPERS

pytestmark = pytest.mark.unmeasured

WOULD_BREAK = has_reason("WouldBreakDependents")
WAITS = has_reason("WaitingForDependents")


@pytest.fixture(autouse=True)
def no_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the fallback timer, so that only an event can release a held change."""
    monkeypatch.setattr("wharfinger.runtime.controllers.controller.LOOK_S", 3600.0)


async def data(world: World, name: str) -> tuple[str, str]:
    """Return the version and the mode in a Module's ConfigMap, or two empty texts if it was deleted."""
    found = await world.config_map(SYSTEM_NAMESPACE, f"of-{name}")
    return find_str(found, "data", "version"), find_str(found, "data", "mode")


async def database_and_shop(world: World, folder: Path, constraint: str = ">=1.0 <2.0") -> None:
    await world.repository()
    await modules(world, folder, database="")
    await application(world, folder, "shop", mandatory("database", constraint))


@pytest.mark.slow
async def test_a_removal_is_held_until_no_dependent_is_left(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        await world.delete("", "database")
        held = await world.until("", "database", WOULD_BREAK)
        assert find_str(held, "status", "summary", "state") == "Removing"
        assert find_int(held, "status", "observedGeneration") == find_int(held, "metadata", "generation")
        assert find_str(world.condition(held, "Reconciling"), "status") == "True"
        assert find_str(world.condition(held, "Stalled"), "status") == "False"
        assert {find_str(world.condition(held, kind), "status") for kind in MAPPERS} == {"True"}
        assert "the removal would break prod.shop" in message(held)
        assert "dependency database" in message(held)
        assert IGNORE_DEPENDENTS in find_str(held, "status", "summary", "tip")
        # The removal has not begun: the package and its dependent still run.
        assert await data(world, "database") == ("1.0.0", "none")
        assert "database" in world.runtime.tools.hook_services.started()
        assert world.runtime.scheduler.enabled("prod.shop")
        assert went(tmp_path) == []
        await world.delete("prod", "shop")
        await world.until_gone("", "database")
        assert went(tmp_path) == ["going-shop", "gone-shop", "going-database", "gone-database"]
        assert await data(world, "database") == ("", "")


@pytest.mark.slow
async def test_a_held_disable_adopts_nothing_of_the_new_spec(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        await world.change("", "database", {"enabled": False, "settings": {"mode": "new"}})
        held = await world.until("", "database", WOULD_BREAK)
        assert message(held).startswith("spec.enabled: false would break prod.shop (")
        assert find_str(world.condition(held, "Stalled"), "reason") == "WouldBreakDependents"
        assert find_str(held, "status", "summary", "state") == "Degraded"
        assert await data(world, "database") == ("1.0.0", "none")
        # The dependent is changed to a version that needs nothing.
        await push(world, package(tmp_path, "shop", version="2.0.0"))
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        await world.until_state("", "database", "Disabled")
        assert await data(world, "database") == ("", "")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_a_version_that_would_break_dependents_is_refused_with_its_settings(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        await push(world, package(tmp_path, "database", version="2.0.0"))
        await push(world, package(tmp_path, "database", version="1.5.0"))
        await world.change("", "database", {"packageVersion": "2.0.0", "settings": {"mode": "new"}})
        held = await world.until("", "database", WOULD_BREAK)
        assert message(held).startswith("version 2.0.0 would break prod.shop (")
        assert "not met by version 2.0.0" in message(held)
        assert find_str(world.condition(held, "Stalled"), "status") == "True"
        assert find_str(held, "status", "currentVersion", "version") == "1.0.0"
        assert await data(world, "database") == ("1.0.0", "none")
        assert len(world.downloads) == 2  # version 1.0.0 and the shop were downloaded, and nothing else
        # Another version, with which all dependents are compatible, is adopted with its settings.
        await world.change("", "database", {"packageVersion": "1.5.0"})
        await world.until_state("", "database", "Ready")
        assert await data(world, "database") == ("1.5.0", "new")
        # The refused version is adopted once the dependents allow it.
        await world.change("", "database", {"packageVersion": "2.0.0"})
        await world.until("", "database", WOULD_BREAK)
        await push(world, package(tmp_path, "shop", mandatory("database", ">=2.0"), version="2.0.0"))
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        await world.until_state("", "database", "Ready")
        await world.until_state("prod", "shop", "Ready")
        assert await data(world, "database") == ("2.0.0", "new")


@pytest.mark.slow
async def test_direct_dependents_are_explained_before_indirect_ones(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ground="", house=mandatory("ground", "~1.0"), attic=mandatory("house"))
        await world.change("", "ground", {"packageVersion": "2.0.0"})
        held = await world.until("", "ground", WOULD_BREAK)
        assert "would break attic, house (house: " in message(held)
        assert "not met by version 2.0.0" in message(held)


@pytest.mark.slow
async def test_a_refused_version_that_is_reverted_leaves_no_trace(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        before = world.runtime.instances["database"].desired.begun
        await world.change("", "database", {"packageVersion": "2.0.0"})
        await world.until("", "database", WOULD_BREAK)
        await world.change("", "database", {"packageVersion": "1.0.0"})
        await world.until_state("", "database", "Ready")
        assert world.runtime.instances["database"].desired.begun == before


@pytest.mark.slow
async def test_a_version_in_an_excluded_range_is_refused(tmp_path: Path) -> None:
    none_of = "noneOf: [{name: old, modules: [{name: database, constraint: '>=2.0'}]}]"
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, database="")
        await application(world, tmp_path, "shop", none_of)
        await world.change("", "database", {"packageVersion": "2.0.0"})
        held = await world.until("", "database", WOULD_BREAK)
        assert "prod.shop: prod.shop excludes" in message(held)
        # The removal breaks no dependent.
        await world.delete("", "database")
        await world.until_gone("", "database")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_the_last_member_of_a_group_stays_until_another_member_is_installed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ceph="")
        await application(world, tmp_path, "shop", any_of("ceph", "nfs"))
        await world.delete("", "ceph")
        held = await world.until("", "ceph", WOULD_BREAK)
        assert "needs one package of the group 'either'" in message(held)
        await push(world, package(tmp_path, "nfs"))
        await world.create_module("nfs")
        await world.until_gone("", "ceph")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_the_first_of_two_group_members_is_removed_and_the_second_is_held(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ceph="", nfs="")
        await application(world, tmp_path, "shop", any_of("ceph", "nfs"))
        await world.delete("", "nfs")
        await world.delete("", "ceph")
        await world.until_gone("", "nfs")
        await world.until("", "ceph", WOULD_BREAK)
        assert world.runtime.scheduler.enabled("prod.shop")
        await world.delete("prod", "shop")
        await world.until_gone("", "ceph")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("change", ["removal", "disable", "version"])
async def test_the_ignore_dependents_annotation_overrides_the_guard(tmp_path: Path, change: str) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        await push(world, package(tmp_path, "database", version="2.0.0"))
        if change == "removal":
            await world.delete("", "database")
        else:
            await world.change(
                "", "database", {"enabled": False} if change == "disable" else {"packageVersion": "2.0.0"}
            )
        await world.until("", "database", WOULD_BREAK)
        await world.annotate("", "database", IGNORE_DEPENDENTS, "false")
        await world.annotate("", "database", IGNORE_DEPENDENTS, "true")
        suspended = await world.until_state("prod", "shop", "Suspended")
        assert "database" in message(suspended)
        if change == "removal":
            await world.until_gone("", "database")
        else:
            await world.until_state("", "database", "Disabled" if change == "disable" else "Ready")
        assert await world.config_map("prod", "of-shop") is not None  # the dependent is suspended, not uninstalled


@pytest.mark.slow
async def test_simultaneous_removals_follow_the_reverse_order_of_dependencies(tmp_path: Path) -> None:
    """A user deletes each of five packages before its dependents, but the daemon removes the dependents first.

    ``roof`` needs ``left`` and ``right``, both of these need ``ground``, and ``shop`` needs ``roof``.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        both = "mandatory: [{name: left}, {name: right}]"
        await modules(world, tmp_path, ground="", left=mandatory("ground"), right=mandatory("ground"), roof=both)
        await application(world, tmp_path, "shop", mandatory("roof"))
        for name in ("ground", "left", "right", "roof"):
            await world.delete("", name)
        await world.until("", "ground", lambda obj: WAITS(obj) or WOULD_BREAK(obj))
        await world.delete("prod", "shop")
        for name in ("ground", "left", "right", "roof"):
            await world.until_gone("", name)
        at = {word: number for number, word in enumerate(went(tmp_path))}
        assert len(at) == len(went(tmp_path)) == 10
        for needy, needed in (
            ("shop", "roof"), ("roof", "left"), ("roof", "right"), ("left", "ground"), ("right", "ground")
        ):  # fmt: skip
            assert at[f"gone-{needy}"] < at[f"going-{needed}"]


@pytest.mark.slow
async def test_a_removal_waits_for_the_begun_removal_of_a_dependent(tmp_path: Path) -> None:
    """``shop`` has only a conditional dependency on ``database``. The removal of ``database`` waits nevertheless, because hooks
    of ``shop`` may still use it.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, database="")
        place = package(tmp_path, "shop", "conditional: [{name: database, constraint: '>=1.0'}]")
        (place / "hooks" / "going.sh").write_text(bash("{configVersion: v1, beforeDeleteHelm: 1}", "exit 1"))
        await push(world, place)
        await world.create("prod", "shop", package="shop")
        await world.until_state("prod", "shop", "Ready")
        await world.delete("prod", "shop")
        await world.until("prod", "shop", has_reason("PackageHookFailed"))
        await world.delete("", "database")
        waits = await world.until("", "database", WAITS)
        assert message(waits) == "the removal waits for prod.shop, which is uninstalled first"
        assert went(tmp_path) == []
        assert await data(world, "database") == ("1.0.0", "none")
        await world.annotate("prod", "shop", SKIP_DELETE_HOOKS, "yes")
        await world.until_gone("", "database")
        await world.until_gone("prod", "shop")


@pytest.mark.slow
async def test_a_removal_waits_for_the_disabling_of_a_dependent(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ground="", house=mandatory("ground"))
        await world.change("", "house", {"enabled": False})
        await world.delete("", "ground")
        await world.until_gone("", "ground")
        assert await data(world, "house") == ("", "")
        assert went(tmp_path) == ["going-house", "gone-house", "going-ground", "gone-ground"]


@pytest.mark.slow
async def test_packages_that_form_a_refused_cycle_can_both_be_removed(tmp_path: Path) -> None:
    """The second package is refused because it would close a cycle. The removal of the first package does not wait for it."""
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ham="conditional: [{name: eggs, constraint: '>=1.0'}]")
        await push(world, package(tmp_path, "eggs", "conditional: [{name: ham, constraint: '>=1.0'}]"))
        await world.create_module("eggs")
        await world.until("", "eggs", has_reason("DependencyCycle"))
        await world.delete("", "ham")
        await world.delete("", "eggs")
        await world.until_gone("", "ham")
        await world.until_gone("", "eggs")


@pytest.mark.slow
async def test_members_of_each_others_groups_can_all_be_removed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, bread="", ham=any_of("bread", "eggs"), eggs=any_of("bread", "ham"))
        for name in ("bread", "ham", "eggs"):
            await world.delete("", name)
        for name in ("bread", "ham", "eggs"):
            await world.until_gone("", name)
        assert went(tmp_path)[-1] == "gone-bread"


@pytest.mark.slow
async def test_suspended_dependents_hold_a_removal_and_disabled_ones_do_not(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        await world.change("prod", "shop", {"suspend": True})
        await world.until_state("prod", "shop", "Suspended")
        await world.delete("", "database")
        await world.until("", "database", WOULD_BREAK)
        await world.change("prod", "shop", {"suspend": False})
        await world.until_state("prod", "shop", "Ready")
        assert await data(world, "database") == ("1.0.0", "none")
        # The dependent is off as soon as something else that it requires is missing.
        more = "mandatory: [{name: database}, {name: other}]"
        await push(world, package(tmp_path, "shop", more, version="2.0.0"))
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        await world.until_gone("", "database")


@pytest.mark.slow
async def test_a_held_chain_is_removed_from_its_end(tmp_path: Path) -> None:
    """``shop`` needs ``house``, and ``house`` needs ``ground``. The removals of ``ground`` and ``house`` are held until ``shop``
    is deleted.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ground="", house=mandatory("ground"))
        await application(world, tmp_path, "shop", mandatory("house"))
        await world.delete("", "house")
        await world.until("", "house", WOULD_BREAK)
        await world.delete("", "ground")
        held = await world.until("", "ground", WOULD_BREAK)
        assert "the removal would break prod.shop" in message(held)
        await world.delete("prod", "shop")
        await world.until_gone("", "ground")
        assert went(tmp_path) == ["going-shop", "gone-shop", "going-house", "gone-house", "going-ground", "gone-ground"]


@pytest.mark.slow
async def test_a_package_without_dependents_is_removed_at_once(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        await push(world, package(tmp_path, "shop", version="2.0.0"))
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        await world.until_state("prod", "shop", "Ready")
        seen: list[str] = []
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                with world.modules.changes() as changes:
                    while True:
                        seen.extend(str(obj) for obj in world.modules.objects().values())
                        await changes.wait()

            nursery.start_soon(watch)
            await world.delete("", "database")
            await world.until_gone("", "database")
            nursery.cancel_scope.cancel()
        assert not any("Dependents" in text for text in seen)


@pytest.mark.slow
async def test_a_tag_that_is_not_a_version_satisfies_every_range(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        place = package(tmp_path, "database", version="1.1.0")
        await world.push_folder(place, "database", "edge")
        await world.change("", "database", {"packageVersion": "edge"})
        ready = await world.until_state("", "database", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "edge"
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_a_suspended_package_is_checked_when_it_is_resumed(tmp_path: Path) -> None:
    """The new version would break a dependent. Nothing happens while the package is suspended. When it is resumed, the version
    change is held.
    """
    async with open_world(tmp_path) as world:
        await database_and_shop(world, tmp_path)
        await world.change("", "database", {"suspend": True, "packageVersion": "2.0.0"})
        await world.until_state("", "database", "Suspended")
        node = world.runtime.scheduler.node("database")
        assert node is not None
        assert node.version == "1.0.0"
        await world.change("", "database", {"suspend": False})
        await world.until("", "database", WOULD_BREAK)
        await world.change("", "database", {"packageVersion": "1.0.0"})
        await world.until_state("", "database", "Ready")


@pytest.mark.slow
async def test_a_terminating_namespace_overrides_the_guard(tmp_path: Path) -> None:
    """The removal of an Application is held because of a dependent, until the Application's namespace is deleted. Then the
    removal begins, because the namespace would otherwise wait forever for the Application's finalizer.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await push(world, package(tmp_path, "shop"))
        await world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await world.create("prod", "shop", package="shop")
        await world.until_state("prod", "shop", "Ready")
        depends: JsonObject = {"dependsOn": [{"kind": "Application", "namespace": "prod", "name": "shop"}]}
        await world.create("other", "web", package="shop", more=depends)
        await world.until_state("other", "web", "Ready")
        await world.delete("prod", "shop")
        await world.until("prod", "shop", WOULD_BREAK)
        await world.client.delete(ObjectKey(await world.client.resource_type("v1", "Namespace"), "", "prod"))
        await world.annotate("prod", "shop", "look", "now")
        await world.until_gone("prod", "shop")
        assert went(tmp_path) == ["going-shop", "gone-shop"]
