"""The benchmark of the fixpoint engine. It compares the engine with the sort of the standard library on a layered graph, and a
large graph with small ones. It also measures the time of one change.

`graphlib.TopologicalSorter` orders a graph that is known and never changes. The engine finds the same order by blocking nodes and
waking them, keeps an index that explains each wait, and can continue when something changes.
"""

from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Final

from bench.measure import Ratio, compare
from wharfinger.runtime.fixpoint.machine import start, step
from wharfinger.runtime.fixpoint.model import (
    Arrived,
    Blocked,
    Dispatch,
    Emission,
    Event,
    Finished,
    Id,
    Outcome,
    Pulled,
    Seeded,
    Terminal,
)
from wharfinger.runtime.fixpoint.state import Fixpoint, Rules

LAYERS: Final = 100
WIDTH: Final = 100
CHANGES: Final = 100
BODIES: Final = 3
"""The highest allowed number of body runs in a layered graph, for each of its nodes on average."""
ENDING: Final = Rules()
LIVE: Final = Rules(drain=False)
DONE: Final = Terminal("done")
Wanted = dict[Id, tuple[Id, ...]]


class Driver:
    """A driver that runs one body after the other. A node is done once all nodes that it waits for (its nodes in ``wanted``)
    are done.
    """

    def __init__(self, wanted: Wanted, rules: Rules = ENDING, *, follows: bool = False) -> None:
        self.wanted = wanted
        self.follows = follows
        self.state: Fixpoint = start(rules)
        self.bodies = 0
        self.content = ""

    def tell(self, event: Event) -> None:
        """Process an event, and run every body that the engine then dispatches."""
        self.state, _ = step(self.state, event)
        while True:
            self.state, effects = step(self.state, Pulled())
            if not effects or not isinstance(effects[0], Dispatch):
                return
            dispatch = effects[0]
            self.bodies += 1
            self.state, _ = step(self.state, Finished(dispatch.id, dispatch.run, self._body(dispatch.id)))

    def _body(self, node: Id) -> Outcome:
        """Return Blocked while a node that this node waits for has no result, otherwise the outcome "done". With ``follows``,
        this node runs again when the result of such a node changes.
        """
        wanted = self.wanted[node]
        results = [self.state.result(each) for each in wanted]
        if None in results:
            return Blocked(tuple(each for each, result in zip(wanted, results, strict=True) if result is None))
        if not self.follows:
            return DONE
        return Terminal(results[0] or "" if results else f"done {self.content}", wanted)


def layered(layers: int, width: int, *, name: str = "") -> Wanted:
    """Return a graph in which each node waits for three nodes of the previous layer.

    The ids of later layers sort first, so that the engine starts every node before the nodes that it waits for.
    """
    ids = [[Id("Node", name, f"{layers - layer:04}-{at:04}") for at in range(width)] for layer in range(layers)]
    wanted: Wanted = {}
    for layer, row in enumerate(ids):
        for at, node in enumerate(row):
            wanted[node] = () if not layer else tuple(sorted({ids[layer - 1][(at + by) % width] for by in (0, 1, 7)}))
    return wanted


def measure(long: bool) -> Iterator[Ratio]:
    """Measure a graph of 10,000 nodes, one large graph against small ones, and a change that reaches ten of 10,000 nodes."""
    wanted = layered(LAYERS, WIDTH)

    def converged() -> None:
        driver = Driver(wanted)
        driver.tell(Seeded(tuple(wanted)))
        if driver.bodies > BODIES * len(wanted):
            raise SystemExit(
                f"bench: {driver.bodies} runs of bodies for {len(wanted)} nodes; at most {BODIES} for each are allowed"
            )

    def sorted_by_the_library() -> None:
        tuple(TopologicalSorter(wanted).static_order())

    yield compare(
        "fixpoint",
        f"{len(wanted)} nodes in {LAYERS} layers",
        "graphlib, the order alone",
        converged,
        sorted_by_the_library,
        budget=60.0,
        rounds=3 if long else 1,
    )
    yield _sizes(1000 if long else 100)
    yield _changes()


def _sizes(width: int) -> Ratio:
    large, small, graphs = layered(LAYERS, width), layered(LAYERS, 10), width // 10

    def one_large() -> None:
        Driver(large).tell(Seeded(tuple(large)))

    def many_small() -> None:
        for _ in range(graphs):
            Driver(small).tell(Seeded(tuple(small)))

    what = f"{len(large)} nodes in one graph"
    return compare("fixpoint", what, f"{graphs} graphs of {len(small)}", one_large, many_small, budget=1.5, rounds=3)


def _changes() -> Ratio:
    """Measure a change of the content of the first node in a chain of ten, which runs all ten nodes again."""
    chain = {Id("Node", "chain", str(at)): () if not at else (Id("Node", "chain", str(at - 1)),) for at in range(10)}
    first = Id("Node", "chain", "0")
    among_many = Driver({**layered(LAYERS, WIDTH), **chain}, LIVE, follows=True)
    alone = Driver(dict(chain), LIVE, follows=True)
    for driver in (among_many, alone):
        driver.tell(Seeded(tuple(driver.wanted)))
    contents = iter(range(10**9))

    def change(driver: Driver) -> None:
        for _ in range(CHANGES):
            driver.content = f"content {next(contents)}"
            driver.tell(Arrived(Emission(first, driver.content)))

    what = "a change that reaches 10 of 10,000"
    return compare(
        "fixpoint", what, "the same in a graph of 10", lambda: change(among_many), lambda: change(alone), budget=1.6
    ).per(CHANGES)
