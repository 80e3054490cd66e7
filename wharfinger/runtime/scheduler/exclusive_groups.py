"""Exclusive groups of Modules: only one Module of a group may be installed.

A package names its group in ``package.yaml``. Among the Modules of one group that are wanted, the one with the lowest order is
installed; with equal orders, the one whose name sorts first. Each Module is *outranked* by the Modules that come before it in
this sequence. A Module is off and uninstalled while a Module that outranks it is wanted; its status names the other Module. A
Module that is paused keeps its rank, because its objects stay in the cluster. A Module that is disabled keeps no other Module
off. So the decision depends only on the Modules that exist, and never on the sequence in which they were created.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from wharfinger.runtime.scheduler.graph import Node


def outranking(node: Node, peers: Iterable[Node]) -> tuple[str, ...]:
    """Return the names of those peers in the node's group that take precedence over the node, sorted."""
    if not node.exclusive:
        return ()
    rank = node.order, node.name
    return tuple(
        sorted(each.name for each in peers if each.exclusive == node.exclusive and (each.order, each.name) < rank)
    )


def regrouped(node: Node, others: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes whose exclusions change when ``node`` is added or replaces its earlier version; ``node`` itself is
    yielded first.
    """
    peers = [each for each in others if each.exclusive and each.name != node.name]
    yield replace(node, outranked_by=outranking(node, peers))
    for each in peers:
        wanted = outranking(each, [*peers, node])
        if each.outranked_by != wanted:
            yield replace(each, outranked_by=wanted)


def ranked(nodes: Iterable[Node]) -> dict[str, Node]:
    """Return the nodes that are in exclusive groups, by name, each with the Modules that outrank it."""
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        if node.exclusive:
            groups.setdefault(node.exclusive, []).append(node)
    return {
        node.name: replace(node, outranked_by=outranking(node, members))
        for members in groups.values()
        for node in members
    }
