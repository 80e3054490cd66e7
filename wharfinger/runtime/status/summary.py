"""The summary of a package, ``status.summary {state, message, tip}``: its state in one word, the reason in one line, and the
action that a user can take.

The state depends on the first stage that is not done, and on whether the package is installed, and in which version
(spec/runtime §6.1):

=========================================  =================  ===================================  ===========================
situation                                  not installed yet  another version is wanted            wanted version is installed
=========================================  =================  ===================================  ===========================
a stage is in progress, or waits           Pending            Updating                             Updating
applied objects are not ready yet          Pending            Updating                             Updating
a requirement is not met                   Pending            Suspended                            Suspended
ready, and objects are being rolled out                       Ready                                Ready
Ready before a restart, now rolling out                                                            Ready
ready, in a former revision                                   RolledBack                           RolledBack
the enabled script failed                  Failed             Degraded                             Degraded
not wanted, and a version is applied       Disabling          Disabling                            Disabling
not wanted, and no version is applied      Disabled           Disabled                             Disabled
a stage before CRDS failed                 Failed             Updating; Degraded if it is parked   Degraded
the stage CRDS, or a later one, failed     Failed             Failed: objects may be half changed  Degraded
the resource itself is wrong               Failed             Degraded                             Degraded
the change would break dependents          Degraded           Degraded                             Degraded
=========================================  =================  ===================================  ===========================

The rows are about the package, the columns about its versions. A package counts as installed from the time when all of its
stages are done for the first time until it is uninstalled. Three
cases take precedence over the other rows, in this order: the package is being removed, or its removal is held back (Removing);
the resource is wrong, or its change would break dependents (the last two rows); a user has suspended the package (Suspended).
"""

from enum import StrEnum
from typing import Final, NamedTuple

from wharfinger.runtime.status.package_status import Condition, PackageStatus, Phase, Stage, Truth, first_open
from wharfinger.runtime.status.reasons import HELD, OFF, Reason, advice, explanation
from wharfinger.runtime.versions.rollback_note import REQUESTED, RollbackNote


class State(StrEnum):
    """The state of a package in one word."""

    PENDING = "Pending"
    UPDATING = "Updating"
    READY = "Ready"
    ROLLED_BACK = "RolledBack"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    DISABLING = "Disabling"
    DISABLED = "Disabled"
    REMOVING = "Removing"


LATE: Final = frozenset({Stage.CRDS, Stage.WEBHOOKS, Stage.HOOKS, Stage.APPLIED, Stage.SCALED})
"""The stages that change the cluster. Once such a stage has begun, some objects may be of the new version, and others of the
previous version.
"""


class Summary(NamedTuple):
    """The part of the status for people. The texts may name objects, but contain no secrets, because secrets are masked before
    a text is reported to the status.
    """

    state: str
    message: str
    tip: str


def summarize(status: PackageStatus) -> Summary:
    """Return the summary of a package."""
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
        return Summary(_under_way(status), _of_rollback(status, problem.message), "")
    said = _says(_state(status, stage, problem), problem)
    return said._replace(message=_of_rollback(status, said.message))


def _of_rollback(status: PackageStatus, message: str) -> str:
    """Return the message. If there is a note about a rollback, add to which revision the package returns, or why it cannot."""
    note = status.rollback
    if note is None:
        return message
    if not note.is_back:
        return f"{message}; the package cannot return to a former revision: {note.message}"
    return f"returning to revision {note.revision} ({note.version}), because {_cause(note)}: {message}"


def _cause(note: RollbackNote) -> str:
    return "a rollback was requested" if note.reason == REQUESTED else f"{note.wanted} failed ({note.message})"


def _state(status: PackageStatus, stage: Stage, problem: Condition) -> State:
    if problem.reason in OFF:
        return State.DISABLING if status.version else State.DISABLED
    if stage is Stage.REQUIREMENTS and problem.permanent:  # the cause is not watched
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
    """Return the basic message of a package that is Ready. Callers may add other sentences to it."""
    return f"version {status.version} is installed and ready"


def _ready(status: PackageStatus, work: Condition | None) -> Summary:
    message = ready_message(status)
    if status.rollback is not None and status.is_back:
        return Summary(State.ROLLED_BACK, f"{message} again: {status.rollback.line}", advice(Reason.ROLLED_BACK))
    if work is not None:
        message += f"; {work.message}"
    if status.maintenance is None:
        return Summary(State.READY, message, "")
    return Summary(State.READY, f"{message}; {status.maintenance.message}", advice(status.maintenance.reason))


def _says(state: State, problem: Condition) -> Summary:
    message = problem.message or explanation(problem.reason)
    return Summary(state, message, advice(problem.reason, permanent=problem.permanent))
