"""Single changes of a scheduler's graph. The result after each change equals a computation from scratch, and only nodes that the
change reaches are evaluated.

The oracle computes the expected results in a slow and simple way: reachability as a closure, ranks and orders by recursion, and
knots pair by pair. It does not call the tested functions.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rpds import HashTrieMap

from tests.runtime.support.nodes import group, node
from tests.scale import scaled
from wharfinger.packages.definition.requirements import DependencyGroup
from wharfinger.runtime.scheduler.gates import Decision, decide, decide_affected, votes_of
from wharfinger.runtime.scheduler.graph import (
    CycleError,
    Node,
    Rewired,
    Topology,
    Verdict,
    topology,
    with_node,
    without_node,
)
from wharfinger.runtime.scheduler.rules import UNWANTED, Facts, Opinion

pytestmark = pytest.mark.unmeasured

NAMES = "abcdef"
SOME = st.sampled_from(NAMES)
ANY = st.sampled_from((*NAMES, "ghost"))
FACTS = Facts("1.31.0", "1.70.0")


def members(most: int) -> st.SearchStrategy[list[str]]:
    """Return a strategy for lists of package names. Some of the packages do not exist, and some names have a version range."""
    named = st.builds(str.__add__, ANY, st.sampled_from(["", "", " >=2", " <2"]))
    return st.just([]) | st.lists(named, max_size=most, unique_by=lambda text: text.split()[0])


@st.composite
def any_node(draw: st.DrawFn, *, groups: bool = True) -> Node:
    """Draw a node that may depend on any nodes, including itself."""
    any_of, none_of = (draw(members(2)), draw(members(2))) if groups else ([], [])
    return node(
        draw(SOME),
        *draw(members(2)),
        version=draw(st.sampled_from(["1.0.0", "2.0.0-rc.1"])),
        order=draw(st.sampled_from([1, 5, 999])),
        optional=draw(members(1)),
        any_of=[group("any", *any_of)] if any_of else [],
        none_of=[group("none", *none_of)] if none_of else [],
        floor=draw(st.sampled_from([Verdict.ENABLE, Verdict.ENABLE, Verdict.DISABLE])),
        script=draw(st.integers(0, 5)) == 0,
    )


Change = Node | str | tuple[str, Opinion]
"""A node to add or replace, the name of a node to remove, or a node's name with a new opinion about it."""
INTENTS = st.tuples(SOME, st.builds(Opinion, st.sampled_from([None, True, False])))
CHANGES: "st.SearchStrategy[list[Change]]" = st.lists(any_node() | any_node() | SOME | INTENTS, max_size=25)
HARD_ONLY: "st.SearchStrategy[list[Change]]" = st.lists(any_node(groups=False) | SOME | INTENTS, max_size=25)


@dataclass
class Story:
    """The present nodes, their topology, the opinions about them, and the decisions. `tell` applies a change to all of these."""

    nodes: dict[str, Node] = field(default_factory=dict)
    topology: Topology = Topology()  # noqa: RUF009 - frozen
    opinions: dict[str, Opinion] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)

    def opinion(self, name: str) -> Opinion:
        return self.opinions.get(name, Opinion())

    def tell(self, change: Change) -> Rewired | None:
        """Apply a change to the graph of nodes. Return how this changes the topology, or None if the change was refused."""
        if isinstance(change, Node):
            name, nodes = change.name, {**self.nodes, change.name: change}
            try:
                rewired = with_node(self.topology, nodes, name, self.nodes.get(name))
            except CycleError:
                return None
        elif isinstance(change, str):
            name, nodes = change, {name: each for name, each in self.nodes.items() if name != change}
            gone = self.nodes.get(name)
            rewired = without_node(self.topology, nodes, gone) if gone else Rewired(self.topology)
        else:
            name, self.opinions[change[0]] = change
            nodes, rewired = self.nodes, Rewired(self.topology)
        self.nodes, self.topology = nodes, rewired.topology
        if name not in nodes:
            self.decisions.pop(name, None)
        affected = self.topology.affected_by(nodes, [name])
        decided = decide_affected(affected, nodes, self.topology, FACTS, self.opinion, self.decisions.get)
        assert tuple(decided) == affected
        self.decisions |= decided
        return rewired


@pytest.mark.slow
@given(CHANGES)
@settings(max_examples=scaled(1_000, 50), deadline=None)
def test_incremental_changes_give_the_same_result_as_a_fresh_computation(changes: list[Change]) -> None:
    story = Story()
    for change in changes:
        before, there = story.topology, story.nodes
        rewired = story.tell(change)
        fresh = topology(story.nodes)
        assert story.topology == fresh
        assert story.decisions == decide(story.nodes, fresh, FACTS, story.opinions)
        if rewired is None:
            assert story.topology is before
            assert story.nodes is there
            continue
        name = change.name if isinstance(change, Node) else change
        stayed = sorted((story.nodes.keys() & there.keys()) - {name})
        assert rewired.moved == tuple(
            each
            for each in stayed
            if (before.waits_for[each], before.effective[each]) != (fresh.waits_for[each], fresh.effective[each])
        )


