"""Helpers that create nodes of a scheduler."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from wharfinger.formats.version_constraint import VersionConstraint, parse_constraint
from wharfinger.packages.definition.requirements import Dependency, DependencyGroup, Requirements
from wharfinger.runtime.scheduler.graph import DEFAULT_ORDER, Node, Topology, Verdict, topology


def depends(*names: str) -> tuple[Dependency, ...]:
    """Return dependencies from texts such as ``"db"``, or ``"db >=1.2"`` with a constraint."""
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
    subscriptions: Iterable[str] = (),
    bundles: Iterable[tuple[str, str]] = (),
) -> Node:
    requirements = Requirements(
        kubernetes=_constraint(kubernetes),
        platform=_constraint(platform),
        mandatory=depends(*needs),
        conditional=depends(*optional),
        any_of=tuple(any_of),
        none_of=tuple(none_of),
    )
    return Node(name, version, requirements, order, floor, script, tuple(subscriptions), frozenset(bundles))


def module(
    name: str,
    *needs: str,
    order: int = DEFAULT_ORDER,
    script: bool = False,
    bundles: Iterable[tuple[str, str]] = (),
) -> Node:
    """Return a Module that is off unless something enables it."""
    return node(name, *needs, order=order, floor=Verdict.DISABLE, script=script, bundles=bundles)


def grouped(name: str, *needs: str, order: int = DEFAULT_ORDER, group: str = "cni") -> Node:
    """Return a Module of an exclusive group."""
    return replace(node(name, *needs, order=order), exclusive=group)


def _constraint(text: str | None) -> VersionConstraint | None:
    return None if text is None else parse_constraint(text)


def built(*nodes: Node) -> Topology:
    return topology({each.name: each for each in nodes})


def ordered(*nodes: Node) -> tuple[str, ...]:
    """Return the names of all nodes, in the order in which they are decided."""
    by_name = {each.name: each for each in nodes}
    return topology(by_name).sorted(by_name, by_name)


NAMES = "abcdef"


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Draw nodes with edges of all kinds. Hard edges lead only from later to earlier names, so they form no cycle."""
    nodes = []
    for index, name in enumerate(NAMES[: draw(st.integers(1, len(NAMES)))]):
        earlier, some = st.sampled_from(NAMES[:index] or "-"), st.sampled_from(NAMES)
        nodes.append(
            node(
                name,
                *draw(st.sets(earlier, max_size=2)),
                order=draw(st.integers(1, 4)),
                optional=draw(st.sets(earlier, max_size=1)),
                any_of=[group("any", *draw(st.sets(some, min_size=1, max_size=2)))],
                none_of=[group("none", *draw(st.sets(some, max_size=1)))],
            )
        )
    return nodes
