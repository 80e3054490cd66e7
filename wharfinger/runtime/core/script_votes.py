"""The votes of enabled scripts, and the scripts that run again when other packages change. An *enabled script* is a program of
a package that votes about whether the package is on.

The vote of a script that ran before all installed packages were loaded is provisional; the script runs again once they are
loaded. A script of a module folder receives the names of the preceding Modules that are on, and runs again when this list has
changed. The list is compared only when no effect and no order of the scheduler is waiting any more, because several orders in a
row may switch many Modules.
"""

from collections.abc import Callable, Mapping

from wharfinger.packages.definition.definition import Layout
from wharfinger.runtime.core.decision_reporting import UnreportedDecisions
from wharfinger.runtime.core.modules import Modules
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.effects import CastVote
from wharfinger.runtime.package.events import Event, OthersTurned, VoteRecorded
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.scheduler.events import ScriptVoted


class ScriptVotes:
    """A record of the packages whose enabled scripts may have to run again, because their votes may be out of date. ``take``
    passes an event to a package.
    """

    def __init__(
        self,
        instances: Mapping[str, Instance],
        lifecycle: LifecycleStore,
        unreported: UnreportedDecisions,
        modules: Modules,
        take: Callable[[Instance, Event], None],
    ) -> None:
        self._instances = instances
        self._lifecycle = lifecycle
        self._unreported = unreported
        self._modules = modules
        self._take = take
        self._provisional: set[str] = set()
        """The packages whose enabled script voted before all installed packages were loaded."""
        self._seeing: set[str] = set()
        """The packages from module folders whose enabled script receives the names of the Modules that are on."""
        self._turned = False
        """True if a decision has changed since the packages in ``_seeing`` were last checked."""

    def record(self, instance: Instance, vote: CastVote) -> None:
        """Pass the vote of an enabled script to the script's package. The vote is provisional if some installed packages were
        not loaded when the script ran.
        """
        name = instance.id.name
        early = vote.may_be_early and self._misses_others(name)
        (self._provisional.add if early else self._provisional.discard)(name)
        self._take(instance, VoteRecorded(ScriptVoted(name, vote.enabled, vote.reason, vote.error, provisional=early)))

    def decision_changed(self) -> None:
        """Record that the set of Modules that are on may have changed."""
        self._turned = True

    def node_removed(self, name: str) -> None:
        """Record that a package is no longer a node; the set of Modules that are on may have changed."""
        self._turned = True
        self._seeing.discard(name)

    def forget(self, name: str) -> None:
        """Forget a package that is gone."""
        self._provisional.discard(name)
        self._seeing.discard(name)

    def rerun_provisional(self) -> None:
        """Run again the scripts that voted before all installed packages were loaded."""
        for name in sorted(self._provisional):
            instance = self._instances.get(name)
            if instance is not None and instance.files.definition is not None and not self._misses_others(name):
                self._take(instance, OthersTurned(self._modules.before(instance), forced=True))

    def rerun_if_modules_changed(self) -> None:
        """Run a script of a module folder again if the list of preceding Modules that are on has changed since its last run."""
        if not self._turned:
            return
        self._turned = False
        for name in sorted(self._seeing):
            if (instance := self._instances.get(name)) is not None:
                self.rerun_one_if_modules_changed(instance)

    def rerun_one_if_modules_changed(self, instance: Instance) -> None:
        """Run the script of a package again if the script gets the list of preceding Modules that are on, and this list has
        changed since the script's last run. Record whether the script gets the list.
        """
        name, definition = instance.id.name, instance.files.definition
        if definition is None or not definition.enabled_script or definition.layout is not Layout.MODULE_FOLDER:
            self._seeing.discard(name)
            return
        self._seeing.add(name)
        # If the package is being loaded, Load runs the script, and this check is repeated at the end of Load.
        if not self._lifecycle.is_loading(name):
            self._take(instance, OthersTurned(self._modules.before(instance), forced=False))

    def _misses_others(self, name: str) -> bool:
        """Return whether any package besides ``name`` is installed but not loaded by this process. A package that failed to
        load counts, too.
        """
        return self._unreported.others_unknown(name) or any(
            instance.status.installed_since is not None
            and instance.files.definition is None
            and each != name
            and not self._lifecycle.is_removing(each)
            for each, instance in self._instances.items()
        )
