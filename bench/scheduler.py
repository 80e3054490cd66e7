"""The live scheduler: size against size, and what one change costs among ten thousand packages.

What counts is that a step costs what the event can reach. So ten thousand packages are measured against a hundred, for the same
change: of ten that build on each other, the first gets another version, is completed, is switched off and on.
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
    """A graph, and the events that answer what it orders."""

    def __init__(self, nodes: list[Node]) -> None:
        self.graph, _ = step(Graph(), Resumed())
        for each in nodes:
            self.tell(NodeAdded(each))

    def tell(self, *events: Event) -> None:
        """The events, and every run that follows from them completed."""
        waiting = list(events)
        while waiting:
            self.graph, effects = step(self.graph, waiting.pop())
            waiting += [Completed(effect.name, effect.run) for effect in effects if isinstance(effect, Schedule)]


def packages(count: int) -> list[Node]:
    """Chains of ten packages; all of them build on one, too."""
    return [node("base", order=1), *(package(number) for number in range(count))]


def package(number: int, version: str = "1.0.0") -> Node:
    """One of a chain."""
    wanted = ["base", *([f"prod.app-{number - 1:05}"] if number % CHAIN else [])]
    return node(f"prod.app-{number:05}", *wanted, version=version)


def measure(long: bool) -> Iterator[Ratio]:
    """Everything added; a change that reaches ten; a run completed; the same off and on again."""
    many, few = packages(MANY), packages(FEW)

    def add_many() -> None:
        World(many)

    def add_few() -> None:
        for _ in range(MANY // FEW):
            World(few)

    what = f"{MANY} packages added and run"
    yield compare(
        "scheduler", what, f"{MANY // FEW} times {FEW}", add_many, add_few, budget=1.6, rounds=3 if long else 1
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
        ("another version, reaches 10", another_version),
        ("run again, reaches 10", run_again),
        ("off and on again, reaches 10", off_and_on),
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
