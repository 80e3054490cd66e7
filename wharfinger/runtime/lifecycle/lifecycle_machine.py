"""The lifecycle of one package as a pure state machine: it decides which operation may begin, and which other operations are
cancelled when it begins (spec/runtime §2.2).

Theory of operation. A known package has a *desired state* and at most one operation of each kind:

==============  ======================================================================================================
Update          downloads a version and loads it
Reconciliation  configures and runs the loaded version
Disable         disables a package that is unwanted or lacks a requirement; a Reconciliation undoes this
Vote            runs the enabled script again
Suspend         stops the hooks of a suspended package
Removal         deletes everything, and takes precedence over all other operations
==============  ======================================================================================================

Each operation that begins gets a new number, its *scope*. Through this number, everything that runs for the operation can be
cancelled, with a cause that is shown to users. When an operation begins:

===================  =================================  ===============================================  ==============
begun                cancels                            does not cancel                                  refused while
===================  =================================  ===============================================  ==============
Update               Update, Reconciliation, Vote       Disable: an unwanted package is disabled,        removing,
                                                        whatever version comes next                      suspended
Reconciliation       Reconciliation, Disable            Update, Vote                                     removing,
                                                                                                         suspended
Disable              Update [1], Reconciliation,        Vote: its result may end the Disable             removing,
                     Disable                                                                             suspended
Vote                 Vote                               all others                                       removing,
                                                                                                         suspended
Suspend              all                                                                                 removing, not
                                                                                                         suspended
Removal              all                                                                                 removing
===================  =================================  ===============================================  ==============

Any operation that begins after the package was resumed cancels a Suspend that still runs. Every event for an unknown package
is refused, except Desired and Tracked, which make the package known.
[1] An unwanted package must not stay in the cluster only because a version cannot be downloaded; UpdateCutShort means that the
update has to begin again after the Disable.

Whether a package is suspended is part of its desired state. The answer to a `Desired` that suspends the package is SUSPEND, and
a Suspend that begins cancels all running operations. A suspension never prevents a removal: a suspended package that is no
longer wanted is removed.

**Removal and creation under the same name.** RemovalCompleted forgets a package only if it is being removed. So a late
RemovalCompleted does not affect a package that was created again after its removal. A desired state that arrives while a
package is being removed is neither adopted nor lost: the answer is REMOVING, and the caller submits the state again after the
removal. (The program that spec/runtime describes loses the state together with the package's entry: §13 item 19.) After the
final task of a removal has succeeded, the package is *leaving*: its removal cannot be started again, so no task of the removal
runs at the same time as a new package of the same name.

Invariants: there is at most one live scope of each kind of operation. While a package is being removed, only the removal has
a live scope. Once a Suspend has begun, only the Suspend and a removal may have live scopes until the package is resumed. No
scope is cancelled or ended twice, and a forgotten package has no live scope.

The state machine uses neither trio nor a clock, and does not know the package's name. A refused event changes nothing, and the
effect has the reason.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias, assert_never

from wharfinger.runtime.lifecycle.desired_state import Decision, DecisionKind, DesiredState, decide


class Operation(Enum):
    """The operations of a package; each value is the name that users see."""

    UPDATE = "update"
    RECONCILIATION = "reconciliation"
    DISABLE = "disabling"
    VOTE = "vote"
    SUSPEND = "suspension"
    REMOVAL = "removal"


class Refusal(Enum):
    """The reason why an event changed nothing."""

    UNKNOWN = "unknown"
    REMOVING = "removing"
    SUSPENDED = "suspended"
    NOT_SUSPENDED = "not suspended"
    NOT_REMOVING = "not removing"
    LEAVING = "leaving"


NOTHING: Final = DesiredState("", "", "", "")
"""The desired state of a package that is known only because it must be removed."""


@dataclass(frozen=True, slots=True)
class Package:
    """A known package: its desired state, and the scope of each operation (None: the operation does not run)."""

    desired: DesiredState
    update: int | None = None
    reconciliation: int | None = None
    disabling: int | None = None
    vote: int | None = None
    suspension: int | None = None
    removal: int | None = None
    applying: bool = False
    """True from the beginning of a reconciliation until its task named ``Run`` is complete, or another operation replaces the
    reconciliation.
    """
    leaving: bool = False
    """True if the removal's tasks are done, so that the package only has to be forgotten."""

    @property
    def scopes(self) -> tuple[int, ...]:
        """The live scopes."""
        scopes = (self.update, self.reconciliation, self.disabling, self.vote, self.suspension, self.removal)
        return tuple(scope for scope in scopes if scope is not None)


# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Desired:
    """A package has a new desired state."""

    state: DesiredState


@dataclass(frozen=True, slots=True)
class Tracked:
    """The package must be removed, although this process has no desired state of it."""


@dataclass(frozen=True, slots=True)
class Begin:
    """An operation other than a reconciliation is to begin; ``scope`` is a new number for its scope."""

    operation: Operation
    scope: int


@dataclass(frozen=True, slots=True)
class BeginReconciliation:
    """A reconciliation is to begin. If an earlier reconciliation is under way, it is cancelled with ``reason``, which must not
    be empty.
    """

    scope: int
    reason: str


@dataclass(frozen=True, slots=True)
class RestartRemoval:
    """The removal is to begin again from its first task."""

    scope: int


@dataclass(frozen=True, slots=True)
class RemovalFinished:
    """The last task of the removal succeeded. Next, the package's queue is deleted, and then RemovalCompleted follows."""


@dataclass(frozen=True, slots=True)
class UpdateCompleted:
    """The wanted version of the package is loaded, so its update is complete."""


@dataclass(frozen=True, slots=True)
class RunCompleted:
    """The version is applied; the reconciliation continues, and waits for the version to be ready."""


@dataclass(frozen=True, slots=True)
class RemovalCompleted:
    """The removal is complete: nothing of the package is left in the cluster."""


Event: TypeAlias = (
    Desired
    | Tracked
    | Begin
    | BeginReconciliation
    | RestartRemoval
    | RemovalFinished
    | UpdateCompleted
    | RunCompleted
    | RemovalCompleted
)


# --- effects ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to the event `Desired`: the work that the new desired state requires."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Refused:
    """The event changed nothing."""

    why: Refusal


@dataclass(frozen=True, slots=True)
class BeginScope:
    """The operation has begun; its tasks run in this scope."""

    scope: int
    operation: Operation


@dataclass(frozen=True, slots=True)
class CancelScope:
    """Cancel everything that runs or waits in this scope."""

    scope: int
    cause: str


@dataclass(frozen=True, slots=True)
class EndScope:
    """Forget this scope without cancelling it, because its operation is complete."""

    scope: int


@dataclass(frozen=True, slots=True)
class UpdateCutShort:
    """A Disable has interrupted the update. The update is to begin again after the Disable."""


Effect: TypeAlias = Decided | Refused | BeginScope | CancelScope | EndScope | UpdateCutShort


# --- the machine -----------------------------------------------------------------------------------------------------------


Next: TypeAlias = tuple[Package | None, tuple[Effect, ...]]


def step(package: Package | None, event: Event) -> Next:
    """Return the package after ``event``, and the effects in the order in which they are to be carried out. None stands for a
    package that the lifecycle store does not know.
    """
    match event:
        case Desired(state):
            return _desired(package, state)
        case Tracked():
            return package or Package(NOTHING), ()
        case _ if package is None:
            return None, (Refused(Refusal.UNKNOWN),)
        case Begin(operation, scope):
            return _begin(package, operation, scope)
        case BeginReconciliation(scope, reason):
            return _begin_reconciliation(package, scope, reason)
        case RestartRemoval(scope):
            return _restart_removal(package, scope)
        case UpdateCompleted() | RunCompleted() | RemovalFinished() | RemovalCompleted():
            return _completed(package, event)
        case _:
            assert_never(event)


def _desired(package: Package | None, state: DesiredState) -> Next:
    if package is None:
        return Package(state), (Decided(decide(None, state)),)
    if package.removal is not None:
        return package, (Decided(Decision(DecisionKind.REMOVING)),)
    return replace(package, desired=state), (Decided(decide(package.desired, state)),)


