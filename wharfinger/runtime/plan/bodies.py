"""The bodies that the fixpoint engine runs for a plan. There is one node for each resource (an Application or a Module), and one
node for each definition of a package that resources need.

The node of a resource first creates the node of the package's definition. The node of the definition reads the files of the
package. When the definition has been read, the node of the resource runs again. Then it waits for the decision about every
package that the resource or the definition names, even about packages that no file declares. The node of a Module in an exclusive
group also waits until all Modules are read, because each of them may be in the group. What the node of a resource does depends
on the level at which the engine runs it (:class:`~wharfinger.runtime.fixpoint.model.Level`):

=========  ================================================================================================================
NONE       it waits for every named package that is not judged yet, even for an absent one, which may still appear
CASCADE    no more packages will appear, so the gates decide, and absent packages count as not installed
FORCE      the packages that it names wait for it in turn, so the cycle is judged as a whole
=========  ================================================================================================================

A cycle of dependencies is refused, and each member reports the whole cycle. (The daemon's scheduler refuses only the package that
closes the cycle.) A cycle that any-of or none-of groups close is a knot, about which the gates decide
(:mod:`wharfinger.runtime.scheduler.soft_edges`). At FORCE, a node runs only if it waits for nothing outside of its own cycle. So
every package that it names, directly or through other packages, is either judged or in that cycle.

The decisions are made by :mod:`wharfinger.runtime.scheduler.gates`. The gates get the nodes that the daemon's scheduler would
have. A package that cannot be loaded or is on a cycle has no such node, as in the daemon, so it is "not installed" for other
packages.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.packages.errors import PackageError
from wharfinger.runtime.fixpoint.model import (
    Blocked,
    DependencyFailed,
    Emission,
    Id,
    Level,
    Outcome,
    Terminal,
)
from wharfinger.runtime.resources.identity import AppId, IdentityError, ModuleId, PackageId, package_id
from wharfinger.runtime.resources.package_fit import check_kind, check_needs
from wharfinger.runtime.resources.release_claims import ReleaseClaims, taken_text
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.exclusive_groups import ranked
from wharfinger.runtime.scheduler.gates import Decision, decide_affected
from wharfinger.runtime.scheduler.graph import CycleError, Node, Topology, topology
from wharfinger.runtime.scheduler.package_node import node_of
from wharfinger.runtime.scheduler.rules import Facts, Opinion, ScriptVote
from wharfinger.runtime.status.failures import classify
from wharfinger.runtime.status.reasons import Reason

LoadDefinition: TypeAlias = Callable[[str, str], Awaitable[Definition]]
"""A function that returns the definition of a package by name and version. Raises PackageError."""

_DEFINITION: Final = "Definition"
_LOADING: Final = "loading"


@dataclass(frozen=True, slots=True)
class Refused:
    """The finding that a package would never become a node of the scheduler. ``accepted`` is False if its resource would be
    refused.
    """

    reason: str
    message: str
    accepted: bool = True


@dataclass(frozen=True, slots=True)
class Judged:
    """The decision of the gates about a package. If the package waits for a package that will never run, ``held_by`` names that
    package; otherwise ``held_by`` is "". A package never runs while it is suspended, or waits for a suspended package.
    """

    node: Node
    decision: Decision
    held_by: str = ""


Finding: TypeAlias = Refused | Judged


def node_id(identity: PackageId) -> Id:
    """Return the engine's id of an Application or a Module."""
    if isinstance(identity, AppId):
        return Id(identity.kind, identity.namespace, identity.instance)
    return Id(identity.kind, "", identity.name)


