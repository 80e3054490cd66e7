"""The rules, which vote on one node in a fixed order.

The order (spec/runtime §4.2): the floor, which is the package's default; the versions of Kubernetes and of the platform; the
end of the cluster's bootstrap; dependencies; any-of, none-of and exclusive groups; for Modules, the bundle of the platform, and
the flag of a global hook; the user's intent; the enabled script. All rules from Kubernetes to the groups are *gates*: they vote
FORBID or not at all.

Where a rule has a range, an installed version is compared without its prerelease and build metadata: 1.2.0-rc1 satisfies
``>=1.2.0``. A text that is not a version (``latest``) satisfies a required range only if this range contains all versions, and
counts as part of every excluded range.

Messages name the subject, the requirement and the version or state that was found; members are sorted, so that a status does
not change back and forth. Messages distinguish a package that is not installed from a package that is off, because the remedies
differ; the reason why a package is off is in its own status.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.version_constraint import ConstraintError, VersionConstraint
from wharfinger.packages.definition.requirements import Dependency
from wharfinger.runtime.scheduler.graph import DEFAULT_ORDER, Node, Verdict
from wharfinger.runtime.status.reasons import Reason

_MOST_NAMED: Final = 5
"""The limit on the number of unmet dependencies in one message."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The versions and properties of the platform.

    Versions are empty if they are unknown. ``bootstrapped`` is True if the bootstrap of the cluster is finished; before that,
    packages of the order DEFAULT_ORDER are off. ``edition`` and ``bundle`` are those of the platform; if ``bundle`` is empty,
    no Module is enabled by a bundle.
    """

    kubernetes: str = ""
    platform: str = ""
    bootstrapped: bool = True
    edition: str = ""
    bundle: str = ""


@dataclass(frozen=True, slots=True)
class ScriptVote:
    """The vote of a package's ``enabled`` script. ``enabled`` is False if the script votes against the package, for the given
    ``reason``; True or None if it has no objection. ``error`` is set if the script gave no vote.

    ``provisional`` is True if the script ran while some installed packages were not loaded yet. A provisional vote against the
    package keeps it off, but does not uninstall it.
    """

    enabled: bool | None
    reason: str = ""
    error: str = ""
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class Opinion:
    """The wishes for a node: the intent of a user, the vote of the package's script (None before its first vote), and the flag
    of a global hook.
    """

    intent: bool | None = None
    vote: ScriptVote | None = None
    flag: bool | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """The vote of one rule."""

    verdict: Verdict
    reason: Reason
    message: str = ""


UNWANTED: Final = Vote(
    Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, "the package is disabled; enable it to install it again"
)
"""The vote of a user who has disabled the package. Its reason is the reported one, even if other rules forbid the package as
well.
"""


@dataclass(frozen=True, slots=True)
class Others:
    """The other nodes against which a node is judged.

    ``enabled`` has the versions of the nodes that are on, and ``installed`` has all nodes. ``wanted`` has the wanted Modules
    that take precedence over the node in its exclusive group. ``late`` and ``refusers`` are for knots: ``late`` has the
    versions of any-of members that come after the node in the order, but count as on; ``refusers`` has the nodes that come
    before the node, exclude it, and are on.
    """

    enabled: Mapping[str, str]
    installed: Container[str]
    late: Mapping[str, str] = field(default_factory=dict)
    refusers: tuple[Node, ...] = ()
    wanted: tuple[str, ...] = ()

    def version(self, name: str) -> str | None:
        """Return the version of a member of an any-of group if the member is on, or counts as on in a knot; None otherwise."""
        return self.enabled[name] if name in self.enabled else self.late.get(name)

    def lack(self, name: str) -> str:
        """Return why the package of this name is not on, as a text for messages: ``not enabled`` or ``not installed``."""
        return "not enabled" if name in self.installed else "not installed"


def votes(node: Node, facts: Facts, others: Others, opinion: Opinion) -> Iterator[Vote]:
    """Return the votes of all rules that vote on the node, in order. The first vote is always the default of the package: on or
    off.
    """
    yield _floor(node)
    yield from gates(node, facts, others)
    yield from _votes_after_gates(node, facts, opinion)


def votes_without_gates(node: Node, facts: Facts, opinion: Opinion) -> Iterator[Vote]:
    """Return the votes of the rules that are not gates. The first vote is the default of the package: on, or off."""
    yield _floor(node)
    yield from _votes_after_gates(node, facts, opinion)


def _floor(node: Node) -> Vote:
    if node.floor is Verdict.ENABLE:
        return Vote(Verdict.ENABLE, Reason.ENABLED_BY_DEFAULT)
    return Vote(node.floor, Reason.DISABLED_BY_DEFAULT, "the package is off by default, and not enabled")


def _votes_after_gates(node: Node, facts: Facts, opinion: Opinion) -> Iterator[Vote]:
    if node.floor is Verdict.DISABLE and facts.bundle and (facts.edition, facts.bundle) in node.bundles:
        yield Vote(Verdict.ENABLE, Reason.ENABLED_IN_BUNDLE)
    if opinion.flag is not None:
        yield (
            Vote(Verdict.ENABLE, Reason.ENABLED_BY_HOOK)
            if opinion.flag
            else Vote(Verdict.DISABLE, Reason.DISABLED_BY_HOOK, "a global hook switched the package off")
        )
    if opinion.intent is not None:
        yield Vote(Verdict.ENABLE, Reason.DYNAMICALLY_ENABLED) if opinion.intent else UNWANTED
    match opinion.vote:
        case None if node.script:
            yield Vote(Verdict.UNDEFINED, Reason.SCRIPT_PENDING, "the package's enabled script has not voted yet")
        case ScriptVote(error=error) if error:
            yield _forbid(Reason.SCRIPT_ERROR, f"the package's enabled script gave no answer: {error}")
        case ScriptVote(enabled=False, reason=reason):
            yield _forbid(
                Reason.DISABLED_BY_SCRIPT, reason or "the package's enabled script disabled it without a reason"
            )


def gates(node: Node, facts: Facts, others: Others) -> Iterator[Vote]:
    """Yield the votes about unmet requirements of a node, in the order of the rules; each vote is a FORBID."""
    wanted = node.requirements
    yield from _version(node, "Kubernetes", wanted.kubernetes, facts.kubernetes, Reason.KUBERNETES_UNMET)
    yield from _version(node, "the platform", wanted.platform, facts.platform, Reason.PLATFORM_UNMET)
    if not facts.bootstrapped and node.order == DEFAULT_ORDER:
        yield _forbid(Reason.BOOTSTRAP_UNMET, "the bootstrap of the cluster is not finished yet")
    yield from _dependencies(node, others)
    yield from _any_of(node, others)
    yield from _none_of(node, others)
    yield from _exclusive(node, others)


def _version(
    node: Node, subject: str, constraint: VersionConstraint | None, current: str, reason: Reason
) -> Iterator[Vote]:
    if constraint is None:
        return
    needs = f"{node.name} needs {subject} {constraint}"
    try:
        if not current:
            yield _forbid(Reason.VERSION_LOOKUP_FAILED, f"{needs}, but the version of {subject} is not known")
        elif not constraint.allows(current):
            yield _forbid(reason, f"{needs}, but the current version is {current}")
    except ConstraintError as error:
        yield _forbid(Reason.VERSION_LOOKUP_FAILED, f"{needs}, but the current version cannot be parsed: {error}")


def _dependencies(node: Node, others: Others) -> Iterator[Vote]:
    unmet: list[tuple[Reason, str]] = []
    for dependency, optional in node.dependencies():
        version = others.enabled.get(dependency.name)
        if version is None and not optional:
            text = f"dependency {_member(dependency)} is {others.lack(dependency.name)}"
            unmet.append((Reason.DEPENDENCY_NOT_ENABLED, text))
        elif version is not None and not is_allowed(dependency.constraint, version):
            text = f"dependency {_member(dependency)} is not met by version {version}"
            unmet.append((Reason.DEPENDENCY_VERSION_MISMATCH, text))
    if unmet:
        yield _forbid(unmet[0][0], _listed([text for _, text in unmet]))


def _any_of(node: Node, others: Others) -> Iterator[Vote]:
    for group in node.requirements.any_of:
        members = sorted(group.members, key=lambda member: member.name)
        there = [(member, others.version(member.name) if member.name != node.name else None) for member in members]
        if any(version is not None and is_allowed(member.constraint, version) for member, version in there):
            continue
        state = [
            f"{_member(member)} {f'has version {version}' if version else f'is {others.lack(member.name)}'}"
            for member, version in there
        ]
        text = f"{node.name} needs one package of the group {group.name!r}: {_listed(state)}"
        yield _forbid(Reason.ANY_OF_UNMET, text)


def _none_of(node: Node, others: Others) -> Iterator[Vote]:
    for group in node.requirements.none_of:
        for member in sorted(group.members, key=lambda member: member.name):
            version = others.enabled.get(member.name)
            if version is None or member.name == node.name:
                continue
            if is_allowed(member.constraint, version, unknown=True):
                text = f"{node.name} excludes {_member(member)} (group {group.name!r}), but version {version} is on"
                yield _forbid(Reason.NONE_OF_UNMET, text)
    for refuser in others.refusers:
        for group in refuser.excluded:
            named = [each.constraint for each in group.members if each.name == node.name]
            if any(is_allowed(constraint, node.version, unknown=True) for constraint in named):
                excluded = f"{refuser.name} is on, and excludes the group {group.name!r}, which contains {node.name}"
                yield _forbid(Reason.NONE_OF_UNMET, f"{excluded} {node.version}")


def _exclusive(node: Node, others: Others) -> Iterator[Vote]:
    if others.wanted:
        paused = [name for name in others.wanted if name not in others.enabled]
        on = [name for name in others.wanted if name in others.enabled]
        first = on[0] if on else f"{paused[0]} (which should be on, but is off)"
        text = f"only one Module of the exclusive group {node.exclusive!r} may be on, and {first} takes precedence"
        yield _forbid(Reason.EXCLUSIVE_GROUP_TAKEN, text)


def is_allowed(constraint: VersionConstraint, version: str, *, unknown: bool = False) -> bool:
    """Return whether a version is in a range.

    If ``unknown`` is true, a text that is not a version (``latest``) counts as being in every range. Otherwise, it counts as
    being only in the range of all versions.
    """
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
