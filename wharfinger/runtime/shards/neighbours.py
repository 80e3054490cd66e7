"""Neighbours, the packages of other shards, in this shard's scheduler: nodes without requirements, which other daemons run.

Packages may need Modules, which the main daemon manages, and Applications of other shards. The statuses of these packages contain
everything that the scheduler needs: the version, whether the package is on, and whether it is ready. A neighbour counts as on
from the time when any part of it is installed, until it is disabled or removed. Its run is complete when the package is Ready.
Everything else, such as whether its own requirements are met, is decided by the shard that manages it.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.packages.definition.requirements import Requirements
from wharfinger.runtime.core.packages import Packages
from wharfinger.runtime.scheduler.events import Completed, IntentSet, NodeAdded, NodeRemoved, Schedule
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.pending_decisions import PackageOrders
from wharfinger.runtime.status.summary import State

_OFF: Final = frozenset({State.DISABLED, State.DISABLING, State.REMOVING})


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The state of a package that another shard manages, according to its status."""

    version: str
    on: bool
    ready: bool


def read_neighbour(obj: JsonObject) -> Neighbour | None:
    """Return the state of a package according to its resource's status; None if no part of the package is installed."""
    version = find_str(obj, "status", "currentVersion", "version")
    if not version:
        return None
    conditions = find(obj, "status", "conditions")
    ready = isinstance(conditions, list) and any(
        find_str(each, "type") == "Ready" and find_str(each, "status") == "True"
        for each in find_list(obj, "status", "conditions")
    )
    return Neighbour(version, find_str(obj, "status", "summary", "state") not in _OFF, ready)


class Neighbours:
    """The neighbours of one runtime: the packages that other shards manage. The caller passes each change of a neighbour's
    resource to `seen`.
    """

    def __init__(self, packages: Packages) -> None:
        """Register to receive the scheduler's effects for neighbours, which this runtime does not run itself."""
        self._packages = packages
        self._known: dict[str, Neighbour] = {}
        self._runs: dict[str, int] = {}
        """For each package of another shard whose run the scheduler has requested and waits for, the number of this run."""
        packages.elsewhere = self._ordered
        packages.modules.elsewhere.append(self.modules)

    def modules(self) -> tuple[str, ...]:
        """Return the names of the Modules that other shards manage and that are on, sorted."""
        return tuple(sorted(name for name, each in self._known.items() if "." not in name and each.on))

    def seen(self, name: str, obj: JsonObject | None) -> None:
        """Pass the state of a package that another shard manages to the scheduler. ``obj`` is the package's resource; None if
        the resource is gone.
        """
        before, after = self._known.get(name), None if obj is None else read_neighbour(obj)
        if after is None:
            self.forget(name)
            if before is not None:
                self._packages.send(NodeRemoved(name))
            return
        self._known[name] = after
        if before is None or (before.version, before.on) != (after.version, after.on):
            self._packages.note(IntentSet(name, None if after.on else False))
            floor = Verdict.ENABLE if after.on else Verdict.DISABLE
            self._packages.send(NodeAdded(Node(name, after.version, Requirements(), floor=floor)))
        self._complete(name)
        self._packages.settle()

    def forget(self, name: str) -> None:
        """Forget a package as a neighbor, because this shard manages it from now on. Its node in the scheduler is replaced once
        this daemon has loaded the package.
        """
        self._runs.pop(name, None)
        if self._known.pop(name, None) is not None:
            self._packages.send(IntentSet(name, None))

    def _ordered(self, orders: PackageOrders) -> None:
        if isinstance(orders.order, Schedule) and orders.name in self._known:
            self._runs[orders.name] = orders.order.run
            self._complete(orders.name)

    def _complete(self, name: str) -> None:
        """If the neighbor package is ready, report to the scheduler that the package's run, for which the scheduler waits, is
        complete.
        """
        if name in self._runs and self._known[name].ready:
            self._packages.note(Completed(name, self._runs.pop(name)))
