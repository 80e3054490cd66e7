"""The dependency graph: the nodes of the scheduler, and the order that their requirements give them.

There are two kinds of edges. The edge to a declared dependency, optional or not, is *hard* while the dependency exists: the
dependency comes first, and the node waits for it. A cycle of hard edges is an error, and the change that would close the cycle is
refused. The edges to members of any-of and none-of groups are *soft*. A soft edge places the member first, so that the member is
decided before the node that names it. The edge is dropped if it would close a cycle, because chains of fallbacks, and packages
that exclude each other, must not be errors. A node also waits for an any-of member that was placed first. Nodes that are on a
cycle because of soft edges are a *knot*: :mod:`wharfinger.runtime.scheduler.soft_edges` chooses which edges of the knot are kept.
Outside of knots all edges are kept.

A package with a lower order comes first. If a package declares a lower order than one of its dependencies, its effective
order is raised to that of the dependency. Otherwise the two would wait for each other forever: the dependency would wait for
all lower orders, and the dependent for its dependency (spec/runtime §4.5, §4.6).

Invariants. A topology depends only on the nodes, and not on the sequence in which they were added. The cost of a change
depends only on the nodes that the change can affect, and not on the size of the graph: the maps are persistent, and only
these nodes are visited:

- the *circle* of the changed node (the nodes on cycles through it), searched along the edges and against them at the same time;
- its former knot: no other knot can change, because each cycle that appears or disappears contains the changed node;
- dependents, and their dependents, until neither the rank nor the effective order of a node changes. Each of them is visited
  once, in the order of their former ranks. The edges between nodes outside of the circle and the knot are unchanged, so the
  former ranks of these nodes still give a valid order.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Generic, TypeVar

from rpds import HashTrieMap, HashTrieSet

from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.packages.definition.requirements import Dependency, DependencyGroup, Requirements
from wharfinger.runtime.fixpoint.circles import circle_of, shortest_cycle, strong_components
from wharfinger.runtime.scheduler.soft_edges import Knot, tie

DEFAULT_ORDER: Final = 999
"""The order of Applications, and of Modules whose files set no order."""
_MOST_SHOWN: Final = 20
"""The limit on the number of names in one message."""
_ANY: Final = parse_constraint("")
_NOBODY: Final[frozenset[str]] = frozenset()
_NAMERS: "Final[HashTrieSet[str]]" = HashTrieSet()


class Verdict(StrEnum):
    """The verdict of one rule, or of all rules together, about a node; a node is on if and only if the verdict of all rules is
    ENABLE.
    """

    UNDEFINED = "Undefined"
    ENABLE = "Enable"
    DISABLE = "Disable"
    FORBID = "Forbid"


class CycleError(Exception):
    """A node would close a cycle of dependencies. Nothing was changed.

    ``members`` are the names of all nodes that are on a cycle with the first member, sorted. If there are several such sets, the
    set with the alphabetically first name is reported. ``path`` is a shortest cycle, which begins with the first member: each
    node needs the next one, and the last node needs the first.
    """

    def __init__(self, members: Iterable[str], path: Iterable[str]) -> None:
        self.members = tuple(sorted(members))
        self.path = tuple(path)
        around = " → ".join((*_few(self.path), self.path[0]))
        super().__init__(f"dependency cycle through: {', '.join(_few(self.members))} ({around})")


def _few(names: tuple[str, ...]) -> tuple[str, ...]:
    more = len(names) - _MOST_SHOWN
    return (*names[:_MOST_SHOWN], f"{more} more") if more > 0 else names


@dataclass(frozen=True, slots=True)
class Node:
    """One loaded package, with the facts that follow from its definition and its resource.

    ``floor`` is the verdict if no rule votes: ENABLE for Applications and for Modules that are on by default according to their
    files, DISABLE for other Modules. ``script`` is True if the package has an enabled script, whose vote is needed after every
    NodeAdded. This package runs again when a package in ``subscriptions`` is added, removed, switched on or off, or has to run
    again; subscriptions are no edges. ``bundles`` are the pairs of an edition and a bundle of the platform that enable this
    Module. ``declined`` is True if the package's files state that it is off by default, so that the floor DISABLE is the
    package's own decision.
    """

    name: str
    version: str
    requirements: Requirements
    order: int = DEFAULT_ORDER
    floor: Verdict = Verdict.ENABLE
    script: bool = False
    subscriptions: tuple[str, ...] = ()
    bundles: frozenset[tuple[str, str]] = frozenset()
    declined: bool = False
    exclusive: str = ""
    """The exclusive group of a Module; "" if it belongs to no group."""
    outranked_by: tuple[str, ...] = ()
    """The Modules of the node's exclusive group that take precedence over the node; set by the scheduler."""

    @property
    def excluded(self) -> tuple[DependencyGroup, ...]:
        """The none-of groups of the node, including its exclusive group."""
        if not self.outranked_by:
            return self.requirements.none_of
        members = tuple(Dependency(each, _ANY) for each in self.outranked_by)
        group = DependencyGroup(f"exclusive group {self.exclusive}", "", members)
        return (*self.requirements.none_of, group)

    def dependencies(self) -> Iterator[tuple[Dependency, bool]]:
        """Return the declared dependencies and whether each is optional, sorted by name."""
        mandatory, conditional = self.requirements.mandatory, self.requirements.conditional
        if mandatory or conditional:
            declared = [*((each, False) for each in mandatory), *((each, True) for each in conditional)]
            yield from sorted(declared, key=lambda pair: (pair[0].name, pair[1]))

    def names(self) -> set[str]:
        """Return all packages that the requirements name, except the node itself."""
        wanted = self.requirements
        members = [each.name for group in (*wanted.any_of, *self.excluded) for each in group.members]
        return {*(each.name for each in (*wanted.mandatory, *wanted.conditional)), *members} - {self.name}


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of a node: the other packages that its requirements name, whether these packages exist or not. ``named`` is the
    union of the other three sets.
    """

    hard: frozenset[str]
    any_of: frozenset[str]
    none_of: frozenset[str]
    named: frozenset[str]


@dataclass(frozen=True, slots=True)
class Topology:
    """The order of the nodes: each node comes after the nodes that it names, except for some nodes in knots.

    ``waits_for`` has, for each node, the nodes that must be active before it may be scheduled, sorted. ``effective`` has the
    effective order of each node: its own order, or the highest effective order in its ``waits_for`` if that is higher.
    ``named_by`` has, for each name, the nodes whose requirements contain the name; a name may have no node. ``knots`` has the
    knot of each node that is in a knot. ``rank`` is the length of the longest path from a node to a node without dependencies;
    all members of a knot have the same rank. ``edges`` has the edges of each node.
    """

    effective: "HashTrieMap[str, int]" = field(default_factory=HashTrieMap)
    waits_for: "HashTrieMap[str, tuple[str, ...]]" = field(default_factory=HashTrieMap)
    named_by: "HashTrieMap[str, HashTrieSet[str]]" = field(default_factory=HashTrieMap)
    knots: "HashTrieMap[str, Knot]" = field(default_factory=HashTrieMap)
    rank: "HashTrieMap[str, int]" = field(default_factory=HashTrieMap)
    edges: "HashTrieMap[str, Edges]" = field(default_factory=HashTrieMap)

    def affected_by(self, nodes: Mapping[str, Node], names: Iterable[str]) -> tuple[str, ...]:
        """Return ``names`` and every node whose decision may depend on a decision about ``names``, in the order of decision.

        For a name without a node, the nodes that name it are returned. If one member of a knot is affected, all members are.
        """
        to_see = list(names)
        found = set(to_see)
        while to_see:
            new = [each for each in self.named_by.get(to_see.pop(), ()) if each not in found]
            found.update(new)
            to_see += new
        return self.sorted(nodes, (each for each in found if each in self.edges))

    def dependents(self, name: str) -> tuple[str, ...]:
        """Return the nodes that name a package, sorted."""
        return tuple(sorted(self.named_by.get(name, ())))

    def sorted(self, nodes: Mapping[str, Node], names: Iterable[str]) -> tuple[str, ...]:
        """Sort some of the nodes: dependencies first, then by declared order, then by name. Knots stay together.

        Any two nodes have the same order in every subset: they are sorted by rank, then by declared order and name. A knot is
        sorted by the declared order and name of its first member.
        """

        def key(name: str) -> tuple[int, int, str, int]:
            knot = self.knots.get(name)
            if knot is None:
                return self.rank[name], nodes[name].order, name, 0
            first = knot.members[0]
            return self.rank[name], nodes[first].order, first, knot.position[name]

        return tuple(sorted(names, key=key))


@dataclass(frozen=True, slots=True)
class Rewired:
    """The result of a change of one node. ``moved`` are the other nodes whose dependencies or effective orders the change has
    affected.
    """

    topology: Topology
    moved: tuple[str, ...] = ()


def with_node(before: Topology, nodes: Mapping[str, Node], name: str, old: Node | None) -> Rewired:
    """Return the topology of ``nodes`` after the node ``name`` was added, or has replaced ``old``. It is derived from the
    topology ``before`` this change. Raises CycleError.
    """
    new = nodes[name]
    same = old is not None and (old.requirements, old.order) == (new.requirements, new.order)
    if old is not None and same and old.outranked_by == new.outranked_by:
        return Rewired(before)
    draft = _Draft(before, nodes)
    gained = draft.put(name, _edges(new))
    region = {name, *_tied(before, name)}
    if gained and draft.namers(name):
        region |= circle_of(name, draft.named, draft.namers)
    draft.settle(region)
    if old is None:
        draft.rewait(name)
    return draft.done(name)


def without_node(before: Topology, nodes: Mapping[str, Node], old: Node) -> Rewired:
    """Return the topology of ``nodes``, from which ``old`` was removed. ``before`` is the topology with ``old``; only the parts
    that the removal affects are computed again.
    """
    draft = _Draft(before, nodes)
    draft.drop(old.name)
    draft.settle({each for each in _tied(before, old.name) if each != old.name})
    draft.rewait(old.name)
    return draft.done(old.name)


def topology(nodes: Mapping[str, Node]) -> Topology:
    """Return the topology of ``nodes``, computed without a former topology. Raises CycleError."""
    edges = {name: _edges(nodes[name]) for name in sorted(nodes)}
    named_by: dict[str, list[str]] = {}
    for name, found in edges.items():
        for each in found.named:
            named_by.setdefault(each, []).append(name)
    draft = _Draft(Topology(), nodes)
    draft.edges = HashTrieMap(edges)
    draft.named_by = HashTrieMap({name: HashTrieSet(namers) for name, namers in named_by.items()})
    draft.settle(nodes.keys())
    return draft.done("").topology


def _edges(node: Node) -> Edges:
    """Return the edges of a node. Raises CycleError if it depends on itself."""
    wanted = node.requirements
    hard = frozenset([each.name for each in (*wanted.mandatory, *wanted.conditional)])
    if node.name in hard:
        raise CycleError([node.name], [node.name])
    if not (wanted.any_of or wanted.none_of or node.outranked_by):
        return Edges(hard, _NOBODY, _NOBODY, hard)
    any_of = frozenset([each.name for group in wanted.any_of for each in group.members]) - {node.name}
    none_of = frozenset([each.name for group in node.excluded for each in group.members]) - {node.name}
    return Edges(hard, any_of, none_of, hard | any_of | none_of)


def _tied(topology: Topology, name: str) -> tuple[str, ...]:
    """Return the members of the node's knot; only the node itself if it is not in a knot."""
    knot = topology.knots.get(name)
    return knot.members if knot else (name,)


