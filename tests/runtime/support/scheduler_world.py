"""Helpers for tests of a scheduler."""

from collections.abc import Mapping

from wharfinger.runtime.scheduler.events import Completed, Decided, Disable, Effect, Event, NodeAdded, Resumed, Schedule
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.state import Graph, Scheduled


class World:
    """A scheduler and its effects. `said`, `scheduled`, `disabled` and `decided` return effects, and then discard all of them."""

    def __init__(self, *nodes: Node, resumed: bool = True) -> None:
        self.graph = Graph()
        self.effects: list[Effect] = []
        if resumed:
            self.tell(Resumed())
        for each in nodes:
            self.tell(NodeAdded(each))

    def tell(self, *events: Event) -> None:
        for event in events:
            self.graph, effects = step(self.graph, event)
            self.effects += effects

    def complete(self, *names: str) -> None:
        """Report that the current run of each of these nodes is complete. Each of them must be running."""
        for name in names:
            phase = self.graph.entries[name].phase
            assert isinstance(phase, Scheduled), f"{name} is {phase}"
            self.tell(Completed(name, phase.run))

    def said(self) -> list[Effect]:
        """Return all effects since they were last discarded."""
        said, self.effects = self.effects, []
        return said

    def scheduled(self) -> list[str]:
        """Return the names of the packages that were scheduled since the effects were last discarded, in order."""
        return [effect.name for effect in self.said() if isinstance(effect, Schedule)]

    def disabled(self) -> list[Disable]:
        """Return the Disable effects since the effects were last discarded."""
        return [effect for effect in self.said() if isinstance(effect, Disable)]

    def decided(self) -> Mapping[str, Decided]:
        """Return the last decision about each node since the effects were last discarded."""
        return {effect.name: effect for effect in self.said() if isinstance(effect, Decided)}

    def on(self) -> set[str]:
        return {name for name, entry in self.graph.entries.items() if entry.on}

    def phase(self, name: str) -> str:
        return type(self.graph.entries[name].phase).__name__


def running(*nodes: Node) -> World:
    """Return a `World` in which every node that can be active is active. The effects so far are discarded."""
    world = World(*nodes)
    while waiting := [name for name, entry in world.graph.entries.items() if isinstance(entry.phase, Scheduled)]:
        world.complete(*waiting)
    world.said()
    return world
