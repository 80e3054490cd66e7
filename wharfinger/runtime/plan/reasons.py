"""Explanations of the packages of a plan that would not be on, as `wharfinger why` explains packages of a daemon.

The findings of the plan are converted to the snapshots from which explanations are made. A plan has no times, so its
explanations have no times either. The middle of a long chain of causes is left out, because a user needs the root cause, and
not the names of a thousand packages. After the explanations of a plan have visited MAX_LOOKS packages altogether, the remaining
packages get no explanation.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from rpds import HashTrieMap

from wharfinger.runtime.inspector import ACCEPTED, ConditionSnapshot, PackageSnapshot, QueueSnapshot
from wharfinger.runtime.plan.bodies import Finding, Judged, PlanBodies, Refused
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.graph import Topology
from wharfinger.runtime.scheduler.rules import Facts, ScriptVote
from wharfinger.runtime.scheduler.snapshots import node_snapshot
from wharfinger.runtime.scheduler.state import Active, Entry, Graph, Idle
from wharfinger.runtime.scheduler.state import package_id as scheduler_id
from wharfinger.runtime.scheduler_details import CauseSnapshot, ExplanationSnapshot, NodeSnapshot
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.status.summary import State
from wharfinger.runtime.why.causes import Known
from wharfinger.runtime.why.explanation import explain

MAX_LOOKS: Final = 100_000
MAX_CAUSES: Final = 16
"""The limit on the number of causes in one chain."""

_NO_MOMENT: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Explainer:
    """The explanations for the packages of one finished plan."""

    def __init__(self, wanted: Mapping[str, PackageSpec], bodies: PlanBodies, graph: Topology, facts: Facts) -> None:
        self._wanted = wanted
        self._findings = bodies.findings
        judged = {name: each for name, each in bodies.findings.items() if isinstance(each, Judged)}
        opinions = {name: bodies.opinion(name) for name in judged}
        entries = {name: _entry(finding, opinions[name].vote) for name, finding in judged.items()}
        intents = {name: each.intent for name, each in opinions.items() if each.intent is not None}
        self._looks = 0
        self._nodes: dict[str, NodeSnapshot] = {}
        """A cache of the nodes that explanations have visited, because many explanations visit the same nodes."""
        self._known = Known(
            now=_NO_MOMENT, package=self._package, node=self._node, holders=lambda _: (), leaving=lambda _: ()
        )
        self._graph = Graph(
            entries=HashTrieMap(entries),
            intents=HashTrieMap(intents),
            facts=facts,
            paused=False,
            topology=graph,
        )

    def explain(self, name: str) -> ExplanationSnapshot | None:
        """Return the chain of causes to the root cause, with the remedy; None if nothing blocks the package, or if the limit
        on visited packages is reached.
        """
        found = explain(name, self._known) if self._looks < MAX_LOOKS else None
        if found is None or found.ready:
            return None
        causes = tuple(replace(cause, since=None) for cause in _ends(found.causes))
        return replace(found, causes=causes, remedy=self._remedy(causes[-1].subject) or found.remedy)

    def _remedy(self, root: str) -> str:
        """Return the remedy if a version is not known because the user did not give an option; otherwise return an empty text.
        Only plans have this root cause.
        """
        finding = self._findings.get(root)
        if not isinstance(finding, Judged) or finding.decision.reason is not Reason.VERSION_LOOKUP_FAILED:
            return ""
        kubernetes = finding.node.requirements.kubernetes is not None and not self._graph.facts.kubernetes
        return f"give the version with {'--kubernetes-version' if kubernetes else '--platform-version'}"

    def _package(self, name: str) -> PackageSnapshot | None:
        self._looks += 1
        spec = self._wanted.get(name)
        return None if spec is None else _package_snapshot(spec, self._findings[name])

    def _node(self, name: str) -> NodeSnapshot | None:
        if name not in self._nodes and name in self._graph.entries:
            self._nodes[name] = node_snapshot(self._graph, name)
        return self._nodes.get(name)


def _ends(causes: tuple[CauseSnapshot, ...]) -> tuple[CauseSnapshot, ...]:
    """Return the chain with at most MAX_CAUSES causes; the middle of a longer chain is replaced by the number of its causes."""
    if len(causes) <= MAX_CAUSES:
        return causes
    first, last = causes[: MAX_CAUSES // 2], causes[-(MAX_CAUSES // 2 - 1) :]
    left_out = causes[len(first) : -len(last)]
    between = CauseSnapshot(
        left_out[0].subject, f"and {len(left_out) - 1} more packages, each of which waits for the next one", ""
    )
    return (*first, between, *last)


def _entry(finding: Judged, vote: ScriptVote | None) -> Entry:
    """Return the entry that a package would have in the scheduler after all packages that can run have run."""
    lacks = (scheduler_id(finding.held_by),) if finding.held_by else ()
    return Entry(finding.node, Idle() if lacks else Active(), finding.decision, vote, lacks=lacks)


def _package_snapshot(spec: PackageSpec, finding: Finding) -> PackageSnapshot:
    on = isinstance(finding, Judged) and finding.decision.on and not finding.held_by
    return PackageSnapshot(
        name=spec.id.name,
        kind=spec.id.kind,
        namespace=spec.id.namespace,
        package=spec.package,
        version=spec.version,
        digest="",
        release_revision=0,
        state=State.READY if on else State.PENDING,
        message="",
        tip="",
        settings={},
        conditions=_conditions(finding),
        queue=QueueSnapshot(spec.id.name, ()),
        suspended=spec.directives.suspended,
    )


def _conditions(finding: Finding) -> tuple[ConditionSnapshot, ...]:
    if not isinstance(finding, Refused):
        return ()
    kind = ACCEPTED if not finding.accepted else Stage.LOADED
    if finding.reason == Reason.DEPENDENCY_CYCLE:
        kind = Stage.REQUIREMENTS
    return (ConditionSnapshot(kind, "False", finding.reason, finding.message, _NO_MOMENT),)
