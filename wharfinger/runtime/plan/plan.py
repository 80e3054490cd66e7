"""Whether a set of Applications and Modules can converge, found out without any cluster. For `wharfinger plan`.

The engine of the daemon is driven to its fixpoint (:mod:`~wharfinger.runtime.fixpoint.converge`, with the bodies of
:mod:`~wharfinger.runtime.plan.bodies`), for a cluster that has what is written down, and nothing else. So everything that is told
follows from the files: which packages would be on, in which order they would be run, and for each other one the reason, followed
to its root by what answers `wharfinger why` (:mod:`~wharfinger.runtime.why.explanation`).

What is not asked: enabled scripts (they are taken to have no objection, and it is said of whom), hooks, settings, the cluster.
A package that is suspended is taken not to be there yet, so whoever waits for it waits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.packages.definition.definition import Definition
from wharfinger.runtime.fixpoint.converge import converge
from wharfinger.runtime.inspector import ExplanationSnapshot
from wharfinger.runtime.plan.bodies import Finding, Judged, LoadDefinition, PlanBodies, Refused
from wharfinger.runtime.plan.input import Inputs, Wanted
from wharfinger.runtime.plan.reasons import Explainer
from wharfinger.runtime.resources.resources import NO_RECONCILIATION, PackageSpec
from wharfinger.runtime.scheduler.graph import Node, Topology, topology
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.status.reasons import Reason

LIMIT: Final = 8
"""Packages that are read at the same time."""
SCRIPT_NOT_ASKED: Final = "its enabled script was not asked"
LEFT_TO_PEOPLE: Final = "spec.maintenance: what is applied is left to people"
SUSPENDED: Final = "spec.suspend: nothing is done for it"


class PlanState(StrEnum):
    """What would become of a package."""

    ON = "on"
    OFF = "off"
    """Nobody wants it on."""
    SUSPENDED = "suspended"
    """It rests because somebody said so."""
    BLOCKED = "blocked"
    """It is wanted, and would not be on."""


@dataclass(frozen=True, slots=True)
class PlannedPackage:
    """One Application or Module.

    ``place`` is where it was read. ``turn`` counts from 1 in the order in which packages would be run, 0 for those that would
    not; ``tier`` is its order (lower ones are done first), and ``after`` are those that it waits for, sorted. ``reason`` is for
    machines, ``message`` for people; of what is not on there is an ``explanation``.
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
    """What would become of all, sorted by name; ``left_alone`` documents said nothing about packages."""

    packages: tuple[PlannedPackage, ...]
    left_alone: int = 0

    @property
    def order(self) -> tuple[PlannedPackage, ...]:
        """Those that would be on, as they would be run one after the other."""
        return tuple(sorted((each for each in self.packages if each.turn), key=lambda each: each.turn))

    @property
    def blocked(self) -> tuple[PlannedPackage, ...]:
        """Those that are wanted, and would not be on."""
        return tuple(each for each in self.packages if each.state is PlanState.BLOCKED)


Progress = Callable[[int, int], None]
"""Told how many packages were read, of how many that are known to be needed."""


async def make_plan(
    inputs: Inputs, load: LoadDefinition, facts: Facts, *, limit: int = LIMIT, progress: Progress = lambda _, __: None
) -> Plan:
    """See the module; at most ``limit`` packages are read at the same time."""
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
        raise AssertionError(
            f"planning did not come to its end: {report.crashed or report.unresolved or report.exhausted}"
        )
    return _planned(inputs, bodies, facts)


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
    """Tier after tier, and in a tier everybody after those that it waits for: as the live scheduler orders runs."""
    return sorted(graph.sorted(nodes, running), key=lambda name: graph.effective[name])


def _state(spec: PackageSpec, finding: Finding, nodes: Mapping[str, Node], facts: Facts) -> PlanState:
    if spec.directives.suspended:
        return PlanState.SUSPENDED
    if isinstance(finding, Judged) and finding.decision.on:
        return PlanState.BLOCKED if finding.held_by else PlanState.ON
    return PlanState.BLOCKED if _is_wanted(spec, nodes.get(spec.id.name), facts) else PlanState.OFF


def _is_wanted(spec: PackageSpec, node: Node | None, facts: Facts) -> bool:
    """An Application is; a Module whose spec says so, or which is left to a bundle that has it, or may have."""
    if spec.id.kind == "Application" or spec.enabled is not None:
        return spec.enabled is not False
    return node is None or (facts.edition, facts.bundle) in node.bundles


def _told(finding: Finding) -> tuple[str, str]:
    match finding:
        case Refused(reason, message):
            return reason, message
        case Judged(held_by=held_by) if held_by:
            return Reason.SUSPENDED.value, f"it waits for {held_by}"
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
