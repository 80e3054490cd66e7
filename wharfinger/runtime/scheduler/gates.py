"""The decisions about which packages are on. They follow from rules, and from the requirements between packages.

:mod:`wharfinger.runtime.scheduler.rules` gives the votes about a node. The first FORBID wins, whichever votes precede it;
without a FORBID, the last vote that is not UNDEFINED wins. A node is on if and only if the winning vote is ENABLE. Nothing
can force a node on: its requirements can always block it. If there are several FORBIDs, and one of them is the user's, the
user's is the reported reason, because the requirements of an unwanted package do not matter. If all votes would enable the
node and only its enabled script has not answered yet, the decision is *pending*, and the node is off.

Decisions are a function of the present nodes, never of the history: nodes are judged in their topological order, after the
nodes that they name. A knot (:mod:`wharfinger.runtime.scheduler.soft_edges`) is judged as a whole, after everything that it
depends on. Two cases in a knot need special rules, so that no decision changes back and forth forever:

* If an any-of member is placed *later* in the knot than the node that names it, the member counts as on as soon as one pass
  over the knot has enabled it. Passes over the affected nodes are repeated until no such member changes any more.
* Of two nodes that exclude each other, the node that is placed later is off while the other one is on.

So, outside of knots, a decision depends only on the node and on the nodes that it names. After a change of a node, only the
nodes that `Topology.affected_by` returns have to be judged again.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from wharfinger.runtime.scheduler.graph import Node, Topology, Verdict
from wharfinger.runtime.scheduler.rules import UNWANTED, Facts, Opinion, Others, Vote, votes, votes_without_gates
from wharfinger.runtime.scheduler.soft_edges import Knot
from wharfinger.runtime.status.reasons import Reason


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of all rules. ``uninstall`` is True if the user, a hook or the package's script does not want the package
    (even if other rules forbid it as well), or if another Module of its exclusive group takes precedence.
    """

    verdict: Verdict
    reason: Reason
    message: str
    uninstall: bool = False

    @property
    def on(self) -> bool:
        """Return whether the node is on."""
        return self.verdict is Verdict.ENABLE

    @property
    def pending(self) -> bool:
        """Return whether the decision waits only for the vote of the enabled script."""
        return self.reason is Reason.SCRIPT_PENDING


