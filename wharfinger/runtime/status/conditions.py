"""The external conditions of a package's resource, derived from its stages (spec/runtime §6.1, kstatus).

Programs read two kinds of conditions, which answer different questions:

* ``Ready``, ``Reconciling`` and ``Stalled`` (kstatus) say whether the package has reached its *wanted* state. They are always
  reported, and are judged again for each generation. At most one of them is True, with two exceptions. During a rollout, a
  package is both Ready and Reconciling (kstatus: in progress): it was ready, and its objects are being updated, scaled or
  replaced, or are being checked after a restart. After a rollback, a package is Ready, for an earlier generation, and Stalled,
  because the resource asks for another state. All three are False only if the package is suspended, or if it is unwanted and
  uninstalled.
* ``Installed``, ``UpdateInstalled``, ``Scaled``, ``Managed`` and ``ConfigurationApplied`` say which state the *installed*
  package has reached. Each of these conditions has a mapper, a function that returns a new report or nothing. If it returns
  nothing, the condition is kept unchanged, with the generation for which it was reported; a condition that was never reported
  is absent. Each mapper except for that of ``Installed`` checks for failures before successes. The condition and the phase of
  the package determine which stages are checked for failures. For example, ``Installed`` checks all stages before ``Scaled``,
  until the package is complete for the first time. While another version is wanted, ``Managed`` checks only the stages that
  affect the running version. Once the wanted version is applied, it also checks the stages in which this version was fetched and
  loaded. It never checks the settings, because refused settings break nothing. Work in progress does not count as a failure, so a
  routine check of a package changes none of these conditions.

* ``Installed`` becomes True when all stages are done for the first time, and stays True until a removal of the package begins,
  even if the package fails or is paused.
* A paused package (a requirement is not met any more, or the package is not wanted any more) is not checked: Scaled, Managed
  and ConfigurationApplied are Unknown.
* If a user suspends a package, every condition is kept, but Reconciling and Stalled are False.
* If a removal is held back because of the package's dependents, Ready, Reconciling and Stalled report this; all other conditions
  are reported as usual.
* While a package is being removed, Ready, Reconciling and Stalled report the removal. Every other reported condition is False,
  and keeps its last message as a record of the last state.
* A condition's time changes only when its status does.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from wharfinger.runtime.status.package_status import (
    Condition,
    ExternalCondition,
    PackageStatus,
    Phase,
    Stage,
    Truth,
    is_gated,
    open_condition,
)
from wharfinger.runtime.status.reasons import OFF, Reason, explanation
from wharfinger.runtime.status.summary import ready_message, summarize


class Verdict(NamedTuple):
    """The new content of a condition, which a :data:`Mapper` returns: the status, the reason and the message."""

    truth: Truth
    reason: str
    message: str = ""


Mapper = Callable[[PackageStatus], Verdict | None]
"""A function that returns a new report for one condition, or None."""

_EARLY: Final = (Stage.FETCHED, Stage.LOADED)
_LATE: Final = (Stage.CRDS, Stage.WEBHOOKS, Stage.HOOKS, Stage.APPLIED)
_CONFIGURATION: Final = (Stage.CONFIGURED, *_LATE)
_UPDATE: Final = (*_EARLY, *_CONFIGURATION)
_PIPELINE: Final = (*_EARLY, Stage.REQUIREMENTS, *_CONFIGURATION)
_RECONCILIATION: Final = (*_EARLY, *_LATE)


def external_conditions(status: PackageStatus, now: datetime) -> Mapping[str, ExternalCondition]:
    """Return the conditions to write into the package's resource (the external conditions), in the order in which they are
    written. If they are the same as the last reported ones, return the same object as ``status.external``.
    """
    told: dict[str, ExternalCondition] = {}
    for kind, verdict in _verdicts(status):
        before = status.external.get(kind)
        of = status.generation
        if isinstance(verdict, Verdict) and (kind, verdict.reason) == ("Ready", Reason.ROLLED_BACK):
            of = max(0, of - 1)
        if isinstance(verdict, ExternalCondition):
            told[kind] = verdict
        elif verdict is None:
            if before is not None:
                told[kind] = before
        elif before is None or before.truth is not verdict.truth:
            told[kind] = ExternalCondition(verdict.truth, verdict.reason, verdict.message, now, of)
        elif (before.reason, before.message, before.generation) == (verdict.reason, verdict.message, of):
            told[kind] = before  # the same object, so that the statuses of a package share it in memory
        else:
            told[kind] = ExternalCondition(verdict.truth, verdict.reason, verdict.message, before.since, of)
    return status.external if told == status.external else told


def without_silent(status: PackageStatus) -> Mapping[str, ExternalCondition]:
    """Return the reported conditions, without those for which there is nothing to report now: their mappers (see the docstring
    of this module) return nothing for this status.
    """
    return {
        kind: told
        for kind, told in status.external.items()
        if kind not in MAPPERS or MAPPERS[kind](replace(status, external={})) is not None
    }


def _verdicts(status: PackageStatus) -> Iterator[tuple[str, Verdict | ExternalCondition | None]]:
    if status.removal is not None:
        yield from _kstatus(status, status.removal)
        for kind in MAPPERS:
            before = status.external.get(kind)
            yield kind, None if before is None else Verdict(Truth.FALSE, Reason.REMOVING, before.message)
    elif status.suspended and status.blocked is None:
        if status.held is not None:
            yield from _kstatus(status, status.held)
        else:
            yield "Ready", status.ready_kept
            yield "Reconciling", Verdict(Truth.FALSE, Reason.SUSPENDED)
            yield "Stalled", Verdict(Truth.FALSE, Reason.NOT_STALLED)
        for kind in MAPPERS:
            yield kind, _installed_anew(status) if kind == "Installed" else None
    else:
        yield from _kstatus(status, status.held or status.blocked or open_condition(status))
        for kind, mapper in MAPPERS.items():
            yield kind, mapper(status)


def _kstatus(status: PackageStatus, problem: Condition | None) -> Iterator[tuple[str, Verdict]]:
    """Yield the reports for Ready, Reconciling and Stalled. These conditions are about the wanted state, so they agree with
    the summary.
    """
    message = summarize(status).message
    if problem is None and status.is_back:
        # The objects are ready, but the resource asks for another state, so Ready is not reported for this generation.
        yield "Ready", Verdict(Truth.TRUE, Reason.ROLLED_BACK, message)
        yield "Reconciling", Verdict(Truth.FALSE, Reason.STALLED)
        yield "Stalled", Verdict(Truth.TRUE, Reason.ROLLED_BACK, message)
        return
    work = status.rollout if problem is None else problem
    if work is not None and (problem is None or status.stays_ready(problem)):
        yield "Ready", Verdict(Truth.TRUE, Reason.READY, ready_message(status))
        yield "Reconciling", Verdict(Truth.TRUE, work.reason, work.message)
        yield "Stalled", Verdict(Truth.FALSE, Reason.NOT_STALLED)
        return
    if problem is None:
        yield "Ready", Verdict(Truth.TRUE, Reason.READY, message)
        yield "Reconciling", Verdict(Truth.FALSE, Reason.IDLE)
        yield "Stalled", Verdict(Truth.FALSE, Reason.NOT_STALLED)
        return
    at_rest = problem.reason in OFF and not status.version
    yield "Ready", Verdict(Truth.FALSE, problem.reason, message)
    if problem.permanent or at_rest:
        yield "Reconciling", Verdict(Truth.FALSE, Reason.STALLED if problem.permanent else Reason.IDLE)
    else:
        yield "Reconciling", Verdict(Truth.TRUE, problem.reason, message)
    if problem.permanent:
        yield "Stalled", Verdict(Truth.TRUE, problem.reason, message)
    else:
        yield "Stalled", Verdict(Truth.FALSE, Reason.NOT_STALLED)


def _installed(status: PackageStatus) -> Verdict:
    if status.installed_since is not None:
        return Verdict(Truth.TRUE, "Installed")
    problem = status.blocked or _blocker(status, _PIPELINE)
    return _failure(problem) if problem is not None else Verdict(Truth.FALSE, Reason.PENDING)


def _installed_anew(status: PackageStatus) -> Verdict | None:
    """Return the report for the condition ``Installed``; None if the condition already has this truth value."""
    verdict, before = _installed(status), status.external.get("Installed")
    return verdict if before is None or before.truth is not verdict.truth else None


def _update_installed(status: PackageStatus) -> Verdict | None:
    if status.rollback is not None and status.is_back:
        return Verdict(Truth.FALSE, Reason.ROLLED_BACK, status.rollback.line)
    if status.phase is Phase.INSTALL or is_gated(status):
        return None
    problem = status.blocked or _blocker(status, _UPDATE)
    if problem is not None:
        return _failure(problem)
    applied, before = status.stages[Stage.APPLIED], status.external.get("UpdateInstalled")
    if applied.truth is Truth.TRUE:
        return Verdict(Truth.TRUE, "UpdateInstalled")
    if applied.reason == Reason.APPLYING_MANIFESTS and not (before is not None and before.truth is Truth.TRUE):
        return Verdict(Truth.FALSE, Reason.APPLYING_MANIFESTS)
    return None


def _scaled(status: PackageStatus) -> Verdict | None:
    scaled = status.stages[Stage.SCALED]
    match status.phase:
        case Phase.INSTALL if scaled.truth is not Truth.TRUE and "Scaled" not in status.external:
            return None
        case Phase.UPDATE | Phase.RECONCILE if is_gated(status):
            return _paused(status)
        case Phase.UPDATE if (problem := _blocker(status, _LATE)) is not None:
            applied = problem is status.stages[Stage.APPLIED]
            return _failure(problem) if applied else _unknown(problem)
        case Phase.RECONCILE if (problem := _blocker(status, (Stage.FETCHED,))) is not None:
            return _unknown(problem)
        case _ if scaled.truth is Truth.TRUE:
            return Verdict(Truth.TRUE, "Scaled")
        case _ if scaled.reason == Reason.PENDING:
            return None  # this process has not checked the objects yet
        case _:
            return Verdict(scaled.truth, scaled.reason, scaled.message)


def _managed(status: PackageStatus) -> Verdict | None:
    if status.phase is not Phase.INSTALL and is_gated(status):
        return _paused(status)
    if status.maintenance is not None:
        return Verdict(Truth.FALSE, status.maintenance.reason, status.maintenance.message)
    problem = _blocker(status, _RECONCILIATION if status.phase is Phase.RECONCILE else _LATE)
    if problem is not None:
        # Hooks that were never started have not managed anything so far.
        initial = status.phase is Phase.INSTALL and problem.reason == Reason.HOOK_INVALID
        return None if initial else _failure(problem)
    needed = (Stage.LOADED, Stage.HOOKS, Stage.APPLIED, Stage.SCALED)
    return Verdict(Truth.TRUE, "Managed") if status.scale_checked and _done(status, needed) else None


def _configuration_applied(status: PackageStatus) -> Verdict | None:
    if status.phase is not Phase.INSTALL and is_gated(status):
        return _paused(status)
    if status.phase is Phase.RECONCILE and (problem := _blocker(status, (Stage.FETCHED,))) is not None:
        return _unknown(problem)
    problem = _blocker(status, _LATE) if status.phase is Phase.UPDATE else _refused_settings(status)
    if problem is not None:
        return _failure(problem)
    done = _done(status, (Stage.CONFIGURED, Stage.HOOKS, Stage.APPLIED))
    return Verdict(Truth.TRUE, "ConfigurationApplied") if done else None


MAPPERS: Final[Mapping[str, Mapper]] = {
    "Installed": _installed,
    "UpdateInstalled": _update_installed,
    "Scaled": _scaled,
    "Managed": _managed,
    "ConfigurationApplied": _configuration_applied,
}
"""For each condition about the installed version, the function that computes it. The order is the order in which the
conditions are written.
"""

KINDS: Final = ("Ready", "Reconciling", "Stalled", *MAPPERS)
"""The types of all conditions that are written into a package's resource."""


def _blocker(status: PackageStatus, chain: tuple[Stage, ...]) -> Condition | None:
    """Return the condition of the first stage of a chain that has failed; None if none has failed. A stage that is at work or
    waits has not failed.
    """
    return next((status.stages[stage] for stage in chain if status.stages[stage].truth is Truth.FALSE), None)


def _refused_settings(status: PackageStatus) -> Condition | None:
    return status.blocked or _blocker(status, _CONFIGURATION)


def _done(status: PackageStatus, stages: tuple[Stage, ...]) -> bool:
    return all(status.stages[stage].truth is Truth.TRUE for stage in stages)


def _failure(problem: Condition) -> Verdict:
    return Verdict(Truth.FALSE, problem.reason, problem.message or explanation(problem.reason))


def _unknown(problem: Condition) -> Verdict:
    return Verdict(Truth.UNKNOWN, problem.reason, problem.message or explanation(problem.reason))


def _paused(status: PackageStatus) -> Verdict:
    return _unknown(status.stages[Stage.REQUIREMENTS])
