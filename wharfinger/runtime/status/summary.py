"""One word, one line, one thing to do: ``status.summary {state, message, tip}``, of which each package has exactly one.

What a failure is called depends on how far it got, and on what was there before (spec/runtime §6.1):

==================================  =============  =====================================  ==================
what is first not as it should be   never whole    another version is wanted              the version is that
==================================  =============  =====================================  ==================
a stage is at work, or waits        Pending        Updating                               Updating
what was applied is not ready yet   Pending        Updating                               Updating
what it requires is not there       Pending        Suspended                              Suspended
it is ready, and is rolled out anew Ready          Ready                                  Ready
it is, and a restart finds a rollout                                                      Ready
whether it may be on is not known   Failed         Degraded                               Degraded
it is not wanted, something is left Disabling      Disabling                              Disabling
it is not wanted, nothing is left   Disabled       Disabled                               Disabled
a stage before Hooks failed         Failed         Updating; Degraded if it is parked     Degraded
a stage from CRDs on failed         Failed         Failed: what was there is half changed Degraded
the resource itself is wrong        Failed         Degraded                               Degraded
what is wanted would break others   Degraded       Degraded                               Degraded
==================================  =============  =====================================  ==================

Over these stand, from the top: Removing, also where that is held; the resource itself is wrong, or would break others;
Suspended by hand.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from wharfinger.runtime.status.package_status import Condition, PackageStatus, Phase, Stage, Truth, first_open
from wharfinger.runtime.status.reasons import HELD, OFF, Reason, advice, explanation


class State(StrEnum):
    """What a package is, in one word."""

    PENDING = "Pending"
    UPDATING = "Updating"
    READY = "Ready"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    DISABLING = "Disabling"
    DISABLED = "Disabled"
    REMOVING = "Removing"


LATE: Final = frozenset({Stage.CRDS, Stage.WEBHOOKS, Stage.HOOKS, Stage.APPLIED, Stage.SCALED})
"""Once one of these has begun, what was there before may be half changed."""


class Summary(NamedTuple):
    """What people read. The texts may name objects, never secrets: whoever reported them has masked them."""

    state: str
    message: str
    tip: str


def summarize(status: PackageStatus) -> Summary:
    """The summary of a package."""
    if (removal := status.removal or status.held) is not None:
        return _says(State.REMOVING, removal)
    if status.blocked is not None:
        failed = status.phase is Phase.INSTALL and status.blocked.reason not in HELD
        said = _says(State.FAILED if failed else State.DEGRADED, status.blocked)
        return said._replace(message=f"{said.message}; it is suspended") if status.suspended else said
    if status.suspended:
        return Summary(State.SUSPENDED, explanation(Reason.SUSPENDED), advice(Reason.SUSPENDED))
    found = first_open(status)
    if found is None:
        return _ready(status, status.rollout)
    stage, problem = found
    if problem.reason == Reason.NOT_READY and status.stays_ready(problem):
        return _ready(status, problem)
    if problem.truth is not Truth.FALSE:
        return Summary(_under_way(status), problem.message, "")
    return _says(_state(status, stage, problem), problem)


def _state(status: PackageStatus, stage: Stage, problem: Condition) -> State:
    if problem.reason in OFF:
        return State.DISABLING if status.version else State.DISABLED
    if stage is Stage.REQUIREMENTS and problem.permanent:  # nothing that is watched mends it
        return State.FAILED if status.phase is Phase.INSTALL else State.DEGRADED
    if stage is Stage.REQUIREMENTS:
        return State.PENDING if status.phase is Phase.INSTALL else State.SUSPENDED
    if problem.reason == Reason.NOT_READY:
        return _under_way(status)
    match status.phase:
        case Phase.INSTALL:
            return State.FAILED
        case Phase.UPDATE if stage in LATE:
            return State.FAILED
        case Phase.UPDATE if not problem.permanent:
            return State.UPDATING
        case _:
            return State.DEGRADED


def _under_way(status: PackageStatus) -> State:
    return State.PENDING if status.phase is Phase.INSTALL else State.UPDATING


def ready_message(status: PackageStatus) -> str:
    """What a package says that is Ready, whatever else there is to say of it."""
    return f"version {status.version} is installed and ready"


def _ready(status: PackageStatus, work: Condition | None) -> Summary:
    message = ready_message(status)
    if work is not None:
        message += f"; {work.message}"
    if status.maintenance is None:
        return Summary(State.READY, message, "")
    return Summary(State.READY, f"{message}; {status.maintenance.message}", advice(status.maintenance.reason))


def _says(state: State, problem: Condition) -> Summary:
    message = problem.message or explanation(problem.reason)
    return Summary(state, message, advice(problem.reason, permanent=problem.permanent))