def decide(
    nodes: Mapping[str, Node], topology: Topology, facts: Facts, opinions: Mapping[str, Opinion]
) -> dict[str, Decision]:
    """Return the decision about every node, in topological order."""
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
    """Return the decisions that `decide` would make about ``names``, in their order; ``standing`` returns the existing
    decisions about all other nodes.

    ``names`` must be a result of `Topology.affected_by`. A node without an existing decision counts as off.
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
    """Return the votes of all rules about a node, in the order of the rules. The decision about the node follows from these
    votes.

    ``standing`` returns the existing decision about every other node.
    """
    judge = _Judge(nodes, topology, facts, opinion, standing)
    knot = topology.knots.get(name)
    others = judge.untie(knot)[name] if knot else judge.others(name)
    return tuple(votes(nodes[name], facts, others, opinion(name)))


class _Judge:
    """The new decisions about some nodes, and the existing decisions about all other nodes."""

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
        """Decide about these nodes and about all members of their knots, each node after the nodes that it names."""
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
        """Decide about a knot; return for each member the nodes on which its final decision is based."""
        judged: dict[str, Others] = {}
        assumed: dict[str, str] = {}
        refuted: set[str] = set()
        on: set[str] = set()
        stale: Iterable[str] = knot.members
        while stale:
            for name in self._round(knot, stale, assumed, judged):
                if name in knot.late:
                    on ^= {name}
            # A member that was assumed to be on, and then turns off, is never assumed to be on again, so the loop ends.
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
        """Judge the members in ``stale``, and the later members of the knot that they affect. Return the members that turned
        on or off.
        """
        line = sorted(knot.position[name] for name in stale)
        queued = set(line)
        turned = []
        while line:
            name = knot.members[heapq.heappop(line)]
            before = self._decided.get(name)
            refusers = (self._nodes[each] for each in knot.refused_by.get(name, ()) if self._decided[each].on)
            judged[name] = Others(
                self._enabled(name, knot), self._nodes, assumed, tuple(refusers), self._wanted(name, knot)
            )
            after = self._decided[name] = self._decision(name, judged[name])
            if after.on is not (before is not None and before.on):
                turned.append(name)
                for position in self._later(name, knot):
                    if position not in queued:
                        queued.add(position)
                        heapq.heappush(line, position)
        return turned

    def _later(self, name: str, knot: Knot) -> Iterator[int]:
        """Return the positions in a knot of those members whose decisions depend on the member ``name``, and that are decided
        after it.
        """
        at = knot.position[name]
        yield from (where for each in self._topology.named_by[name] if (where := knot.position.get(each, at)) > at)
        for each in self._topology.edges[name].none_of:
            if name in knot.refused_by.get(each, ()):
                yield knot.position[each]

    def others(self, name: str) -> Others:
        """Return the nodes on which the decision about a node depends. The node must not be in a knot."""
        return Others(self._enabled(name), self._nodes, wanted=self._wanted(name))

    def _enabled(self, name: str, knot: Knot | None = None) -> dict[str, str]:
        """Return the versions of the nodes that a node names and that are on. If ``knot`` is given, which must be the node's
        own knot, leave out its members that are decided after the node.
        """
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

    def _wanted(self, name: str, knot: Knot | None = None) -> tuple[str, ...]:
        """Return the wanted Modules that take precedence over a node in its exclusive group, in the order of the group.

        Of the Modules in the node's own ``knot``, only those that are placed before it count.
        """
        before = [self._nodes[each] for each in self._nodes[name].outranked_by if each in self._nodes]
        if knot:
            before = [each for each in before if knot.position.get(each.name, -1) < knot.position[name]]
        before.sort(key=lambda each: (each.order, each.name))
        return tuple(each.name for each in before if is_wanted(each, self._facts, self._opinion(each.name)))

    def _decision(self, name: str, others: Others) -> Decision:
        node, opinion = self._nodes[name], self._opinion(name)
        vote = UNWANTED if opinion.intent is False else _resolved(votes(node, self._facts, others, opinion))
        refused = vote.reason is Reason.DISABLED_BY_SCRIPT and not (opinion.vote and opinion.vote.provisional)
        off = vote.reason is Reason.DISABLED_BY_HOOK or (vote.reason is Reason.DISABLED_BY_DEFAULT and node.declined)
        unwanted = opinion.intent is False or refused or off or vote.reason is Reason.EXCLUSIVE_GROUP_TAKEN
        return Decision(vote.verdict, vote.reason, vote.message, uninstall=unwanted)


def is_wanted(node: Node, facts: Facts, opinion: Opinion) -> bool:
    """Return whether a node is to be installed as soon as its requirements are met.

    Such a node is uninstalled only if another Module of its exclusive group takes precedence. It keeps its own place in the
    group while it is paused, and while its script runs, has failed, or has given only a provisional vote.
    """
    vote = _resolved(votes_without_gates(node, facts, replace(opinion, vote=None)))
    said = opinion.vote
    refused = said is not None and said.enabled is False and not said.provisional and not said.error
    return vote.verdict in (Verdict.ENABLE, Verdict.UNDEFINED) and not refused


def _resolved(cast: Iterator[Vote]) -> Vote:
    """Return the vote that decides: the first FORBID if there is one, and otherwise the last vote that counts.

    The first vote always counts. A later vote that is UNDEFINED, because its answer is pending, counts only if the last vote
    that counted before it is ENABLE.
    """
    counts = next(cast)
    for vote in cast:
        if vote.verdict is Verdict.FORBID:
            return vote
        if vote.verdict is not Verdict.UNDEFINED or counts.verdict is Verdict.ENABLE:
            counts = vote
    return counts
