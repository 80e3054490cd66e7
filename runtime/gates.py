"""Which packages are on: rules that vote, in a fixed order, and what follows when packages speak about each other.

Rules (spec/runtime §4.2), in this order: the floor; the versions of Kubernetes and of the platform; dependencies; any-of and
none-of groups; the user's intent; the enabled script. The first FORBID wins wherever it stands, otherwise the last vote that
is not UNDEFINED; a node is on if and only if that is ENABLE. Nothing can force a node on: what it requires always may block.

Decisions are a function of what is there now, never of how it came to be: nodes are judged in their topological order, on the
verdicts of those before them. Where soft edges lead backwards this leaves two questions, answered so that no verdict ever
swings: a *late* any-of member counts once a round over all nodes put it on, and rounds repeat while that puts more on; of
two nodes that exclude each other through a cycle, the one placed later yields.

Messages name the subject, what it asks for and what is there; members are sorted, so that a status does not flap.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from wharfinger.formats.version_constraint import ConstraintError, VersionConstraint
from wharfinger.packages.requirements import Dependency
from wharfinger.runtime.scheduler_graph import Node, Topology, Verdict

_MOST_NAMED: Final = 5
"""Of unmet dependencies in one message."""


class Reason(StrEnum):
    """Why a verdict is what it is; for machines, and stable."""

    ENABLED_BY_DEFAULT = "EnabledByDefault"
    DISABLED_BY_DEFAULT = "DisabledByDefault"
    VERSION_LOOKUP_FAILED = "VersionLookupFailed"
    KUBERNETES = "KubernetesRequirementsUnmet"
    PLATFORM = "PlatformRequirementsUnmet"
    DEPENDENCY_NOT_ENABLED = "DependencyNotEnabled"
    DEPENDENCY_VERSION = "DependencyVersionMismatch"
    ANY_OF = "AnyOfDependenciesUnmet"
    NONE_OF = "NoneOfDependenciesUnmet"
    DYNAMICALLY_ENABLED = "DynamicallyEnabled"
    DYNAMICALLY_DISABLED = "DynamicallyDisabled"
    DISABLED_BY_SCRIPT = "DisabledByScript"
    SCRIPT_ERROR = "EnabledScriptError"
    SCRIPT_PENDING = "EnabledScriptPending"


@dataclass(frozen=True, slots=True)
class Facts:
    """Versions of what packages run on; empty: not known."""

    kubernetes: str = ""
    platform: str = ""


@dataclass(frozen=True, slots=True)
class ScriptVote:
    """What an enabled script said: False with its reason, True or None (no objection), or an error: it could not be asked."""

    enabled: bool | None
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What is known about a node from outside: the user's intent, and its script's vote (None: none yet)."""

    intent: bool | None = None
    vote: ScriptVote | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """What one rule says."""

    verdict: Verdict
    reason: Reason
    message: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What all rules say. ``uninstall``: a person, or the package's script, does not want it; whatever else keeps it off."""

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


@dataclass(frozen=True, slots=True)
class Others:
    """What a node is judged against: versions of what is on, of any-of members that count although late, and its refusers."""

    enabled: Mapping[str, str]
    late: Mapping[str, str] = field(default_factory=dict)
    refusers: tuple[Node, ...] = ()

    def version(self, name: str) -> str | None:
        """Of a member of an any-of group; None where it does not count."""
        return self.enabled[name] if name in self.enabled else self.late.get(name)


def decide(
    nodes: Mapping[str, Node], topology: Topology, facts: Facts, opinions: Mapping[str, Opinion]
) -> dict[str, Decision]:
    """The decision about every node, in topological order."""
    assumed: set[str] = set()
    refuted: set[str] = set()
    while True:
        decisions = _one_round(nodes, topology, facts, opinions, {name: nodes[name].version for name in assumed})
        on = {name for name in topology.late if decisions[name].on}
        # A member that is off because it was assumed to be on is a paradox: it never counts again. So this ends.
        refuted |= assumed - on
        if (wanted := (assumed | on) - refuted) == assumed:
            return decisions
        assumed = wanted


def decide_some(
    names: Iterable[str],
    nodes: Mapping[str, Node],
    facts: Facts,
    opinions: Mapping[str, Opinion],
    decisions: Mapping[str, Decision],
) -> dict[str, Decision]:
    """What `decide` says about ``names``, in topological order, where all others stay as ``decisions`` has them.

    For graphs without late members and refusers only.
    """
    changed: dict[str, Decision] = {}
    for name in names:
        node = nodes[name]
        wanted = {each: changed.get(each) or decisions.get(each) for each in node.names()}
        enabled = {each: nodes[each].version for each, decision in wanted.items() if decision and decision.on}
        changed[name] = _decision(node, facts, Others(enabled), opinions[name])
    return changed


def unmet_gate(node: Node, facts: Facts, enabled: Mapping[str, str]) -> Vote | None:
    """The first gate that forbids a node, of those that are about requirements; intent and scripts have no say here."""
    return next(_requirements(node, facts, Others(enabled)), None)


def _one_round(
    nodes: Mapping[str, Node],
    topology: Topology,
    facts: Facts,
    opinions: Mapping[str, Opinion],
    assumed: Mapping[str, str],
) -> dict[str, Decision]:
    enabled: dict[str, str] = {}
    decisions: dict[str, Decision] = {}
    for name in topology.order:
        node = nodes[name]
        refusers = tuple(nodes[each] for each in topology.refused_by.get(name, ()) if each in enabled)
        others = Others(enabled, assumed, refusers)
        decisions[name] = _decision(node, facts, others, opinions.get(name, Opinion()))
        if decisions[name].on:
            enabled[name] = node.version
    return decisions


