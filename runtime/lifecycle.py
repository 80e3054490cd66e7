"""The lifecycle store: per package what is wanted, and which operation may run (spec/runtime §2.2, operations model).

Theory of operation. A package has a *desired state* and at most one operation of each kind:

* **Update** brings a version here and loads it,
* **Reconciliation** configures and runs what is loaded,
* **Disable** puts a package to rest that is not wanted, or lacks something, and is undone by a Reconciliation,
* **Removal** takes everything away, and outranks all.

Each operation is a :class:`WorkScope`; beginning one cancels what it supersedes, with a cause that dumps can show. The store
decides and hands out scopes; it enqueues nothing and awaits nothing, so a decision and the scope that goes with it can never
be pulled apart.

==================  ===============================================================================================
begin_update        refused while removing; cancels Reconciliation and an earlier Update
begin_reconciliation refused while removing or untracked; cancels an earlier Reconciliation, leaves an Update alone
begin_disable       refused while removing; cancels Update, Reconciliation and an earlier Disable; an Update leaves it alone
begin_removal       DONE if untracked, IN_FLIGHT if already removing, else cancels all and marks the package
complete_removal    only after begin_removal; forgets the package
==================  ===============================================================================================

An update that arrives while the package is being removed is not swallowed: `reconcile` answers REMOVING, and the caller asks
again when the removal is done (spec §2.2 drops it silently; §13 item 19).
"""

from dataclasses import dataclass, field, replace
from enum import Enum

from wharfinger.queue.scope import WorkScope


class Decision(Enum):
    """What a changed desired state calls for."""

    NONE = "none"
    RECONFIGURE = "reconfigure"
    UPDATE = "update"
    REMOVING = "removing"


class RemovalStart(Enum):
    """What `begin_removal` found."""

    DONE = "done"
    IN_FLIGHT = "in flight"
    STARTED = "started"


@dataclass(frozen=True, slots=True)
class DesiredState:
    """What decides: a change of the settings alone is a reconfiguration, any other an update."""

    source: str
    package: str
    version: str
    settings_checksum: str
    requested: str = ""
    namespace: str = ""
    """Changed by a person who wants everything looked at again: an update, whatever the version."""


@dataclass(slots=True)
class _Package:
    desired: DesiredState
    update: WorkScope | None = None
    reconciliation: WorkScope | None = None
    removal: WorkScope | None = None
    disabling: WorkScope | None = None
    vote: WorkScope | None = None
    applying: bool = False


@dataclass(slots=True)
class LifecycleStore:
    """All packages. Synchronous and single-threaded: one call is one atomic step."""

    _packages: dict[str, _Package] = field(default_factory=dict)

    def reconcile(self, name: str, desired: DesiredState) -> Decision:
        """Adopt ``desired`` and say what it calls for; nothing is started or cancelled here."""
        package = self._packages.get(name)
        if package is None:
            self._packages[name] = _Package(desired)
            return Decision.UPDATE
        if package.removal is not None:
            return Decision.REMOVING
        before, package.desired = package.desired, desired
        if replace(before, settings_checksum=desired.settings_checksum) != desired:
            return Decision.UPDATE
        if before != desired:
            return Decision.RECONFIGURE
        return Decision.NONE

    def track(self, name: str) -> None:
        """Know a package of which nothing is known but that it must go; no change for one that is tracked."""
        self._packages.setdefault(name, _Package(DesiredState("", "", "", "")))

    def begin_update(self, name: str) -> WorkScope | None:
        """A scope for Download, Install and Load; None while removing or untracked."""
        package = self._packages.get(name)
        if package is None or package.removal is not None:
            return None
        _cancel(package.reconciliation, "update started")
        _cancel(package.update, "update superseded")
        _cancel(package.vote, "update started")
        package.reconciliation, package.vote, package.applying = None, None, False
        package.update = WorkScope(f"update of {name}")
        return package.update

    def begin_reconciliation(self, name: str, reason: str) -> WorkScope | None:
        """A scope for Configure and Run; None while removing or untracked."""
        package = self._packages.get(name)
        if package is None or package.removal is not None:
            return None
        _cancel(package.reconciliation, reason)
        _cancel(package.disabling, reason)
        package.reconciliation, package.applying = WorkScope(f"reconciliation of {name}"), True
        return package.reconciliation

    def begin_disable(self, name: str) -> tuple[WorkScope | None, bool]:
        """A scope for Disable, and whether an update was cut short for it, which is to be begun again behind it.

        No scope while removing or untracked. A version that cannot be had must not keep what is unwanted in the cluster.
        """
        package = self._packages.get(name)
        if package is None or package.removal is not None:
            return None, False
        updating = package.update is not None
        for scope in (package.update, package.reconciliation, package.disabling):
            _cancel(scope, "disabled")
        package.update, package.reconciliation, package.applying = None, None, False
        package.disabling = WorkScope(f"disabling of {name}")
        return package.disabling, updating

    def begin_vote(self, name: str) -> WorkScope | None:
        """A scope for asking the enabled script again; None while removing or untracked."""
        package = self._packages.get(name)
        if package is None or package.removal is not None:
            return None
        _cancel(package.vote, "asked again")
        package.vote = WorkScope(f"vote of {name}")
        return package.vote

    def begin_removal(self, name: str) -> tuple[RemovalStart, WorkScope | None]:
        """Mark the package as removing; the scope comes with STARTED only."""
        package = self._packages.get(name)
        if package is None:
            return RemovalStart.DONE, None
        if package.removal is not None:
            return RemovalStart.IN_FLIGHT, None
        for scope in (package.update, package.reconciliation, package.disabling, package.vote):
            _cancel(scope, "removal started")
        package.update = package.reconciliation = package.disabling = package.vote = None
        package.removal = WorkScope(f"removal of {name}")
        return RemovalStart.STARTED, package.removal

    def restart_removal(self, name: str) -> WorkScope | None:
        """A new scope for a removal that runs, whose tasks so far are interrupted; None where none runs."""
        package = self._packages.get(name)
        if package is None or package.removal is None:
            return None
        package.removal.cancel("removal started again")
        package.removal = WorkScope(f"removal of {name}")
        return package.removal

    def complete_removal(self, name: str) -> bool:
        """Forget a removed package; False (and nothing changes) unless it is being removed."""
        package = self._packages.get(name)
        if package is None or package.removal is None:
            return False
        package.removal.cancel("removal complete")
        del self._packages[name]
        return True

    def is_removing(self, name: str) -> bool:
        """A removal runs."""
        package = self._packages.get(name)
        return package is not None and package.removal is not None

    def complete_run(self, name: str) -> None:
        """The version is applied; what asks for another run from now on has not been seen by this one."""
        if package := self._packages.get(name):
            package.applying = False

    def is_applying(self, name: str) -> bool:
        """A reconciliation is on its way to Run, or in it."""
        package = self._packages.get(name)
        return package is not None and package.applying

    def complete_update(self, name: str) -> None:
        """The version is loaded; a change of settings may be acted on from now on."""
        if package := self._packages.get(name):
            package.update = None

    def is_loading(self, name: str) -> bool:
        """An update runs: its end begins a reconciliation, which reads the settings late and so needs no second one."""
        package = self._packages.get(name)
        return package is not None and package.update is not None


def _cancel(scope: WorkScope | None, cause: str) -> None:
    if scope is not None:
        scope.cancel(cause)