@pytest.mark.slow
@given(CHANGES)
@settings(max_examples=scaled(1_000, 40), deadline=None)
def test_a_refused_change_closes_a_cycle(changes: list[Change]) -> None:
    story = Story()
    for change in changes:
        if story.tell(change) is None:
            assert isinstance(change, Node)
            nodes = {**story.nodes, change.name: change}
            with pytest.raises(CycleError) as one_more:
                with_node(story.topology, nodes, change.name, story.nodes.get(change.name))
            with pytest.raises(CycleError) as from_scratch:
                topology(nodes)
            cycle = one_more.value
            assert str(cycle) == str(from_scratch.value)
            assert cycle.path[0] == min(cycle.members)
            assert len(set(cycle.path)) == len(cycle.path)
            assert {*cycle.path} <= {*cycle.members}
            assert change.name in cycle.path or change.name in cycle.members
            for name, needed in zip(cycle.path, (*cycle.path[1:], cycle.path[0]), strict=True):
                assert needed in {each.name for each, _ in nodes[name].dependencies()}


@pytest.mark.slow
@given(CHANGES, st.randoms(use_true_random=False))
@settings(max_examples=scaled(1_000, 40), deadline=None)
def test_the_result_does_not_depend_on_the_order_of_changes(changes: list[Change], shuffler: Random) -> None:
    story, other = Story(), Story()
    for change in changes:
        story.tell(change)
    arrival: list[Change] = [*story.nodes.values(), *story.opinions.items()]
    shuffler.shuffle(arrival)
    for change in arrival:
        assert other.tell(change), "a subset of an acyclic set of nodes has no cycle"
    assert other.topology == story.topology
    assert other.decisions == story.decisions


@pytest.mark.slow
@given(CHANGES)
@settings(max_examples=scaled(1_000, 40), deadline=None)
def test_each_decision_follows_from_its_votes(changes: list[Change]) -> None:
    story = Story()
    for change in changes:
        story.tell(change)
    for name, decision in story.decisions.items():
        votes = votes_of(name, story.nodes, story.topology, FACTS, story.opinion, story.decisions.get)
        if decision.pending:
            assert votes[-1].reason is decision.reason
            assert {vote.verdict for vote in votes} <= {Verdict.ENABLE, Verdict.DISABLE, Verdict.UNDEFINED}
            continue
        forbidding = [vote for vote in votes if vote.verdict is Verdict.FORBID]
        # If a user has disabled the node, that is the reported reason, even if other rules forbid it as well.
        forbidding.sort(key=lambda vote: vote is not UNWANTED)
        counts = (forbidding or [vote for vote in votes if vote.verdict is not Verdict.UNDEFINED][-1:])[0]
        assert (counts.verdict, counts.reason, counts.message) == (decision.verdict, decision.reason, decision.message)
        assert votes[0].verdict is story.nodes[name].floor


# The oracle


