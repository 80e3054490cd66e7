"""Which packages are on: what their rules say together, and what follows when packages speak about each other.

Of the votes of :mod:`wharfinger.runtime.scheduler.rules` about a node, the first FORBID wins wherever it stands, otherwise the
last one that is not UNDEFINED; a node is on if and only if that is ENABLE. Nothing can force a node on: what it requires
always may block. Where the user's no is among several FORBIDs, it is the reason: nobody waits for what a package requires that
is not wanted. Where all would have it on and only its enabled script has not been heard, the decision is *pending*, and it is
off.

Decisions are a function of what is there now, never of how it came to be: nodes are judged in their topological order, on the
verdicts of those they name, which come first. A knot (:mod:`wharfinger.runtime.scheduler.soft_edges`) is judged as a whole,
after all it builds on. It leaves two questions, answered so that no verdict ever swings: a *late* any-of member counts once a
round over the knot put it on, and rounds repeat while that puts more on, about those to whom it makes a difference; of two
nodes that exclude each other, the one placed later yields.

So a decision depends on nothing but the node and those it names, and of a graph only those need to be judged again that
`Topology.affected_by` finds.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from wharfinger.runtime.scheduler.graph import Node, Topology, Verdict
from wharfinger.runtime.scheduler.rules import UNWANTED, Facts, Opinion, Others, Vote, votes
from wharfinger.runtime.scheduler.soft_edges import Knot
from wharfinger.runtime.status.reasons import Reason


@dataclass(frozen=True, slots=True)
class Decision:
    """What all rules say. ``uninstall``: a person, a hook or its own script does not want it, whatever else keeps it off."""

    verdict: Verdict
    reason: Reason
    message: str
    uninstall: bool = False

    @property
    def on(self) -> bool:
        """Whether the node is enabled."""
        return self.verdict is Verdict.ENABLE

    @property
    def pending(self) -> bool:
        """Whether only the script's vote is missing."""
        return self.reason is Reason.SCRIPT_PENDING


def decide(
    nodes: Mapping[str, Node], topology: Topology, facts: Facts, opinions: Mapping[str, Opinion]
) -> dict[str, Decision]:
    """The decision about every node, in topological order."""
    unknown = Opinion()
    judge = _Judge(nodes, topology, facts, lambda name: opinions.get(name, unknown), lambda _: None)
    return judge.decide(topology.sorted(nodes, nodes))


def decide_affected(
    names: tuple[str, ...],
    nodes: Mapping[str, Node],
    topology: Topology,
    facts: Facts,
    opinion: Callable[[str], Opinion],
    standing: Callable[[str], Decision | None],
) -> dict[str, Decision]:
    """What `decide` says about ``names``, in their order, where the decisions about all others are ``standing``.

    ``names`` are what `Topology.affected_by` answered; whoever stands undecided is taken to be off.
    """
    return _Judge(nodes, topology, facts, opinion, standing).decide(names)


def votes_of(
    name: str,
    nodes: Mapping[str, Node],
    topology: Topology,
    facts: Facts,
    opinion: Callable[[str], Opinion],
    standing: Callable[[str], Decision | None],
) -> tuple[Vote, ...]:
    """Every rule that has an opinion about a node, in order, where decisions are ``standing``: what its own one follows from."""
    judge = _Judge(nodes, topology, facts, opinion, standing)
    knot = topology.knots.get(name)
    others = judge.untie(knot)[name] if knot else judge.others(name)
    return tuple(votes(nodes[name], facts, others, opinion(name)))


