"""The live scheduler: a large graph against small ones, and the cost of one change among ten thousand packages.

The cost of a step must depend only on the packages that an event can reach. So the same change is measured among ten thousand
packages and among a hundred. The packages form chains of ten, in which each package depends on the one before it. The first
package of a chain gets another version, runs again, or is disabled and enabled again.
"""

from collections.abc import Callable, Iterator
from typing import Final

from bench.measure import Ratio, compare
from tests.runtime.support.nodes import node
from wharfinger.runtime.scheduler.events import Completed, Event, IntentSet, NodeAdded, Rescheduled, Resumed, Schedule
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.state import Graph

MANY: Final = 10_000
FEW: Final = 100
CHAIN: Final = 10
CHANGES: Final = 20


class World:
    """The graph of a scheduler. Each run that the scheduler schedules is completed immediately."""

    def __init__(self, nodes: list[Node]) -> None:
        self.graph, _ = step(Graph(), Resumed())
        for each in nodes:
            self.tell(NodeAdded(each))

    def tell(self, *events: Event) -> None:
        """Process events, and complete every run that the graph then schedules."""
        waiting = list(events)
        while waiting:
            self.graph, effects = step(self.graph, waiting.pop())
            waiting += [Completed(effect.name, effect.run) for effect in effects if isinstance(effect, Schedule)]


def packages(count: int) -> list[Node]:
    """Return ``count`` packages in chains of ten, and a package on which all of them depend."""
    return [node("base", order=1), *(package(number) for number in range(count))]


def package(number: int, version: str = "1.0.0") -> Node:
    """Return one package of a chain."""
    wanted = ["base", *([f"prod.app-{number - 1:05}"] if number % CHAIN else [])]
    return node(f"prod.app-{number:05}", *wanted, version=version)


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the addition of all packages, and three changes of one package that has nine dependents."""
    many, few = packages(MANY), packages(FEW)

    def add_many() -> None:
        World(many)

    def add_few() -> None:
        for _ in range(MANY // FEW):
            World(few)

    what = f"{MANY} packages added and run"
    yield compare(
        "scheduler",
        what,
        f"{FEW} packages, {MANY // FEW} times",
        add_many,
        add_few,
        budget=1.6,
        rounds=3 if long else 1,
    )
    large, small = World(many), World(few)
    first = "prod.app-00050"
    versions = iter(range(10**9))

    def another_version(world: World) -> None:
        world.tell(NodeAdded(package(50, f"1.0.{next(versions)}")))

    def run_again(world: World) -> None:
        world.tell(Rescheduled(first, "SettingsChanged"))

    def off_and_on(world: World) -> None:
        world.tell(IntentSet(first, enabled=False))
        world.tell(IntentSet(first, enabled=None))

    changes: tuple[tuple[str, Callable[[World], None]], ...] = (
        ("a new version that reaches 10", another_version),
        ("a new run that reaches 10", run_again),
        ("off and on again, which reaches 10", off_and_on),
    )
    for what, change in changes:
        yield _change(what, change, large, small)


def _change(what: str, change: Callable[[World], None], large: World, small: World) -> Ratio:
    def times(world: World) -> Callable[[], None]:
        def run() -> None:
            for _ in range(CHANGES):
                change(world)

        return run

    against = f"the same among {FEW}"
    return compare("scheduler", f"{what} of {MANY}", against, times(large), times(small), budget=1.6).per(CHANGES)
