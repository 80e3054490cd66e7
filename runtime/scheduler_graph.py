"""What builds on what: the nodes of the scheduler and the order that their requirements give them.

Two kinds of edges. A declared dependency, optional or not, is *hard* while its target is there: the target comes first and
is waited for, and a cycle of such edges is an error that changes nothing. Members of any-of and none-of groups are *soft*
edges: they place the member first, so that its fate is known before that of whoever names it, but only where this closes no
cycle; chains of fallbacks and packages that exclude each other must not be errors. An any-of member that was placed first is
waited for as well; one that was not is *late*, and :mod:`wharfinger.runtime.gates` has a rule for it.

An order is lower-first. One that is declared below that of a dependency is raised to it, or both would wait for each other
for ever: the dependency behind the barrier between orders, the dependent behind its edge (spec/runtime §4.5, §4.6).

Pure, and a function of the nodes alone: in which sequence they arrived leaves no trace.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from wharfinger.packages.requirements import Dependency, DependencyGroup, Requirements

DEFAULT_ORDER: Final = 999
"""Of Applications and of Modules that are not critical."""


class Verdict(StrEnum):
    """What a rule says about a node, and what all of them together say: a node is on if and only if that is ENABLE."""

    UNDEFINED = "Undefined"
    ENABLE = "Enable"
    DISABLE = "Disable"
    FORBID = "Forbid"


class CycleError(Exception):
    """A node would close a cycle of dependencies; ``members`` are on it, sorted. Nothing was changed."""

    def __init__(self, members: Iterable[str]) -> None:
        self.members = tuple(sorted(members))
        super().__init__(f"dependency cycle through: {', '.join(self.members)}")


@dataclass(frozen=True, slots=True)
class Node:
    """One loaded package: facts of its definition only.

    ``floor`` is its verdict when nobody says anything: ENABLE for Applications, DISABLE for Modules. ``script``: the package
    has an enabled script, whose vote is waited for after every NodeAdded.
    """

    name: str
    version: str
    requirements: Requirements
    order: int = DEFAULT_ORDER
    floor: Verdict = Verdict.ENABLE
    script: bool = False

    def dependencies(self) -> Iterator[tuple[Dependency, bool]]:
        """Declared dependencies and whether they are optional, sorted by name."""
        mandatory, conditional = self.requirements.mandatory, self.requirements.conditional
        if mandatory or conditional:
            declared = [*((each, False) for each in mandatory), *((each, True) for each in conditional)]
            yield from sorted(declared, key=lambda pair: (pair[0].name, pair[1]))

    def names(self) -> set[str]:
        """Everybody that its requirements name."""
        wanted = self.requirements
        groups = (*wanted.any_of, *wanted.none_of)
        members = (each.name for group in groups for each in group.members)
        return {*(each.name for each, _ in self.dependencies()), *members} - {self.name}


@dataclass(frozen=True, slots=True)
class Topology:
    """The nodes in order: each after everything it builds on, then by declared order and name.

    ``waits_for``: what must be active before a node may be scheduled. ``effective``: its order, raised. ``late``: any-of
    members placed after a node that names them. ``refused_by``: for a node, those placed before it that exclude it.
    ``named_by``: for a name, there or not, the nodes whose requirements have it.
    """

    order: tuple[str, ...] = ()
    waits_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    effective: Mapping[str, int] = field(default_factory=dict)
    late: frozenset[str] = frozenset()
    refused_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    named_by: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def affected_by(self, name: str) -> list[str] | None:
        """Nodes whose decisions may follow from that of ``name``, in order; None where nothing less than all will do."""
        if self.late or self.refused_by:
            return None
        found, to_see = {name}, [name]
        while to_see:
            new = [each for each in self.named_by.get(to_see.pop(), ()) if each not in found]
            found.update(new)
            to_see += new
        if len(found) == 1:
            return [name]
        return [each for each in self.order if each in found]


def with_node(before: Topology, nodes: Mapping[str, Node], name: str, old: Node | None) -> Topology:
    """`topology` of ``nodes``, from what it was before ``name`` came among them, or came anew. Raises CycleError.

    A node that asks for the same changes nothing, and one that nobody names finds its place among the others.
    """
    new = nodes[name]
    if old is not None and (old.requirements, old.order) == (new.requirements, new.order):
        return before
    simple = not (new.requirements.any_of or new.requirements.none_of or before.late or before.refused_by)
    if old is not None or not simple or before.named_by.get(name):
        return topology(nodes)
    named = {each.name for each, _ in new.dependencies()}
    if name in named:
        return topology(nodes)
    wanted = sorted(each for each in named if each in nodes)
    start = max((before.order.index(each) + 1 for each in wanted), default=0)
    key = (new.order, name)
    rest = range(start, len(before.order))
    at = next((i for i in rest if (nodes[before.order[i]].order, before.order[i]) > key), len(before.order))
    return Topology(
        (*before.order[:at], name, *before.order[at:]),
        {**before.waits_for, name: tuple(wanted)},
        {**before.effective, name: max([new.order, *(before.effective[each] for each in wanted)])},
        named_by={**before.named_by, **{each: before.named_by.get(each, frozenset()) | {name} for each in named}},
    )


def without_node(before: Topology, nodes: Mapping[str, Node], old: Node) -> Topology:
    """`topology` of ``nodes``, from what it was with ``old`` among them. One that nobody names leaves the others as they are."""
    name = old.name
    simple = not (old.requirements.any_of or old.requirements.none_of or before.late or before.refused_by)
    if not simple or before.named_by.get(name):
        return topology(nodes)
    named_by = dict(before.named_by)
    for each in old.names():
        left = named_by[each] - {name}
        if left:
            named_by[each] = left
        else:
            del named_by[each]
    waits_for, effective = dict(before.waits_for), dict(before.effective)
    del waits_for[name], effective[name]
    return Topology(tuple(each for each in before.order if each != name), waits_for, effective, named_by=named_by)


def topology(nodes: Mapping[str, Node]) -> Topology:
    """The order of ``nodes``, by name. Raises CycleError."""
    before = {
        name: {each.name for each, _ in node.dependencies() if each.name in nodes} for name, node in nodes.items()
    }
    _placed(nodes, before)
    waits_for = {name: set(found) for name, found in before.items()}
    late = set()
    for name, member in _members(nodes, lambda requirements: requirements.any_of):
        if _comes_after(member, name, before):
            late.add(member)
        else:
            before[name].add(member)
            waits_for[name].add(member)
    refused_by: dict[str, tuple[str, ...]] = {}
    for name, member in _members(nodes, lambda requirements: requirements.none_of):
        if _comes_after(member, name, before):
            refused_by[member] = (*refused_by.get(member, ()), name)
        else:
            before[name].add(member)
    order = _placed(nodes, before)
    named_by: dict[str, set[str]] = {}
    for name, node in nodes.items():
        for each in node.names():
            named_by.setdefault(each, set()).add(name)
    effective: dict[str, int] = {}
    for name in order:
        effective[name] = max([nodes[name].order, *(effective[each] for each in waits_for[name])])
    return Topology(
        order,
        {name: tuple(sorted(found)) for name, found in waits_for.items()},
        effective,
        frozenset(late),
        refused_by,
        {name: frozenset(namers) for name, namers in named_by.items()},
    )


def _members(
    nodes: Mapping[str, Node], groups: Callable[[Requirements], tuple[DependencyGroup, ...]]
) -> list[tuple[str, str]]:
    """Pairs of a node and another one that is a member of one of its groups, sorted."""
    pairs = {
        (name, member.name)
        for name, node in nodes.items()
        for group in groups(node.requirements)
        for member in group.members
    }
    return sorted((name, member) for name, member in pairs if member in nodes and member != name)


def _comes_after(later: str, earlier: str, before: Mapping[str, set[str]]) -> bool:
    """Whether ``later`` builds on ``earlier`` already, at any remove."""
    seen = {later}
    to_see = [later]
    while to_see:
        name = to_see.pop()
        if name == earlier:
            return True
        to_see += before[name] - seen
        seen |= before[name]
    return False


def _placed(nodes: Mapping[str, Node], before: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Kahn's algorithm; of what may come next, the lowest declared order, then the name. Raises CycleError."""
    after: dict[str, list[str]] = {name: [] for name in nodes}
    missing = {name: len(found) for name, found in before.items()}
    for name, found in before.items():
        for each in found:
            after[each].append(name)
    ready = [(nodes[name].order, name) for name, count in missing.items() if not count]
    heapq.heapify(ready)
    placed = []
    while ready:
        _, name = heapq.heappop(ready)
        placed.append(name)
        for each in after[name]:
            missing[each] -= 1
            if not missing[each]:
                heapq.heappush(ready, (nodes[each].order, each))
    if len(placed) < len(nodes):
        raise CycleError(_on_cycles(set(nodes) - set(placed), before))
    return tuple(placed)


def _on_cycles(left: set[str], before: Mapping[str, set[str]]) -> set[str]:
    """What is left, without what only builds on a cycle: nothing on the cycle builds on that."""
    while loose := left - set().union(*(before[name] for name in left)):
        left -= loose
    return left