class Plain:
    """The results of the oracle for some nodes.

    The nodes must not form a cycle of hard edges (mandatory and conditional dependencies).
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self.hard = {
            name: {each.name for each, _ in node.dependencies()} & nodes.keys() for name, node in nodes.items()
        }
        self.any_of = {name: self.grouped(name, node.requirements.any_of) for name, node in nodes.items()}
        self.none_of = {name: self.grouped(name, node.requirements.none_of) for name, node in nodes.items()}
        self.named = {name: self.hard[name] | self.any_of[name] | self.none_of[name] for name in nodes}
        self.kept = {name: set(self.hard[name]) for name in nodes}
        self.before = {name: set(self.hard[name]) for name in nodes}
        self.late: set[str] = set()
        self.refused: set[tuple[str, str]] = set()
        for name, each in sorted((one, each) for one in nodes for each in self.any_of[one]):
            if self.tied(name, each) and name in self.reached(each, self.inner):
                self.late.add(each)
            else:
                self.kept[name].add(each)
                self.before[name].add(each)
        for name, each in sorted((one, each) for one in nodes for each in self.none_of[one]):
            if self.tied(name, each) and name in self.reached(each, self.inner):
                self.refused.add((each, name))
            else:
                self.before[name].add(each)

    def grouped(self, name: str, groups: tuple[DependencyGroup, ...]) -> set[str]:
        found = {each.name for one in groups for each in one.members}
        return (found & self.nodes.keys()) - {name}

    def reached(self, start: str, edges: Callable[[str], set[str]]) -> set[str]:
        found, to_see = {start}, [start]
        while to_see:
            new = edges(to_see.pop()) - found
            found |= new
            to_see += new
        return found

    def tied(self, one: str, other: str) -> bool:
        """Return whether the nodes are in one knot."""
        return other in self.reached(one, self.named.__getitem__) and one in self.reached(other, self.named.__getitem__)

    def inner(self, name: str) -> set[str]:
        """Return the nodes of the same knot that must run before this node, as far as they are known."""
        return {each for each in self.before[name] if self.tied(name, each)}

    def effective(self, name: str) -> int:
        return max([self.nodes[name].order, *(self.effective(each) for each in self.kept[name])])

    def rank(self, name: str) -> int:
        knot = [each for each in self.nodes if self.tied(name, each)]
        below = {each for one in knot for each in self.named[one]} - set(knot)
        return max((self.rank(each) + 1 for each in below), default=0)

    def on(self, name: str) -> bool:
        """Return whether a node is on.

        This is correct only if no node has group requirements or an enabled script, and if each node has the floor ENABLE.
        """
        wanted = self.nodes[name].requirements

        def there(each: str) -> bool:
            return each in self.nodes and self.on(each)

        mandatory = all(there(each.name) for each in wanted.mandatory)
        return mandatory and all(
            each.constraint.allows(self.nodes[each.name].version)
            for each in (*wanted.mandatory, *wanted.conditional)
            if there(each.name)
        )


@pytest.mark.slow
@given(CHANGES)
@settings(max_examples=scaled(1_000, 40), deadline=None)
def test_the_topology_agrees_with_a_plain_computation(changes: list[Change]) -> None:
    story = Story()
    for change in changes:
        story.tell(change)
    plain, found = Plain(story.nodes), story.topology
    assert dict(found.waits_for) == {name: tuple(sorted(kept)) for name, kept in plain.kept.items()}
    assert dict(found.effective) == {name: plain.effective(name) for name in story.nodes}
    assert dict(found.rank) == {name: plain.rank(name) for name in story.nodes}
    assert {each for knot in found.knots.values() for each in knot.late} == plain.late
    assert {
        (name, each) for name, knot in found.knots.items() for each in knot.refused_by.get(name, ())
    } == plain.refused
    place = {name: at for at, name in enumerate(found.sorted(story.nodes, story.nodes))}
    assert all(place[each] < place[name] for name in story.nodes for each in plain.before[name])
    for name in (*NAMES, "ghost"):
        namers = {each for each, node in story.nodes.items() if name in node.names()}
        assert found.dependents(name) == tuple(sorted(namers))


@given(HARD_ONLY)
@settings(max_examples=scaled(1_000, 40), deadline=None)
def test_decisions_by_dependencies_agree_with_a_plain_computation(changes: list[Change]) -> None:
    story = Story()
    for change in changes:
        if isinstance(change, Node):
            story.tell(replace(change, floor=Verdict.ENABLE, script=False))
        elif isinstance(change, str):
            story.tell(change)
    plain = Plain(story.nodes)
    assert {name: decision.on for name, decision in story.decisions.items()} == {
        name: plain.on(name) for name in story.nodes
    }


# Only reached nodes are evaluated


def steps(work: Callable[[], object]) -> int:
    """Return how many functions are called during an action, including those of the interpreter and of libraries."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    profiling = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(profiling)
    return count


def towns(count: int) -> dict[str, Node]:
    """Return a node ``base``, and ``count`` chains of eleven nodes each. Every node of a chain needs ``base``."""
    nodes = {"base": node("base")}
    for town in range(count):
        below = f"t{town}"
        nodes[below] = node(below, "base")
        for house in range(10):
            name = f"t{town}-{house}"
            nodes[name] = node(name, below, "base")
            below = name
    return nodes


class Town:
    """The graph of `towns`, in which a change of ``t1`` reaches ten other nodes, and functions that change this graph."""

    def __init__(self, count: int) -> None:
        self.nodes = HashTrieMap(towns(count))
        self.topology = topology(self.nodes)
        self.decisions = decide(self.nodes, self.topology, FACTS, {})

    def replaced(self, new: Node) -> Callable[[], object]:
        nodes = self.nodes.insert(new.name, new)
        return lambda: with_node(self.topology, nodes, new.name, self.nodes.get(new.name))

    def removed(self, name: str) -> Callable[[], object]:
        nodes = self.nodes.remove(name)
        return lambda: without_node(self.topology, nodes, self.nodes[name])

    def refused(self, new: Node) -> Callable[[], object]:
        work = self.replaced(new)

        def refuse() -> None:
            with pytest.raises(CycleError):
                work()

        return refuse

    def decided(self) -> object:
        names = self.topology.affected_by(self.nodes, ["t1"])
        assert len(names) == 11
        return decide_affected(names, self.nodes, self.topology, FACTS, lambda _: Opinion(), self.decisions.get)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "work",
    [
        lambda town: town.replaced(node("t1", "base >=1")),
        lambda town: town.replaced(node("t1", "base", "t2-9", order=1000)),
        lambda town: town.replaced(node("t1", any_of=[group("g", "t1-9", "t2")], none_of=[group("h", "t1-3", "t3")])),
        lambda town: town.replaced(node("new", "base")),
        lambda town: town.removed("t1"),
        lambda town: town.removed("t2-9"),
        lambda town: town.refused(node("t1", "t1-9")),
        lambda town: town.decided,
    ],
)
def test_the_cost_of_a_change_depends_only_on_the_nodes_it_reaches(
    work: Callable[[Town], Callable[[], object]],
) -> None:
    few, many = (work(Town(count)) for count in (10, scaled(900, 200)))
    few()  # the first call includes a set-up
    # The two numbers are not exactly equal, because the garbage collector may make calls in between.
    assert steps(many) < 2 * steps(few)
