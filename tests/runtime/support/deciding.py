"""Helpers for tests of decisions about a few nodes of the scheduler."""

from wharfinger.runtime.scheduler.gates import Decision, decide
from wharfinger.runtime.scheduler.graph import Node, topology
from wharfinger.runtime.scheduler.rules import Facts, Opinion

FACTS = Facts("v1.31.4+k3s1", "1.70.2")


def decisions(*nodes: Node, facts: Facts = FACTS, opinions: dict[str, Opinion] | None = None) -> dict[str, Decision]:
    """Return the decisions about these nodes by name."""
    by_name = {each.name: each for each in nodes}
    return decide(by_name, topology(by_name), facts, opinions or {})


def only(subject: Node, *others: Node, facts: Facts = FACTS, opinion: Opinion | None = None) -> Decision:
    """Return the decision about the first node, in a graph with the others."""
    return decisions(subject, *others, facts=facts, opinions={subject.name: opinion or Opinion()})[subject.name]


def on(*nodes: Node, opinions: dict[str, Opinion] | None = None) -> set[str]:
    """Return the names of the nodes that are on."""
    return {name for name, decision in decisions(*nodes, opinions=opinions).items() if decision.on}