class _Draft:
    """A topology during a change: the former topology, and the new edges and new facts about nodes, which take precedence."""

    def __init__(self, before: Topology, nodes: Mapping[str, Node]) -> None:
        self.edges = before.edges
        self.named_by = before.named_by
        self._before = before
        self._nodes = nodes
        self._knots: dict[str, Knot | None] = {}
        self._rank = _Overlay(before.rank)
        self._effective = _Overlay(before.effective)
        self._waits_for = _Overlay(before.waits_for)
        self._seen: set[str] = set()
        self._stale: list[tuple[int, str]] = []
        """A heap of the nodes whose rank and effective order have to be computed again. Each entry is a node's former rank and
        name.
        """

    def put(self, name: str, edges: Edges) -> bool:
        """Set the edges of a node. Return whether the node now names an existing node that it did not name before."""
        before = self.edges.get(name)
        was = before.named if before else _NOBODY
        self.edges = self.edges.insert(name, edges)
        self._unname(name, was - edges.named)
        gained = edges.named - was
        for each in gained:
            self.named_by = self.named_by.insert(each, self.named_by.get(each, _NAMERS).insert(name))
        return any(each in self.edges for each in gained)

    def drop(self, name: str) -> None:
        """Remove a node and its edges."""
        self._unname(name, self.edges[name].named)
        self.edges = self.edges.remove(name)

    def _unname(self, name: str, named: Iterable[str]) -> None:
        for each in named:
            left = self.named_by[each].remove(name)
            self.named_by = self.named_by.insert(each, left) if left else self.named_by.remove(each)

    def namers(self, name: str) -> Collection[str]:
        """Return the names of the nodes whose requirements name the node ``name``."""
        return self.named_by.get(name, _NAMERS)

    def named(self, name: str) -> Iterator[str]:
        """Return the names of the existing nodes that are named in the requirements of the node ``name``."""
        return (each for each in self.edges[name].named if each in self.edges)

    def settle(self, region: Collection[str]) -> None:
        """Find the knots among the nodes of ``region``, and compute the rank and the effective order of each node. ``region``
        must contain every cycle through its nodes. Raises CycleError.
        """
        self._seen.update(region)
        components = strong_components(region, lambda name: self.edges[name].named)
        self._refuse_cycles(components)
        for component in components:
            knot = self._knot(component) if len(component) > 1 else None
            self._knots.update(dict.fromkeys(component, knot))
            for name in component:
                self._waits_for.set(name, self._waits(name, knot))
            self._measure(knot.members if knot else tuple(component))

    def _refuse_cycles(self, components: list[list[str]]) -> None:
        def hard(name: str) -> frozenset[str]:
            return self.edges[name].hard

        circles = (strong_components(component, hard) for component in components if len(component) > 1)
        found = [circle for several in circles for circle in several if len(circle) > 1]
        if found:
            members = set(min(found, key=min))
            raise CycleError(members, shortest_cycle(min(members), lambda name: sorted(hard(name) & members)))

    def _knot(self, component: list[str]) -> Knot:
        edges = {name: self.edges[name] for name in component}
        return tie(
            {name: each.hard for name, each in edges.items()},
            {name: each.any_of for name, each in edges.items()},
            {name: each.none_of for name, each in edges.items()},
            lambda name: self._nodes[name].order,
        )

    def _waits(self, name: str, knot: Knot | None) -> tuple[str, ...]:
        edges = self.edges[name]
        wanted = edges.hard | edges.any_of
        if knot:
            placed = edges.hard | knot.kept.get(name, _NOBODY)
            wanted = frozenset([each for each in wanted if each in placed or each not in knot.position])
        return tuple(sorted([each for each in wanted if each in self.edges]))

    def rewait(self, name: str) -> None:
        """Update the nodes that name a node which was just added or removed: they wait for an added node, and no longer wait
        for a removed node.
        """
        for each in self._spread(name):
            edges = self.edges[each]
            if name in edges.hard or name in edges.any_of:
                others = {*self._waits_for[each]} - {name}
                self._waits_for.set(each, tuple(sorted({*others, name} if name in self.edges else others)))

    def _spread(self, name: str) -> list[str]:
        """Mark the nodes that name this node, so that their rank and effective order are computed again. Nodes that this change
        has visited already are left out. Return the marked nodes.
        """
        namers = [each for each in self.namers(name) if each not in self._seen]
        for each in namers:
            heapq.heappush(self._stale, (self._before.rank[each], each))
        return namers

    def _measure(self, members: tuple[str, ...]) -> None:
        """Set the rank and the effective order of a node, or of all nodes of a knot, computed from the nodes that they name."""
        inside = frozenset(members)
        below = [self._rank[each] for name in members for each in self.named(name) if each not in inside]
        rank = max(below, default=-1) + 1
        for name in members:
            effective = max([self._nodes[name].order, *[self._effective[each] for each in self._waits_for[name]]])
            raised = self._effective.set(name, effective)
            if self._rank.set(name, rank) or raised:
                self._spread(name)

    def done(self, changed: str) -> Rewired:
        """Compute the ranks and effective orders of all nodes that the change of the node ``changed`` can affect. Return the
        new topology, and the other nodes whose dependencies or effective orders have changed.
        """
        while self._stale:
            _, name = heapq.heappop(self._stale)
            if name not in self._seen:
                members = _tied(self._before, name)
                self._seen.update(members)
                self._measure(members)
        moved = {*self._waits_for.new, *self._effective.new} - {changed}
        gone = changed if changed not in self.edges else ""
        knots = self._before.knots.discard(gone)
        for name, knot in self._knots.items():
            knots = knots.insert(name, knot) if knot else knots.discard(name)
        after = Topology(
            effective=self._effective.done(gone),
            waits_for=self._waits_for.done(gone),
            named_by=self.named_by,
            knots=knots,
            rank=self._rank.done(gone),
            edges=self.edges,
        )
        return Rewired(after, tuple(sorted(moved)))


_Value = TypeVar("_Value")


class _Overlay(Generic[_Value]):
    """Changes to a map of values by name. A name in ``new`` has its new value, every other name the value from before."""

    def __init__(self, before: "HashTrieMap[str, _Value]") -> None:
        self.new: dict[str, _Value] = {}
        self._before = before

    def __getitem__(self, name: str) -> _Value:
        return self.new[name] if name in self.new else self._before[name]

    def set(self, name: str, value: _Value) -> bool:
        """Set the value of a name, and return whether it differs from the value before. Call this at most once for
        each name.
        """
        if self._before.get(name) == value:
            return False
        self.new[name] = value
        return True

    def done(self, gone: str) -> "HashTrieMap[str, _Value]":
        return (self._before.update(self.new) if self.new else self._before).discard(gone)
