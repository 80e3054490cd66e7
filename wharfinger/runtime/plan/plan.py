"""A plan for a set of Applications and Modules: the packages that would be on in a cluster. `wharfinger plan` prints it.

The daemon's engine runs to its fixpoint (:mod:`~wharfinger.runtime.fixpoint.converge`, with the bodies of
:mod:`~wharfinger.runtime.plan.bodies`), for a cluster that has only the given resources. So the result depends only on the
files. It has the packages that would be on, in their order. For each other package it has the reason, with the chain of causes
to the root cause. The code of `wharfinger why` makes the chain (:mod:`~wharfinger.runtime.why.explanation`).

Hooks and ``enabled`` scripts are not run, and neither a cluster nor the settings in Secrets and ConfigMaps are read. The plan
assumes that ``enabled`` scripts would not object; packages with such a script have a note. A suspended package would not run,
so its dependents would wait.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.packages.definition.definition import Definition
from wharfinger.runtime.fixpoint.converge import converge
from wharfinger.runtime.plan.bodies import Finding, Judged, LoadDefinition, PlanBodies, Refused
from wharfinger.runtime.plan.input import Inputs, Wanted
from wharfinger.runtime.plan.reasons import Explainer
from wharfinger.runtime.resources.resources import NO_RECONCILIATION, PackageSpec
from wharfinger.runtime.scheduler.graph import Node, Topology, topology
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler_details import ExplanationSnapshot
from wharfinger.runtime.status.reasons import Reason

LIMIT: Final = 8
"""The default limit on the number of packages that are read at the same time."""
SCRIPT_NOT_ASKED: Final = "its enabled script was not run"
LEFT_TO_PEOPLE: Final = "spec.maintenance: its applied objects would not be reconciled"
SUSPENDED: Final = "spec.suspend: the package would not be reconciled"


class PlanState(StrEnum):
    """The state that a package would have in a cluster with only the planned resources."""

    ON = "on"
    OFF = "off"
    """The package is off, and neither the user nor a bundle requests that it is on."""
    SUSPENDED = "suspended"
    """The package is suspended by ``spec.suspend``."""
    BLOCKED = "blocked"
    """The user or a bundle requests that the package is on, but something, such as an unmet requirement, would keep it off."""


@dataclass(frozen=True, slots=True)
class PlannedPackage:
    """One Application or Module.

    ``place`` is the file and the document that it was read from. ``turn`` is its position, counted from 1, in the sequence in
    which packages would run; 0 if it would not run. ``tier`` is its order, or the order of a dependency if that is higher;
    packages of a lower tier run first. ``after`` has the packages that it waits for. ``reason`` is for programs, ``message``
    for people. ``explanation`` is None for a package that would be on.
    """

    name: str
    kind: str
    package: str
    version: str
    place: str
    state: PlanState
    reason: str
    message: str
    turn: int = 0
    tier: int = 0
    after: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    explanation: ExplanationSnapshot | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of a plan: the packages with the states that they would have, sorted by name.

    ``left_alone`` is the number of input documents that were ignored.
    """

    packages: tuple[PlannedPackage, ...]
    left_alone: int = 0

    @property
    def order(self) -> tuple[PlannedPackage, ...]:
        """Return the packages that would be on, in the order in which they would run."""
        return tuple(sorted((each for each in self.packages if each.turn), key=lambda each: each.turn))

    @property
    def blocked(self) -> tuple[PlannedPackage, ...]:
        """Return the packages that are wanted, but that would not be on, in the daemon that the plan predicts."""
        return tuple(each for each in self.packages if each.state is PlanState.BLOCKED)


Progress = Callable[[int, int], None]
"""A callback, called with the number of packages that were read and the number of packages known to be needed."""


async def make_plan(
    inputs: Inputs, load: LoadDefinition, facts: Facts, *, limit: int = LIMIT, progress: Progress = lambda _, __: None
) -> Plan:
    """Make the plan. At most ``limit`` packages are read at the same time."""
    return (await judged_plan(inputs, load, facts, limit=limit, progress=progress))[0]


