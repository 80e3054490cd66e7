"""An update that is refused because it would close a cycle. The installed version keeps running for its dependents, and the new
version does not run.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.support.dependents import application, mandatory, modules, package, push
from tests.runtime.support.killing import held
from tests.runtime.support.notes import put
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from tests.runtime.test_dependents import data
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.package.events import DecisionReported, Voted
from wharfinger.runtime.resources.resources import IGNORE_DEPENDENTS
from wharfinger.runtime.scheduler.events import Rescheduled
from wharfinger.runtime.status.package_status import Stage

pytestmark = pytest.mark.unmeasured

BOTH = "mandatory: [{name: flour, constraint: '>=1.0'}, {name: eggs, constraint: '>=1.0'}]"
CRD = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: hams.example.com}\n"
    "spec:\n  group: example.com\n  names: {kind: Ham, plural: hams}\n  scope: Cluster\n"
    "  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
)
CRDS = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


def refused(world: World) -> Callable[[JsonObject], bool]:
    """Return a function that checks whether the newest specification of the Module ``ham`` was reconciled, and is refused."""
    least = world.generations.get(("", "ham"), 1)
    is_cycle = has_reason("DependencyCycle")
    return lambda obj: is_cycle(obj) and find_int(obj, "status", "observedGeneration") >= least


async def breakfast(world: World, folder: Path, place: Path | None = None) -> None:
    """Install ``flour``, ``ham`` (needs ``flour``), ``eggs`` (needs ``ham``) and ``shop`` (needs ``ham``). Then update ``ham`` to
    1.1.0. This version also needs ``eggs``, so it is refused.
    """
    await world.repository()
    await modules(world, folder, flour="", ham=mandatory("flour"), eggs=mandatory("ham"))
    await application(world, folder, "shop", mandatory("ham"))
    await push(world, place or package(folder, "ham", BOTH, version="1.1.0"))
    await world.change("", "ham", {"packageVersion": "1.1.0"})
    if place is None:
        await world.until("", "ham", refused(world))


def of_ham(world: World) -> tuple[str, bool]:
    """Return the version of ham that dependents see, and whether ham is on."""
    node = world.runtime.scheduler.node("ham")
    return node.version if node is not None else "", world.runtime.scheduler.enabled("ham")


@pytest.mark.slow
async def test_a_refused_update_suspends_no_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await breakfast(world, tmp_path)
        told = await world.until("", "ham", refused(world))
        assert find_str(told, "status", "currentVersion", "version") == "1.0.0"
        assert of_ham(world) == ("1.0.0", True)
        assert world.runtime.scheduler.enabled("eggs")
        assert world.runtime.scheduler.enabled("prod.shop")
        assert await data(world, "ham") == ("1.0.0", "none")
        # The previous version is allowed, but this does not change the status, which is that of the refused version.
        ham = world.runtime.instances["ham"]
        decided = world.runtime.scheduler.decision("ham")
        assert decided is not None
        assert decided.allowed
        world.runtime.packages.emit(ham, DecisionReported(decided))
        assert ham.status.stages[Stage.REQUIREMENTS].reason == "DependencyCycle"
        # The dependents may run again.
        for namespace, name in (("", "eggs"), ("prod", "shop")):
            await world.change(namespace, name, {"settings": {"mode": "hot"}})
            await world.until_state(namespace, name, "Ready")


@pytest.mark.slow
async def test_a_refused_version_is_never_run(tmp_path: Path) -> None:
    """The CRDs of the refused version are not applied, and its enabled script does not affect the installed version."""
    place = package(tmp_path, "ham", BOTH, version="1.1.0")
    write(place, {"crds/hams.yaml": CRD, "enabled": '#!/bin/sh\necho false >"$MODULE_ENABLED_RESULT"\n'})
    (place / "enabled").chmod(0o755)
    async with open_world(tmp_path) as world:
        await breakfast(world, tmp_path, place)
        await world.until("", "ham", refused(world))
        await world.change("", "ham", {"settings": {"mode": "hot"}})
        await world.until("", "ham", refused(world))
        world.runtime.packages.send(Rescheduled("ham", "Test"))
        world.runtime.packages.emit(world.runtime.instances["ham"], Voted(enabled=False, reason="no", failed=False))
        assert of_ham(world) == ("1.0.0", True)
        # After this, the CRDs of the previous version count as not established yet.
        put(world.runtime.instances["ham"], crds={"established": None})
        # The dependency of ham is disabled and then enabled. So ham is suspended, and would have to run again.
        await world.annotate("", "flour", IGNORE_DEPENDENTS, "true")
        await world.change("", "flour", {"enabled": False})
        await world.until("", "ham", has_reason("DependencyNotEnabled"))
        await world.until_state("prod", "shop", "Suspended")
        await world.change("", "flour", {"enabled": True})
        told = await world.until("", "ham", refused(world))
        assert find_str(told, "status", "currentVersion", "version") == "1.0.0"
        await world.until_state("", "flour", "Ready")
        await world.runtime.queues.wait_idle("ham")
        assert of_ham(world) == ("1.0.0", True)
        assert await data(world, "ham") == ("1.0.0", "none")
        await world.until_no_object(ObjectKey(CRDS, "", "hams.example.com"))
        # A version without a cycle replaces the refused one.
        await push(world, package(tmp_path, "ham", mandatory("flour"), version="1.2.0"))
        await world.change("", "ham", {"packageVersion": "1.2.0"})
        await world.until_state("", "ham", "Ready")
        assert await data(world, "ham") == ("1.2.0", "hot")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_a_run_ordered_during_loading_does_not_run_the_refused_version(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    # Only one of the two hooks is held. The other one would block forever, because nobody reads what it writes to the FIFO.
    hold = (
        f'case $0 in *going.sh) [ -e "{tmp_path}/go" ] || {{ echo $$ >"{tmp_path}/held"; '
        f'while [ ! -e "{tmp_path}/go" ]; do sleep 0.05; done; }};; esac'
    )
    async with open_world(tmp_path) as world:
        await breakfast(world, tmp_path, package(tmp_path, "ham", BOTH, version="1.1.0", config=hold))
        await trio.to_thread.run_sync(held, tmp_path)
        world.runtime.packages.send(Rescheduled("ham", "Test"))
        (tmp_path / "go").touch()
        await world.until("", "ham", refused(world))
        await world.runtime.queues.wait_idle("ham")
        await world.until("", "ham", refused(world))
        assert await data(world, "ham") == ("1.0.0", "none")


@pytest.mark.slow
async def test_a_refused_version_runs_once_the_cycle_is_removed(tmp_path: Path) -> None:
    """Once the cycle is removed, the refused version is installed with its CRDs, which the previous version did not have."""
    place = package(tmp_path, "ham", BOTH, version="1.1.0")
    write(place, {"crds/hams.yaml": CRD})
    async with open_world(tmp_path) as world:
        await breakfast(world, tmp_path, place)
        await world.until("", "ham", refused(world))
        await push(world, package(tmp_path, "eggs", version="1.1.0"))
        await world.change("", "eggs", {"packageVersion": "1.1.0"})
        await world.until_state("", "eggs", "Ready")
        await world.change("", "ham", {"settings": {"mode": "hot"}})
        await world.until_state("", "ham", "Ready")
        assert await data(world, "ham") == ("1.1.0", "hot")
        assert of_ham(world) == ("1.1.0", True)
        await world.until_object(ObjectKey(CRDS, "", "hams.example.com"), bool)


@pytest.mark.slow
async def test_a_refused_package_that_was_uninstalled_satisfies_no_dependent(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await breakfast(world, tmp_path)
        await world.annotate("", "ham", IGNORE_DEPENDENTS, "true")
        await world.change("", "ham", {"enabled": False})
        await world.until_state("prod", "shop", "Suspended")
        await world.until_state("", "ham", "Disabled")
        await world.change("", "ham", {"enabled": True})
        await world.until("", "ham", refused(world))
        assert of_ham(world) == ("", False)
        await world.until_state("prod", "shop", "Suspended")


@pytest.mark.slow
async def test_a_refused_package_that_is_suspended_still_satisfies_dependents(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await breakfast(world, tmp_path)
        await world.change("", "ham", {"suspend": True})
        await world.until_state("", "ham", "Suspended")
        world.runtime.packages.send(Rescheduled("ham", "Test"))
        await world.change("prod", "shop", {"settings": {"mode": "hot"}})
        await world.until_state("prod", "shop", "Ready")
        await world.change("", "ham", {"suspend": False, "packageVersion": "1.0.0"})
        await world.until_state("", "ham", "Ready")
        assert of_ham(world) == ("1.0.0", True)
