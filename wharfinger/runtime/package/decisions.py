"""The reactions of a package to the scheduler. Pure.

After a package has passed its loaded definition to the scheduler (an *offer*), the scheduler accepts or refuses the node that
it would make for the package. Later, the scheduler reports decisions, and orders the package to run or to be disabled.

This module is a part of the state machine in :mod:`~wharfinger.runtime.package.machine`. The docstring of that module has a
table with the reaction to each event in each phase.
"""

from typing import assert_never

from wharfinger.runtime.package.around import Around, Next
from wharfinger.runtime.package.effects import BeginReconciliation, Effect, Simple, Tell
from wharfinger.runtime.package.events import (
    DecisionMade,
    DecisionReported,
    DisableOrdered,
    NodeAccepted,
    NodeRefused,
    NodeSettled,
    RunOrdered,
)
from wharfinger.runtime.package.facts import Joined, JoinRefused, MissedDisableDropped, ReconciliationOrdered
from wharfinger.runtime.package.offers import offer, reconfigured
from wharfinger.runtime.package.operations import disable_ordered, ensure_crds
from wharfinger.runtime.package.reports import failed, with_status
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import is_global
from wharfinger.runtime.scheduler.events import Failed, NodeRemoved, ScriptVoted
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Stage


def answered(package: Package, event: NodeAccepted | NodeRefused | NodeSettled, around: Around) -> Next:
    """Return the package and the effects after the scheduler's answer to an offered node."""
    match event:
        case NodeAccepted(definition, fresh, stored):
            vote = package.vote.cast or ScriptVoted(package.id.name, None)
            package = applied(package, Joined(definition))
            if stored:
                return package, (Tell(vote),)
            return package, (Tell(vote), Simple.RESTATE, *((Simple.SETTLE,) if fresh else ()))
        case NodeRefused(failure, fresh, established):
            if fresh:
                package = applied(package, JoinRefused(failure, established))
            package, effects = failed(package, Stage.REQUIREMENTS, failure, around)
            if fresh and not package.status.version:
                # No version is installed that dependents could use.
                effects = (*effects, Tell(NodeRemoved(package.id.name)))
            return package, effects
        case NodeSettled(enabled, unwanted):
            return _settled(package, around, enabled=enabled, unwanted=unwanted)
        case _:
            assert_never(event)


def _settled(package: Package, around: Around, *, enabled: bool, unwanted: bool) -> Next:
    effects: tuple[Effect, ...] = ()
    missed = package.node.missed_disable
    package = applied(package, MissedDisableDropped())
    if enabled:
        effects = ensure_crds(package, around)
    elif missed is not None:
        # Whether to uninstall is decided again: a package that was unwanted when the Disable was missed may now be wanted,
        # and only lack a requirement.
        package, effects = disable_ordered(package, missed[0], around, uninstall=unwanted)
    definition, is_current = package.files.definition, package.vote.asked_about == package.desired.settings.checksum
    if definition is not None and definition.enabled_script and not is_current:
        package, more = reconfigured(package, "SettingsChanged")
        effects = (*effects, *more)
    return package, effects


def decided(
    package: Package, event: RunOrdered | DisableOrdered | DecisionMade | DecisionReported, around: Around
) -> Next:
    """Return the package and the effects after a decision or an order of the scheduler."""
    match event:
        case RunOrdered(run, reason):
            return _run_ordered(package, run, reason, around)
        case DisableOrdered(reason, uninstall):
            return disable_ordered(package, reason, around, uninstall=uninstall)
        case DecisionMade(allowed):
            if not allowed:
                return package, ()
            package = applied(package, MissedDisableDropped())
            return package, ensure_crds(package, around) if package.node.refused is None else ()
        case DecisionReported(decided):
            refused, now = package.node.refused, around.now
            if decided.allowed and refused is not None:  # this decision was made about the earlier version
                status = statuses.failed(
                    package.status,
                    Stage.REQUIREMENTS,
                    refused.reason,
                    refused.message,
                    now,
                    permanent=refused.permanent,
                )
            else:
                status = statuses.required(package.status, decided.reason, decided.message, now, met=decided.allowed)
            return with_status(package, status), ()
        case _:
            assert_never(event)


def _run_ordered(package: Package, run: int, reason: str, around: Around) -> Next:
    """Begin a reconciliation of the loaded package.

    While a version is being loaded, the run counts as failed, and the scheduler orders another run after the load. If the
    scheduler refused the loaded version, the version is offered to the scheduler again, in place of a reconciliation.
    """
    package = applied(package, ReconciliationOrdered(run))
    begins = (Simple.ROUND_BEGINS,) if is_global(package.id) else ()
    if around.loading:
        return package, (*begins, Tell(Failed(package.id.name, run)))
    if package.node.refused is not None and package.files.definition is not None and not around.suspended:
        package, offered = offer(package)
        return package, (*begins, *offered)
    return package, (*begins, BeginReconciliation(run, reason))