def _decision(node: Node, facts: Facts, others: Others, opinion: Opinion) -> Decision:
    on = node.floor is Verdict.ENABLE
    floor = Reason.ENABLED_BY_DEFAULT if on else Reason.DISABLED_BY_DEFAULT
    vote = Vote(node.floor, floor, "" if on else "it is off unless it is enabled")
    for each in _votes(node, facts, others, opinion):
        vote = each
        if each.verdict is Verdict.FORBID:
            break
    if vote.verdict is Verdict.ENABLE and node.script and opinion.vote is None:
        vote = Vote(Verdict.UNDEFINED, Reason.SCRIPT_PENDING, "its enabled script has not voted yet")
    unwanted = opinion.intent is False or vote.reason is Reason.DISABLED_BY_SCRIPT
    return Decision(vote.verdict, vote.reason, vote.message, uninstall=unwanted)


def _votes(node: Node, facts: Facts, others: Others, opinion: Opinion) -> Iterator[Vote]:
    """Every rule that has an opinion, in order."""
    yield from _requirements(node, facts, others)
    if opinion.intent is not None:
        yield (
            Vote(Verdict.ENABLE, Reason.DYNAMICALLY_ENABLED)
            if opinion.intent
            else _forbid(Reason.DYNAMICALLY_DISABLED, "it is disabled; enable it to have it back")
        )
    match opinion.vote:
        case ScriptVote(error=error) if error:
            yield _forbid(Reason.SCRIPT_ERROR, f"its enabled script failed: {error}")
        case ScriptVote(enabled=False, reason=reason):
            yield _forbid(Reason.DISABLED_BY_SCRIPT, reason or "its enabled script says no")


def _requirements(node: Node, facts: Facts, others: Others) -> Iterator[Vote]:
    """The gates: every vote is a FORBID."""
    wanted = node.requirements
    yield from _version(node, "Kubernetes", wanted.kubernetes, facts.kubernetes, Reason.KUBERNETES)
    yield from _version(node, "the platform", wanted.platform, facts.platform, Reason.PLATFORM)
    yield from _dependencies(node, others.enabled)
    yield from _any_of(node, others)
    yield from _none_of(node, others)


def _version(
    node: Node, subject: str, constraint: VersionConstraint | None, current: str, reason: Reason
) -> Iterator[Vote]:
    if constraint is None:
        return
    needs = f"{node.name} needs {subject} {constraint}"
    try:
        if not current:
            yield _forbid(Reason.VERSION_LOOKUP_FAILED, f"{needs}, and its version is not known")
        elif not constraint.allows(current):
            yield _forbid(reason, f"{needs}, and the current one is {current}")
    except ConstraintError as error:
        yield _forbid(Reason.VERSION_LOOKUP_FAILED, f"{needs}, and the current one is not understood: {error}")


def _dependencies(node: Node, enabled: Mapping[str, str]) -> Iterator[Vote]:
    unmet: list[tuple[Reason, str]] = []
    for dependency, optional in node.dependencies():
        version = enabled.get(dependency.name)
        if version is None and not optional:
            unmet.append((Reason.DEPENDENCY_NOT_ENABLED, f"dependency {_member(dependency)} is not enabled"))
        elif version is not None and not _allows(dependency.constraint, version):
            text = f"dependency {_member(dependency)} is not met by version {version}"
            unmet.append((Reason.DEPENDENCY_VERSION, text))
    if unmet:
        yield _forbid(unmet[0][0], _listed([text for _, text in unmet]))


def _any_of(node: Node, others: Others) -> Iterator[Vote]:
    for group in node.requirements.any_of:
        members = sorted(group.members, key=lambda member: member.name)
        there = [(member, others.version(member.name) if member.name != node.name else None) for member in members]
        if any(version is not None and _allows(member.constraint, version) for member, version in there):
            continue
        state = [f"{_member(member)}, {version or 'not enabled'}" for member, version in there]
        yield _forbid(Reason.ANY_OF, f"{node.name} needs one of {group.name!r}: {_listed(state)}")


def _none_of(node: Node, others: Others) -> Iterator[Vote]:
    for group in node.requirements.none_of:
        for member in sorted(group.members, key=lambda member: member.name):
            version = others.enabled.get(member.name)
            if version is None or member.name == node.name:
                continue
            if _allows(member.constraint, version, unknown=True):
                excluded = f"{node.name} excludes {group.name!r}: {_member(member)}, and version {version} is enabled"
                yield _forbid(Reason.NONE_OF, excluded)
    for refuser in others.refusers:
        for group in refuser.requirements.none_of:
            named = [each.constraint for each in group.members if each.name == node.name]
            if any(_allows(constraint, node.version, unknown=True) for constraint in named):
                excluded = f"{refuser.name} is enabled and excludes {group.name!r}, and with it {node.name}"
                yield _forbid(Reason.NONE_OF, f"{excluded} {node.version}")


def _allows(constraint: VersionConstraint, version: str, *, unknown: bool = False) -> bool:
    """Whether a version is in range; ``unknown`` for what is no version (``latest``), where the range is not everything."""
    if not constraint.text.strip():
        return True
    try:
        return constraint.allows(version)
    except ConstraintError:
        return unknown


def _forbid(reason: Reason, message: str) -> Vote:
    return Vote(Verdict.FORBID, reason, message)


def _member(dependency: Dependency) -> str:
    constraint = dependency.constraint.text.strip()
    return f"{dependency.name} ({constraint})" if constraint else dependency.name


def _listed(texts: list[str]) -> str:
    shown = texts[:_MOST_NAMED]
    if more := len(texts) - len(shown):
        shown.append(f"and {more} more")
    return "; ".join(shown)