class _Judge:
    """Decisions about some nodes, over those that stand about all others."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        topology: Topology,
        facts: Facts,
        opinion: Callable[[str], Opinion],
        standing: Callable[[str], Decision | None],
    ) -> None:
        self._nodes = nodes
        self._topology = topology
        self._facts = facts
        self._opinion = opinion
        self._standing = standing
        self._decided: dict[str, Decision] = {}

    def decide(self, names: Iterable[str]) -> dict[str, Decision]:
        """About these and all that they are tied to, in their order: each after what it names."""
        knots = self._topology.knots
        for name in names:
            if name in self._decided:
                continue
            if knot := knots.get(name):
                self.untie(knot)
            else:
                self._decided[name] = self._decision(name, self.others(name))
        return self._decided

    def untie(self, knot: Knot) -> dict[str, Others]:
        """Decide about a knot; what each of its members is judged against in the end."""
        judged: dict[str, Others] = {}
        assumed: dict[str, str] = {}
        refuted: set[str] = set()
        on: set[str] = set()
        stale: Iterable[str] = knot.members
        while stale:
            for name in self._round(knot, stale, assumed, judged):
                if name in knot.late:
                    on ^= {name}
            # A member that is off because it was assumed to be on is a paradox: it never counts again. So this ends.
            refuted |= assumed.keys() - on
            changed = (on - refuted) ^ assumed.keys()
            for name in changed:
                if assumed.pop(name, None) is None:
                    assumed[name] = self._nodes[name].version
            namers = (each for name in changed for each in self._topology.named_by[name])
            stale = {each for each in namers if each in knot.position}
        return judged

    def _round(
        self, knot: Knot, stale: Iterable[str], assumed: Mapping[str, str], judged: dict[str, Others]
    ) -> list[str]:
        """Judge the stale members of a knot, and those after them to whom it makes a difference; who turned on or off."""
        line = sorted(knot.position[name] for name in stale)
        queued = set(line)
        turned = []
        while line:
            name = knot.members[heapq.heappop(line)]
            before = self._decided.get(name)
            refusers = (self._nodes[each] for each in knot.refused_by.get(name, ()) if self._decided[each].on)
            judged[name] = Others(self._enabled(name, knot), self._nodes, assumed, tuple(refusers))
            after = self._decided[name] = self._decision(name, judged[name])
            if after.on is not (before is not None and before.on):
                turned.append(name)
                for position in self._later(name, knot):
                    if position not in queued:
                        queued.add(position)
                        heapq.heappush(line, position)
        return turned

    def _later(self, name: str, knot: Knot) -> Iterator[int]:
        """Where in a knot those are that are judged after a member, and against it."""
        at = knot.position[name]
        yield from (where for each in self._topology.named_by[name] if (where := knot.position.get(each, at)) > at)
        for each in self._topology.edges[name].none_of:
            if name in knot.refused_by.get(each, ()):
                yield knot.position[each]

    def others(self, name: str) -> Others:
        """What a node in no knot is judged against."""
        return Others(self._enabled(name), self._nodes)

    def _enabled(self, name: str, knot: Knot | None = None) -> dict[str, str]:
        """Versions of those that a node names and that are on; of its own knot, those before it."""
        there, enabled = self._topology.edges, {}
        for each in there[name].named:
            if knot and knot.position.get(each, -1) > knot.position[name]:
                continue
            decision = self._decided.get(each)
            if decision is None and each in there:
                decision = self._standing(each)
            if decision is not None and decision.on:
                enabled[each] = self._nodes[each].version
        return enabled

    def _decision(self, name: str, others: Others) -> Decision:
        node, opinion = self._nodes[name], self._opinion(name)
        vote = UNWANTED if opinion.intent is False else _resolved(votes(node, self._facts, others, opinion))
        refused = vote.reason is Reason.DISABLED_BY_SCRIPT and not (opinion.vote and opinion.vote.provisional)
        off = vote.reason is Reason.DISABLED_BY_HOOK or (vote.reason is Reason.DISABLED_BY_DEFAULT and node.declined)
        unwanted = opinion.intent is False or refused or off
        return Decision(vote.verdict, vote.reason, vote.message, uninstall=unwanted)


def _resolved(cast: Iterator[Vote]) -> Vote:
    """The vote that counts. One that is still to come, the only UNDEFINED one after the floor's, counts for what would be on."""
    counts = next(cast)
    for vote in cast:
        if vote.verdict is Verdict.FORBID:
            return vote
        if vote.verdict is not Verdict.UNDEFINED or counts.verdict is Verdict.ENABLE:
            counts = vote
    return counts
