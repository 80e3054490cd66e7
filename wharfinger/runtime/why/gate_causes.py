"""The causes in the scheduler: the votes against a package, and the packages and tiers for which its node waits. A *tier* is all
packages of one order.

Each vote against a package is a cause, in the order of the rules; for a vote about dependencies, each unmet dependency is a
cause instead. Everything for which a node waits is also a cause: another package, the packages of a lower tier that are not
done yet, or the vote of the node's own enabled script. A snapshot from another version of Wharfinger may have neither votes nor
things that the node waits for; then the message of the decision is the only cause.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from wharfinger.formats.listing import listed
from wharfinger.formats.version_constraint import ConstraintError, parse_constraint
from wharfinger.runtime.inspector import ConditionSnapshot, PackageSnapshot
from wharfinger.runtime.scheduler_details import DependencySnapshot, LackSnapshot, NodeSnapshot, VoteSnapshot
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason, explanation
from wharfinger.runtime.why.causes import MOST_NAMED, Cause, Known
from wharfinger.runtime.why.remedies import (
    PAUSE,
    UNTAKEN,
    WAIT,
    Member,
    of_absence,
    of_closing,
    of_group,
    of_reason,
    of_version,
)

PAUSED: Final = (
    "nothing is decided before the API server has answered whether the ConfigMap of --bootstrapped-by exists"
)
"""The explanation for a paused scheduler. A daemon pauses its scheduler for no other reason."""
RESTING: Final = "the package is paused: its hooks are stopped, and nothing is deleted"
AGAIN: Final = "the package is ready, but has to run again"
_MOST_LOOKED_AT: Final = 1_000
_FORBID: Final = "Forbid"
_DISABLE: Final = "Disable"
_ON: Final = "Enable"


def vote_causes(known: Known, package: PackageSnapshot, node: NodeSnapshot | None) -> Iterator[Cause]:
    """Yield the reasons why a package cannot be on. Yield nothing if the package can be on, or if there is no decision yet."""
    if node is None:
        return
    condition = _required(package)
    since = condition.last_transition if condition is not None else None
    resting = RESTING if package.installed_version else ""
    for vote in _against(node):
        if vote.reason in (Reason.DEPENDENCY_NOT_ENABLED, Reason.DEPENDENCY_VERSION_MISMATCH):
            found = tuple(replace(each, since=since) for each in _unmet(known, node, resting))
            yield from found or (_root(package.name, vote, since),)
        elif vote.reason == Reason.ANY_OF_UNMET:
            root = _root(package.name, vote, _since(node, vote) or since)
            yield replace(root, remedy=of_group(_members(known, node, vote)))
        else:
            yield _root(package.name, vote, _since(node, vote) or since)


def refusal_cause(known: Known, package: PackageSnapshot, node: NodeSnapshot | None) -> Cause | None:
    """Return the cause if the scheduler refused a change of the package; otherwise None. A refused change is visible in the
    condition RequirementsMet, but not in the node.

    A package that would close a cycle does not become a node. A package whose changed resource would close a cycle keeps
    running as before.
    """
    condition = _required(package)
    if condition is None or condition.status != "False" or (node is not None and node.decision != _ON):
        return None
    name = package.name
    cause = _root(name, VoteSnapshot(_FORBID, condition.reason, condition.message), condition.last_transition)
    if node is not None:
        cause = replace(cause, state="keeps running as it did before its resource changed")
    if condition.reason != Reason.DEPENDENCY_CYCLE:
        return cause
    closing = tuple(each for each in known.by_resource(name) if _needs(known, each, name))
    return replace(cause, remedy=of_closing(name, closing))


def lack_causes(known: Known, node: NodeSnapshot) -> Iterator[Cause]:
    """Yield the reasons why a node waits. Yield nothing for a node that does not wait, and for a package that is off."""
    if node.state != "idle" or node.decision not in (_ON, "Undefined"):
        return
    for lack in node.lacks:
        yield _lack(known, node, lack)
    if not node.lacks:
        yield Cause("waits for its turn", node.message, node.since, remedy=WAIT, by_hand=False)


def again_causes(known: Known, node: NodeSnapshot) -> Iterator[Cause]:
    """Yield the reasons why the next run of a ready package has to wait. Most such runs are caused by a subscription."""
    for cause in lack_causes(known, node):
        yield replace(cause, message="; ".join(filter(None, (cause.message, AGAIN))))


KEPT_ELSEWHERE: Final = "is managed by the daemon of another shard"


def absence_cause(known: Known, name: str, needed_by: NodeSnapshot | None) -> Cause:
    """Return why there is no snapshot of a package: another shard manages it, the daemon does not know it, or, if no daemon was
    asked, it has no resource. ``needed_by`` is the node that requires the package, or None.
    """
    if known.asks_daemon and (node := known.node(name)) is not None:
        said = (
            "the package is not ready in that shard"
            if known.is_on(name)
            else f"the package is off in that shard: {node.reason}"
        )
        return Cause(
            KEPT_ELSEWHERE, said, node.since, remedy=f"run `wharfinger why {name}` with the daemon of that shard"
        )
    remedy = of_absence(name, "", "")
    if needed_by is not None:
        constraint = next((each.constraint for each in needed_by.dependencies if each.name == name), "")
        asked = name in known.by_resource(needed_by.name)
        remedy = of_absence(name, constraint, needed_by.name, by_resource=asked)
    if known.asks_daemon:
        return Cause("is not known", "the daemon knows no package of that name", remedy=f"{remedy}; {UNTAKEN}")
    return Cause("is not installed", "there is no resource of that name", remedy=remedy)


def _required(package: PackageSnapshot) -> ConditionSnapshot | None:
    return next((each for each in package.conditions if each.type == Stage.REQUIREMENTS), None)


def _needs(known: Known, start: str, name: str) -> bool:
    """Return whether a package needs another package, directly or through others; the search visits a limited number of
    packages.
    """
    seen, to_see = {start}, [start]
    while to_see and len(seen) <= _MOST_LOOKED_AT:
        each = to_see.pop()
        if each == name:
            return True
        node = known.node(each)
        needed = {other.name for other in node.dependencies} - seen if node is not None else set[str]()
        seen |= needed
        to_see += sorted(needed)
    return False


def _against(node: NodeSnapshot) -> tuple[VoteSnapshot, ...]:
    """Return the votes that keep a node off: every Forbid, and the last of the other votes if it is a Disable. This Disable is
    left out if the user has disabled the package.

    The decisive vote comes first: the user's Forbid if there is one, otherwise the first Forbid in the order of the rules.
    """
    if node.decision not in (_FORBID, _DISABLE):
        return ()
    decided = (node.reason, node.message)
    forbidding = tuple(
        sorted(
            (vote for vote in node.votes if vote.verdict == _FORBID),
            key=lambda vote: (vote.reason, vote.message) != decided,
        )
    )
    standing = [vote for vote in node.votes if vote.verdict in (_ON, _DISABLE)]
    settled = any(vote.reason == Reason.DYNAMICALLY_DISABLED for vote in forbidding)
    last = tuple(vote for vote in standing[-1:] if vote.verdict == _DISABLE and not settled)
    return forbidding + last or (VoteSnapshot(node.decision, node.reason, node.message),)


def _since(node: NodeSnapshot, vote: VoteSnapshot) -> datetime | None:
    """Return the time since which a vote has been decisive; None if another vote is decisive, or if the time is not known.

    The time of the condition RequirementsMet is not used: it may be older than this vote, because another vote may have been
    decisive before.
    """
    return node.since if (vote.reason, vote.message) == (node.reason, node.message) else None


def _root(name: str, vote: VoteSnapshot, since: datetime | None) -> Cause:
    state = "is off" if vote.verdict == _DISABLE or vote.reason in _UNWANTED else "cannot be on"
    message = f"{vote.reason}: {vote.message or explanation(vote.reason)}"
    return Cause(state, message, since, remedy=of_reason(name, vote.reason))


_UNWANTED: Final = (Reason.DYNAMICALLY_DISABLED, Reason.DISABLED_BY_SCRIPT)


def _unmet(known: Known, node: NodeSnapshot, message: str) -> Iterator[Cause]:
    for each in node.dependencies:
        there = known.node(each.name)
        if there is None or not known.is_on(each.name):
            if not each.optional:
                yield Cause(f"needs {_member(each)}", message, through=(each.name,))
        elif not _allows(each.constraint, there.version):
            text = f"{each.name} has version {there.version}"
            asked = each.name in known.by_resource(node.name)
            remedy = of_version(each.name, each.constraint, node.name, by_resource=asked)
            yield Cause(f"needs {_member(each)}", "; ".join(filter(None, (text, message))), remedy=remedy)


def _members(known: Known, node: NodeSnapshot, vote: VoteSnapshot) -> tuple[Member, ...]:
    """Return the members of the any-of group that a vote is about."""
    groups = [group for group in node.groups if group.kind == "anyOf"]
    own = next((group for group in groups if f"one of {group.name!r}:" in vote.message), None)
    return tuple(
        member
        for group in (groups if own is None else [own])
        for each in group.members
        if (member := _member_of(known, node, each)) is not None
    )


def _member_of(known: Known, node: NodeSnapshot, each: DependencySnapshot) -> Member | None:
    """Return a member of the group for the remedy; None if enabling the member cannot help, because the member is the package
    itself, or is already on in a suitable version.
    """
    there = known.node(each.name)
    version = there.version if there is not None and known.is_on(each.name) else ""
    if each.name == node.name or (version and _allows(each.constraint, version)):
        return None
    return Member(each.name, each.constraint.strip(), version, known.package(each.name) is not None)


def _lack(known: Known, node: NodeSnapshot, lack: LackSnapshot) -> Cause:
    match lack.kind:
        case "package":
            return Cause(f"waits for {lack.name}", "", node.since, through=(lack.name,))
        case "tier":
            others = _holders(known, node, lack.name)
            held = f"packages of this order are not done: {listed(others, MOST_NAMED)}" if others else ""
            return Cause(f"waits for order {lack.name}", held, node.since, through=others, remedy=WAIT, by_hand=False)
        case "vote":
            text = explanation(Reason.SCRIPT_PENDING)
            return Cause("waits for its enabled script", text, node.since, remedy=WAIT, by_hand=False)
        case _:
            return Cause("waits", PAUSED, node.since, remedy=PAUSE, by_hand=False)


def _holders(known: Known, node: NodeSnapshot, order: str) -> tuple[str, ...]:
    try:
        return tuple(name for name in known.holders(int(order)) if name != node.name)
    except ValueError:  # another version of Wharfinger may write the name of a tier in another form
        return ()


def _member(dependency: DependencySnapshot) -> str:
    constraint = dependency.constraint.strip()
    return f"{dependency.name} ({constraint})" if constraint else dependency.name


def _allows(constraint: str, version: str) -> bool:
    """Return whether a version meets a constraint, as in the rules of the gates.

    Any version meets an empty constraint; a text that is not a version meets no other constraint.
    """
    if not constraint.strip():
        return True
    try:
        return parse_constraint(constraint).allows(version)
    except ConstraintError:
        return False
