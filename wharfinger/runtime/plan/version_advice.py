"""Advice on versions that would work, for the packages of a plan whose requirements are not met.

The search is the same as in the daemon (:mod:`wharfinger.runtime.scheduler.version_search`). It searches the versions in the
folder of packages. A package that is a folder has one version; an OCI layout may have many versions.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from wharfinger.runtime.plan.bodies import Judged, PlanBodies
from wharfinger.runtime.plan.plan import Plan, PlannedPackage
from wharfinger.runtime.repositories.version_nodes import nodes_of, search_versions
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.events import FactsChanged, IntentSet, NodeAdded, Resumed, ScriptVoted
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.versions.package_index import PackageIndex

MAX_ADVISED: Final = 10
"""The limit on the number of blocked packages for which suitable versions are searched."""
MAX_PACKAGES: Final = 2_000
"""The number of packages in a plan above which no versions are searched."""

ReadIndex: TypeAlias = Callable[[str], Awaitable[PackageIndex | None]]
"""A function that returns the index of a package's versions, or None if only the planned version of the package is known."""


async def with_versions(
    plan: Plan, specs: Mapping[str, PackageSpec], bodies: PlanBodies, facts: Facts, read_index: ReadIndex
) -> Plan:
    """Return the plan with more detailed remedies for blocked packages: each remedy also names the versions with which the
    package would not be blocked.
    """
    blocked = [each for each in plan.blocked if each.explanation is not None][:MAX_ADVISED]
    nodes = {name: found.node for name, found in bodies.findings.items() if isinstance(found, Judged)}
    if not blocked or len(nodes) > MAX_PACKAGES:
        return plan

    async def others(name: str) -> Sequence[Node]:
        index = await read_index(specs[name].package)
        return () if index is None else nodes_of(nodes[name], specs[name], index)

    graph = _graph(nodes, bodies, facts)
    advised: dict[str, PlannedPackage] = {}
    for each in blocked:
        result = await search_versions(graph, each.name, others)
        if result is not None and each.explanation is not None:
            remedy = "; ".join(filter(None, (each.explanation.remedy, result.text)))
            advised[each.name] = replace(each, explanation=replace(each.explanation, remedy=remedy))
    return replace(plan, packages=tuple(advised.get(each.name, each) for each in plan.packages))


def _graph(nodes: Mapping[str, Node], bodies: PlanBodies, facts: Facts) -> Graph:
    """Return the state that the scheduler would have with the packages of a plan."""
    graph, _ = step(Graph(), FactsChanged(facts))
    for name, node in nodes.items():
        opinion = bodies.opinion(name)
        graph, _ = step(graph, IntentSet(name, opinion.intent))
        graph, _ = step(graph, NodeAdded(node))
        if opinion.vote is not None:
            graph, _ = step(graph, ScriptVoted(name, opinion.vote.enabled))
    graph, _ = step(graph, Resumed())
    return graph
