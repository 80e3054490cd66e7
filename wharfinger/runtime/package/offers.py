"""The offer of a package to the scheduler: the package's node, and the vote of its enabled script. The scheduler needs both
before it orders a run. Pure.

These functions are a part of the state machine; the docstring of :mod:`~wharfinger.runtime.package.machine` has a table of
the events for which they are called.
"""

from typing import assert_never

from wharfinger.runtime.package.around import Around, Next
from wharfinger.runtime.package.effects import BeginVote, Effect, EnqueueVote, Offer, RepeatVote, Simple, Tell
from wharfinger.runtime.package.events import VoteDone, VoteRecorded, VoteRepeated, VoteStarted
from wharfinger.runtime.package.facts import Offered, ScriptDone, VoteBegun, VoteCast
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.scheduler.events import Rescheduled


def offer(package: Package, *, stored: bool = False) -> Next:
    """Offer the loaded definition to the scheduler as the package's node; do nothing if no definition is loaded. ``stored`` is
    True if the definition is that of a suspended package.
    """
    definition, before = package.files.definition, package.crds.established
    if definition is None:
        return package, ()
    fresh = definition is not package.node.joined and not stored
    established = before
    if fresh:
        established = None if definition.crds else ()
    # The state changes before the scheduler is notified, because the scheduler's orders begin operations immediately.
    return applied(package, Offered(established)), (Offer(definition, fresh, stored, before),)


def reconfigured(package: Package, reason: str) -> Next:
    """Act on a change in the specification of a package that is not being loaded. An enabled script may read the settings, so
    it votes before the scheduler is asked for a run of the package.
    """
    definition = package.files.definition
    if definition is not None and package.node.refused is not None:
        return offer(package)  # the scheduler may accept the node now
    if definition is None or not definition.enabled_script:
        return package, (Tell(Rescheduled(package.id.name, reason)),)
    return package, (BeginVote(reason),)


def voted(package: Package, event: VoteRecorded | VoteStarted | VoteDone | VoteRepeated, around: Around) -> Next:
    """Return the package and the effects after an event about a vote of its enabled script."""
    match event:
        case VoteRecorded(vote):
            # While the script's version is being loaded, or if it was refused, the node still has an earlier version.
            applies = package.node.refused is None and not around.loading
            return applied(package, VoteCast(vote)), (Tell(vote),) if applies else ()
        case VoteStarted(scope, reason, before):
            return applied(package, VoteBegun(scope, reason, before)), (EnqueueVote(scope, reason),)
        case VoteDone(reason):
            return applied(package, ScriptDone()), (Simple.RESTATE, Tell(Rescheduled(package.id.name, reason)))
        case VoteRepeated():
            return applied(package, ScriptDone()), (Simple.RESTATE,)
        case _:
            assert_never(event)


def ask_again(package: Package, before: tuple[str, ...], *, forced: bool) -> tuple[Effect, ...]:
    """Return the effects that run the enabled script with ``before``, the Modules that are on now.

    Nothing is returned if the last run got exactly these Modules, unless ``forced`` is set. Even with ``forced``, nothing is
    returned if a run that got exactly these Modules is still under way, and only a change of the Modules caused it.

    A run under way that had another reason is interrupted; the new run replaces it and keeps the reason.
    """
    vote = package.vote
    runs = vote.voting is not None and not vote.voting.cancelled
    if before == vote.saw and ((runs and not vote.reason) or not forced):
        return ()
    return (RepeatVote(before, vote.reason if runs else ""),)
