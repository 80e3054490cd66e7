"""Nodes of a scheduler, and a scheduler that is told things, in few words."""

from collections.abc import Iterable, Mapping

from wharfinger.formats.version_constraint import VersionConstraint, parse_constraint
from wharfinger.packages.requirements import Dependency, DependencyGroup, Requirements
from wharfinger.runtime.scheduler_graph import DEFAULT_ORDER, Node, Verdict
from wharfinger.runtime.scheduler_machine import (
    Completed,
    Decided,
    Disable,
    Effect,
    Event,
    Graph,
    NodeAdded,
    Resumed,
    Schedule,
    Scheduled,
    step,
)


def depends(*names: str) -> tuple[Dependency, ...]:
    """``"db"``, or with a constraint ``"db >=1.2"``."""
    return tuple(
        Dependency(name, parse_constraint(constraint))
        for name, _, constraint in (text.partition(" ") for text in names)
    )


def group(name: str, *members: str) -> DependencyGroup:
    return DependencyGroup(name, f"any {name}", depends(*members))


def node(
    name: str,
    *needs: str,
    version: str = "1.0.0",
    order: int = DEFAULT_ORDER,
    optional: Iterable[str] = (),
    any_of: Iterable[DependencyGroup] = (),
    none_of: Iterable[DependencyGroup] = (),
    kubernetes: str | None = None,
    platform: str | None = None,
    floor: Verdict = Verdict.ENABLE,
    script: bool = False,
) -> Node:
    requirements = Requirements(
        kubernetes=_constraint(kubernetes),
        platform=_constraint(platform),
        mandatory=depends(*needs),
        conditional=depends(*optional),
        any_of=tuple(any_of),
        none_of=tuple(none_of),
    )
    return Node(name, version, requirements, order, floor, script)


def module(name: str, *needs: str, order: int = DEFAULT_ORDER, script: bool = False) -> Node:
    """Off unless something enables it."""
    return node(name, *needs, order=order, floor=Verdict.DISABLE, script=script)


def _constraint(text: str | None) -> VersionConstraint | None:
    return None if text is None else parse_constraint(text)


class World:
    """A scheduler that is not paused, and all it ever said; each question forgets what was asked about."""

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
        """The current run of each, which must be running."""
        for name in names:
            phase = self.graph.entries[name].phase
            assert isinstance(phase, Scheduled), f"{name} is {phase}"
            self.tell(Completed(name, phase.run))

    def said(self) -> list[Effect]:
        """Everything since the last question."""
        said, self.effects = self.effects, []
        return said

    def scheduled(self) -> list[str]:
        """Names of what was scheduled since the last question, in order."""
        return [effect.name for effect in self.said() if isinstance(effect, Schedule)]

    def disabled(self) -> list[Disable]:
        """What was disabled since the last question."""
        return [effect for effect in self.said() if isinstance(effect, Disable)]

    def decided(self) -> Mapping[str, Decided]:
        """What was last decided since the last question."""
        return {effect.name: effect for effect in self.said() if isinstance(effect, Decided)}

    def on(self) -> set[str]:
        return {name for name, entry in self.graph.entries.items() if entry.on}

    def phase(self, name: str) -> str:
        return type(self.graph.entries[name].phase).__name__


def running(*nodes: Node) -> World:
    """Everything that can be is active, and nothing of it is to be asked about."""
    world = World(*nodes)
    while waiting := [name for name, entry in world.graph.entries.items() if isinstance(entry.phase, Scheduled)]:
        world.complete(*waiting)
    world.said()
    return world