class PlanBodies:
    """The bodies of the plan's nodes, and the findings about each package. The bodies run in one thread; ``load`` may use other
    threads.
    """

    def __init__(self, wanted: Iterable[PackageSpec], facts: Facts, load: LoadDefinition) -> None:
        self.findings: dict[str, Finding] = {}
        self._wanted = {spec.id.name: spec for spec in sorted(wanted, key=lambda spec: spec.id.name)}
        self._facts = facts
        self._load = load
        self._loaded: dict[Id, Definition | Refused] = {}
        self._nodes: dict[str, Node] = {}
        self._claims = _claimed(spec.id for spec in self._wanted.values())
        self._unread = {name: None for name, spec in self._wanted.items() if isinstance(spec.id, ModuleId)}
        """The Modules whose packages are not read yet. While there are any, no member of an exclusive group is judged."""

    @property
    def seeds(self) -> tuple[Id, ...]:
        """Return the ids of the nodes with which a plan begins; they make the further nodes."""
        return tuple(node_id(spec.id) for spec in self._wanted.values())

    async def run(self, who: Id, level: Level, _loop: tuple[Id, ...], /) -> Outcome:
        """Run a node, as the docstring of the module explains. ``_loop`` is a cycle that the engine has found. It is not used,
        because the engine does not distinguish dependencies from any-of and none-of groups. Cycles of dependencies are found as
        in the daemon's scheduler.
        """
        if who.kind == _DEFINITION:
            return await self._read_package(who)
        return self._look(self._wanted[f"{who.namespace}.{who.name}" if who.namespace else who.name], level)

    def reruns_at_drain(self, _who: Id, /) -> bool:
        """Return False: no node has to run again at a fixpoint. The outcome of a node names every id that the node reads, so
        the engine runs the node again when one of these ids changes.
        """
        return False

    async def _read_package(self, package: Id) -> Outcome:
        """Read a package. If the package cannot be read, the node still ends, with the reason as its result."""
        try:
            definition = await self._load(package.namespace, package.name)
        except (PackageError, FormatError) as error:
            refused = self._loaded[package] = _refused(error)
            return Terminal(_text(refused))
        self._loaded[package] = definition
        return Terminal("loaded")

    def _look(self, spec: PackageSpec, level: Level) -> Outcome:
        name, needed = spec.id.name, Id(_DEFINITION, spec.package, spec.version)
        if name not in self.findings and name not in self._nodes:
            if (refused := self._claims.get(name)) is not None:
                self.findings[name] = refused
            elif not spec.version:
                text = f"spec: expected packageVersion, because a plan does not read repositories, found {spec.policy.follows}"
                self.findings[name] = Refused(Reason.NO_VERSION.value, f"{text}; set a version for the plan")
            elif (definition := self._loaded.get(needed)) is None:
                return Terminal(_LOADING, reads=(needed,), emissions=(Emission(needed, digest=""),))
            elif isinstance(definition, Refused):
                self.findings[name] = definition
                self._count_read(name)
                return DependencyFailed((needed,), _text(definition))
            else:
                self._join(spec, definition)
            self._count_read(name)
        if name not in self.findings and (lacks := self._judge_ready(name, level)):
            return Blocked(lacks)
        return self._outcome(name)

    def _join(self, spec: PackageSpec, definition: Definition) -> None:
        """Turn a loaded package into a node of the scheduler or, if it is refused, record the reason."""
        name = spec.id.name
        try:
            check_kind(definition, spec.id)
            check_needs(definition, spec.id)
            self._nodes[name] = node_of(spec.id, definition, spec.directives)
        except (IdentityError, FormatError) as error:
            self.findings[name] = _refused(error)

    def _count_read(self, name: str) -> None:
        """Record that a package has been read. Once all Modules have been read, put the members of each exclusive group in
        order.
        """
        if name not in self._unread:
            return
        del self._unread[name]
        if not self._unread:
            self._nodes |= ranked(self._nodes.values())

    def _judge_ready(self, name: str, level: Level) -> tuple[Id, ...]:
        """Judge a package, and return an empty tuple. If other nodes have to be done first, return their ids instead."""
        node = self._nodes[name]
        if node.exclusive and self._unread:
            return (self._id(next(iter(self._unread))),)
        lacks = [each for each in sorted(node.names()) if each not in self.findings]
        if level is not Level.NONE:
            lacks = [each for each in lacks if each in self._wanted]
        if lacks and level is not Level.FORCE:
            return tuple(self._id(each) for each in lacks)
        self._judge(self._circle(name))
        return ()

    def _id(self, name: str) -> Id:
        spec = self._wanted.get(name)
        return node_id(spec.id if spec is not None else package_id(name))

    def _circle(self, name: str) -> set[str]:
        """Return a package, and every unjudged package that it names, directly or through other unjudged packages."""
        found = {name}
        to_see = [name]
        while to_see:
            named = self._nodes[to_see.pop()].names()
            new = [each for each in named if each in self._wanted and each not in self.findings and each not in found]
            found.update(new)
            to_see += new
        return found

    def _judge(self, members: set[str]) -> None:
        """Decide whether each package in ``members`` may be on. Every package that the members name must be a member as well,
        or already be judged or refused.
        """
        named = {each for member in members for each in self._nodes[member].names()}
        around = {
            each: replace(finding.node, requirements=NO_REQUIREMENTS, outranked_by=())
            for each in named - members
            if isinstance(finding := self.findings.get(each), Judged)
        }
        nodes = around | {each: self._nodes[each] for each in members}
        while (order := self._topology(nodes)) is None:
            nodes = {each: node for each, node in nodes.items() if each not in self.findings or each in around}
        members = nodes.keys() - around.keys()
        decisions = decide_affected(
            order.sorted(nodes, members), nodes, order, self._facts, self.opinion, self._standing
        )
        for name, decision in decisions.items():
            held_by = (
                next((each for each in order.waits_for[name] if self._never_runs(each)), "") if decision.on else ""
            )
            self.findings[name] = Judged(self._nodes[name], decision, held_by)

    def _topology(self, nodes: Mapping[str, Node]) -> Topology | None:
        """Return the topology of the nodes. If some of them are on a cycle of dependencies, refuse these and return None."""
        try:
            return topology(nodes)
        except CycleError as error:
            cycle = Refused(Reason.DEPENDENCY_CYCLE.value, str(error))
            self.findings.update(dict.fromkeys(error.members, cycle))
            return None

    def opinion(self, name: str) -> Opinion:
        """Return whether the resource wants the package to be on, and the vote of the package's ``enabled`` script. A plan runs
        no scripts, so the vote is that of a script without an objection.
        """
        vote = ScriptVote(enabled=None) if self._nodes[name].script else None
        return Opinion(self._wanted[name].enabled, vote)

    def _standing(self, name: str) -> Decision | None:
        finding = self.findings.get(name)
        return finding.decision if isinstance(finding, Judged) else None

    def _never_runs(self, name: str) -> bool:
        """Return whether a package is allowed to be on but will never run, because it is suspended or waits for a suspended
        package.
        """
        finding = self.findings.get(name)
        if not isinstance(finding, Judged) or not finding.decision.on:
            return False
        return bool(finding.held_by) or self._wanted[name].directives.suspended

    def _outcome(self, name: str) -> Outcome:
        """Return the outcome for the engine: DependencyFailed if the package and some of the packages that it names are off;
        otherwise Terminal.
        """
        finding = self.findings[name]
        if isinstance(finding, Judged) and not finding.decision.on:
            off = [each for each in sorted(finding.node.names()) if each in self._wanted and not self._is_on(each)]
            if off:
                return DependencyFailed(tuple(self._id(each) for each in off), _text(finding))
        return Terminal(_text(finding))

    def _is_on(self, name: str) -> bool:
        finding = self.findings.get(name)
        return isinstance(finding, Judged) and finding.decision.on


def _claimed(identities: Iterable[PackageId]) -> Mapping[str, Refused]:
    """Return the packages that cannot have their release, because the release's name is invalid, or another package has the
    release.
    """
    claims = ReleaseClaims(on_free=lambda _: None)
    refused: dict[str, Refused] = {}
    for identity in identities:
        try:
            owner = claims.claim(identity)
        except IdentityError as error:
            refused[identity.name] = Refused(Reason.SPEC_INVALID.value, str(error), accepted=False)
            continue
        if owner is not None:
            refused[identity.name] = Refused(Reason.SPEC_INVALID.value, taken_text(identity, owner), accepted=False)
    return refused


def _refused(error: PackageError | FormatError | IdentityError) -> Refused:
    failure = classify(error)
    return Refused(failure.reason.value, failure.message)


def _text(finding: Finding) -> str:
    match finding:
        case Refused(reason, message):
            return f"{reason}: {message}"
        case Judged(_, decision, held_by):
            if held_by:
                return f"waits for {held_by}"
            return "on" if decision.on else f"{decision.reason.value}: {decision.message}"