def _begin(package: Package, operation: Operation, scope: int) -> Next:
    if why := _refusal(package, operation):
        return package, (Refused(why),)
    package, resumed = _resume(package, operation)
    begun = BeginScope(scope, operation)
    match operation:
        case Operation.UPDATE:
            cancelled = (
                *_cancel("update started", package.reconciliation, package.vote),
                *_cancel("update superseded", package.update),
            )
            after = Package(package.desired, update=scope, disabling=package.disabling)
            return after, (*resumed, *cancelled, begun)
        case Operation.DISABLE:
            cancelled = _cancel("disabled", package.update, package.reconciliation, package.disabling)
            cut_short = (UpdateCutShort(),) if package.update is not None else ()
            after = replace(package, update=None, reconciliation=None, applying=False, disabling=scope)
            return after, (*resumed, *cancelled, begun, *cut_short)
        case Operation.VOTE:
            return replace(package, vote=scope), (*resumed, *_cancel("asked again", package.vote), begun)
        case Operation.SUSPEND:
            return Package(package.desired, suspension=scope), (*_cancel("suspended", *package.scopes), begun)
        case Operation.REMOVAL:
            return Package(package.desired, removal=scope), (*_cancel("removal started", *package.scopes), begun)
        case Operation.RECONCILIATION:
            raise ValueError("a reconciliation needs a reason: expected the event BeginReconciliation, found Begin")
        case _:
            assert_never(operation)


def _begin_reconciliation(package: Package, scope: int, reason: str) -> Next:
    if not reason:
        raise ValueError("expected a reason for the reconciliation, found none")
    if why := _refusal(package, Operation.RECONCILIATION):
        return package, (Refused(why),)
    package, resumed = _resume(package, Operation.RECONCILIATION)
    cancelled = _cancel(reason, package.reconciliation, package.disabling)
    after = replace(package, reconciliation=scope, disabling=None, applying=True)
    return after, (*resumed, *cancelled, BeginScope(scope, Operation.RECONCILIATION))


def _completed(package: Package, event: UpdateCompleted | RunCompleted | RemovalFinished | RemovalCompleted) -> Next:
    match event:
        case UpdateCompleted():
            if package.update is None:
                return package, ()
            return replace(package, update=None), (EndScope(package.update),)
        case RunCompleted():
            return replace(package, applying=False), ()
        case RemovalFinished() | RemovalCompleted():
            if package.removal is None:
                return package, (Refused(Refusal.NOT_REMOVING),)
            if isinstance(event, RemovalFinished):
                return replace(package, leaving=True), ()
            return None, (CancelScope(package.removal, "removal complete"),)
        case _:
            assert_never(event)


def _restart_removal(package: Package, scope: int) -> Next:
    if package.removal is None or package.leaving:
        return package, (Refused(Refusal.LEAVING if package.leaving else Refusal.NOT_REMOVING),)
    cancelled = CancelScope(package.removal, "removal started again")
    return replace(package, removal=scope), (cancelled, BeginScope(scope, Operation.REMOVAL))


def _refusal(package: Package, operation: Operation) -> Refusal | None:
    if package.removal is not None:
        return Refusal.REMOVING
    if operation is Operation.SUSPEND:
        return None if package.desired.suspended else Refusal.NOT_SUSPENDED
    if operation is not Operation.REMOVAL and package.desired.suspended:
        return Refusal.SUSPENDED
    return None


def _resume(package: Package, operation: Operation) -> tuple[Package, tuple[CancelScope, ...]]:
    """End the suspension of a package, and return the effect that cancels a running Suspend; no effect if ``operation`` is
    Suspend or Removal, because these cancel the Suspend with another cause.
    """
    if operation is Operation.SUSPEND or operation is Operation.REMOVAL:
        return package, ()
    return replace(package, suspension=None), _cancel("resumed", package.suspension)


def _cancel(cause: str, *scopes: int | None) -> tuple[CancelScope, ...]:
    return tuple(CancelScope(scope, cause) for scope in scopes if scope is not None)