async def judged_plan(
    inputs: Inputs, load: LoadDefinition, facts: Facts, *, limit: int = LIMIT, progress: Progress = lambda _, __: None
) -> tuple[Plan, PlanBodies]:
    """Make the plan; also return the bodies with the findings from which it was made."""
    sources = {(each.spec.package, each.spec.version) for each in inputs.wanted}
    read = 0

    async def counted(package: str, version: str) -> Definition:
        nonlocal read
        try:
            return await load(package, version)
        finally:
            read += 1
            progress(read, len(sources))

    bodies = PlanBodies((each.spec for each in inputs.wanted), facts, counted)
    report = await converge(bodies, bodies.seeds, limit=limit)
    if report.crashed or report.unresolved or report.exhausted:
        raise AssertionError(f"the plan did not converge: {report.crashed or report.unresolved or report.exhausted}")
    return _planned(inputs, bodies, facts), bodies


def _planned(inputs: Inputs, bodies: PlanBodies, facts: Facts) -> Plan:
    nodes = {name: found.node for name, found in bodies.findings.items() if isinstance(found, Judged)}
    graph = topology(nodes)
    running = frozenset(
        each.spec.id.name
        for each in inputs.wanted
        if _state(each.spec, bodies.findings[each.spec.id.name], nodes, facts) is PlanState.ON
    )
    turns = {name: turn for turn, name in enumerate(_order(nodes, graph, running), 1)}
    explainer = Explainer({each.spec.id.name: each.spec for each in inputs.wanted}, bodies, graph, facts)

    def planned(wanted: Wanted) -> PlannedPackage:
        spec, name = wanted.spec, wanted.spec.id.name
        finding = bodies.findings[name]
        state = _state(spec, finding, nodes, facts)
        on = state is PlanState.ON
        reason, message = _told(finding)
        return PlannedPackage(
            name=name,
            kind=spec.id.kind,
            package=spec.package,
            version=spec.version,
            place=wanted.place,
            state=state,
            reason=reason,
            message=message,
            turn=turns.get(name, 0),
            tier=graph.effective.get(name) or 0,
            after=tuple(each for each in graph.waits_for[name] if each in running) if on else (),
            notes=tuple(_notes(spec, finding)),
            explanation=None if on else explainer.explain(name),
        )

    return Plan(tuple(planned(each) for each in inputs.wanted), inputs.left_alone)


def _order(nodes: Mapping[str, Node], graph: Topology, running: frozenset[str]) -> list[str]:
    """Return the packages tier by tier, and within a tier each package after its dependencies, in the order in which the
    daemon's scheduler would run them.
    """
    return sorted(graph.sorted(nodes, running), key=lambda name: graph.effective[name])


def _state(spec: PackageSpec, finding: Finding, nodes: Mapping[str, Node], facts: Facts) -> PlanState:
    if spec.directives.suspended:
        return PlanState.SUSPENDED
    if isinstance(finding, Judged) and finding.decision.on:
        return PlanState.BLOCKED if finding.held_by else PlanState.ON
    return PlanState.BLOCKED if _is_wanted(spec, nodes.get(spec.id.name), facts) else PlanState.OFF


def _is_wanted(spec: PackageSpec, node: Node | None, facts: Facts) -> bool:
    """Return whether a package is wanted. Every Application is wanted. A Module is wanted if its specification or the bundle
    enables it, and also if it is not known whether the bundle enables it.
    """
    if spec.id.kind == "Application" or spec.enabled is not None:
        return spec.enabled is not False
    return node is None or (facts.edition, facts.bundle) in node.bundles


def _told(finding: Finding) -> tuple[str, str]:
    match finding:
        case Refused(reason, message):
            return reason, message
        case Judged(held_by=held_by) if held_by:
            return Reason.SUSPENDED.value, f"it would wait for {held_by}"
        case Judged(_, decision):
            return decision.reason.value, decision.message


def _notes(spec: PackageSpec, finding: Finding) -> list[str]:
    notes = []
    if isinstance(finding, Judged) and finding.node.script and spec.enabled is not False:
        notes.append(SCRIPT_NOT_ASKED)
    if spec.directives.suspended:
        notes.append(SUSPENDED)
    if spec.directives.maintenance == NO_RECONCILIATION:
        notes.append(LEFT_TO_PEOPLE)
    return notes
