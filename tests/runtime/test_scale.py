"""Many packages, some of which fail permanently. The good packages run the same tasks, and need about the same CPU time, as
they would without the failed ones.

Everything is real: charts rendered by Helm, a control plane in this process, and the controllers. The CPU time per package is
checked only in a full run, because the figure means nothing at a smaller scale.
"""

import resource
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart, write
from tests.runtime.support.task_log import TaskLog
from tests.runtime.support.world import World, one_error, open_world
from tests.scale import FULL, scaled
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.status.summary import State, summarize

pytestmark = pytest.mark.unmeasured

GOOD = scaled(900, 18)
BAD = scaled(100, 2)
EACH_NAMESPACE = 50
PATIENCE_S = 1800
MAX_CPU_RATIO = 1.15

STRICT = {
    "package.yaml": "apiVersion: v1\ntype: Application\nname: strict\nversion: 1.0.0\n",
    "openapi/settings.yaml": "type: object\nadditionalProperties: false\nproperties: {replicas: {type: integer, maximum: 3}}\n",
    "openapi/values.yaml": "x-extend: {schema: settings.yaml}\ntype: object\n",
}
BROKEN = {"package.yaml": "apiVersion: v1\nname: [broken\n", "templates/config.yaml": ""}


@dataclass(frozen=True, slots=True)
class DesiredPackage:
    """A package to be created, and its last task. A bad package fails in this task."""

    package: str
    settings: JsonObject
    last: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of `measure`: the tasks that each good package (one that does not fail) ran, and the CPU time for each good
    package, in seconds.
    """

    tasks: list[str]
    cpu_s: float


FINE = DesiredPackage("web", {}, "WaitReady")
WRONG = (
    DesiredPackage("strict", {"replicas": 4}, "Configure"),
    DesiredPackage("strict", {"replicas": "many"}, "Configure"),
    DesiredPackage("strict", {"replica": 1}, "Configure"),
    DesiredPackage("broken", {}, "Download:1.0.0"),
)


def mixed(good: int, bad: int) -> dict[str, DesiredPackage]:
    """Return these numbers of good and bad packages by name. The bad ones are spread among the good ones."""
    wishes = {f"fine-{number:04}": FINE for number in range(good)}
    wishes |= {f"wrong-{number:04}": WRONG[number % len(WRONG)] for number in range(bad)}
    every = max(good // bad, 1) if bad else 1
    places = {f"wrong-{number:04}": number * every for number in range(bad)}
    order = sorted(wishes, key=lambda name: (places.get(name, int(name.rpartition("-")[2])), name))
    return {f"ns-{at // EACH_NAMESPACE}.{name}": wishes[name] for at, name in enumerate(order)}


def cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def bring_up(world: World, wishes: dict[str, DesiredPackage], log: TaskLog) -> float:
    """Create all packages, wait until each is Ready or has failed, and return the CPU time that this took."""
    good = sum(desired is FINE for desired in wishes.values())
    begun_s = cpu_s()
    for name, desired in wishes.items():
        namespace, _, instance = name.partition(".")
        await world.create(namespace, instance, package=desired.package, settings=desired.settings)

    def all_over() -> bool:
        over = log.ends["WaitReady", "done"] >= good and log.over("failed") >= len(wishes) - good
        return over and all(state_of(world, name) in (State.READY, State.FAILED) for name in wishes)

    await log.until(all_over)
    return cpu_s() - begun_s


def state_of(world: World, name: str) -> str | None:
    """Return the state of a package, or None if the runtime does not know the package yet."""
    status = world.runtime.status(name)
    return summarize(status).state if status is not None else None


async def measure(folder: Path, monkeypatch: pytest.MonkeyPatch, good: int, bad: int) -> Outcome:
    """Install these numbers of good and bad packages with a new daemon and control plane, and return the result."""
    write(folder / "packages" / "strict", STRICT)
    write(folder / "packages" / "broken", BROKEN)
    chart(folder / "packages" / "web", "web", "1.0.0")
    wishes, log = mixed(good, bad), TaskLog()
    with monkeypatch.context() as patched, one_error(), trio.fail_after(PATIENCE_S):
        log.watch(patched)
        async with open_world(folder) as world:
            await world.local_repository(folder / "packages")
            for namespace in sorted({name.partition(".")[0] for name in wishes}):
                await world.client.create(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
                )
            used_s = await bring_up(world, wishes, log)
            for name in wishes:
                await world.runtime.queues.wait_idle(name)
            tasks = log.names(next(name for name in wishes if wishes[name] is FINE))
            assert len(tasks) == len(set(tasks))
            expected = {name: tasks[: tasks.index(desired.last) + 1] for name, desired in wishes.items()}
            assert {name: log.names(name) for name in wishes} == expected
            ready = [name for name in wishes if state_of(world, name) is State.READY]
            assert ready == [name for name, desired in wishes.items() if desired is FINE]
            statistics = world.runtime.queues.statistics()
            assert (statistics.parked, statistics.running, statistics.backing_off) == (bad, 0, 0)
            assert statistics.tasks >= bad
    return Outcome(tasks, used_s / good)


@pytest.mark.slow
async def test_packages_that_fail_for_good_cost_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if FULL:
        await measure(
            tmp_path / "warm", monkeypatch, 20, 4
        )  # this fills caches, so that they do not affect the comparison
    alone = await measure(tmp_path / "alone", monkeypatch, GOOD, 0)
    among = await measure(tmp_path / "among", monkeypatch, GOOD, BAD)
    assert among.tasks == alone.tasks
    if FULL:
        cpu_ms = f"{among.cpu_s * 1e3:.0f} ms of CPU a package, {alone.cpu_s * 1e3:.0f} ms where they are alone"
        assert among.cpu_s <= alone.cpu_s * MAX_CPU_RATIO, cpu_ms
