"""The reporting of the scheduler's decisions in the status of packages, and the decisions that are not reported yet.

A starting process decides about a package when it is loaded, while other installed packages may not be loaded yet. A
dependent of one of those may not be on, and that is right: nothing is begun for it. But this is not *reported*, because "the
dependency is not installed, so it is suspended" would be shown for a moment and is untrue. Until the missing packages were
loaded or have failed once (`heard`), such a package keeps its earlier status, which says that it is on its way.

This holds only for packages that were installed, and only if their missing requirement leads to a package that is not known
yet, directly or through packages whose decisions are unreported for the same reason. Every installed package is loaded or
fails eventually, so every decision is reported eventually.
"""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.scheduler.events import Decided
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime


class Statements:
    """The reporter of one runtime's scheduler decisions; it belongs to that runtime."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        self.unheard: set[str] = set()
        """Packages that an earlier process installed and that this one has neither loaded yet nor failed to load."""
        self._unsaid: set[str] = set()
        self._heard: deque[str] = deque()

    def say(self, instance: Instance, decided: Decided) -> None:
        """Set a package's status to the decision about it, unless that is too early."""
        name, now = instance.id.name, self.runtime.now()
        if not decided.allowed and instance.status.installed_since is not None and self._is_early(name):
            self._unsaid.add(name)
            return
        refused = instance.refused
        if decided.allowed and refused is not None:  # the decision is about the earlier version
            status = statuses.failed(
                instance.status, Stage.REQUIREMENTS, refused.reason, refused.message, now, permanent=refused.permanent
            )
        else:
            status = statuses.required(instance.status, decided.reason, decided.message, now, met=decided.allowed)
        self.runtime.set_status(instance, status)
        if name in self._unsaid:
            self._unsaid.discard(name)
            self._restate_for((name,))

    def restate(self, instance: Instance) -> None:
        """Report the scheduler's decision again, after a failure was reported in between."""
        decided = self.runtime.scheduler.decision(instance.id.name)
        if decided is not None:
            self.say(instance, decided)

    def heard(self, names: Iterable[str]) -> None:
        """Record that these packages are known from now on, and report the decisions that waited for them."""
        heard = self.unheard.intersection(names)
        self.unheard -= heard
        self._restate_for(sorted(heard))
        if heard:
            self.runtime.operations.ask_scripts_again()
            self.runtime.rounds.look()

    def missing(self, name: str) -> bool:
        """Return whether any package beside ``name`` is installed and not loaded by this process, even if it cannot be."""
        if self.unheard - {name}:
            return True
        return any(
            instance.status.installed_since is not None
            and instance.definition is None
            and each != name
            and not self.runtime.lifecycle.is_removing(each)
            for each, instance in self.runtime.instances.items()
        )

    def _restate_for(self, names: Iterable[str]) -> None:
        """Report due decisions one after the other; one report may make the next one due, and such a chain may be long."""
        under_way = bool(self._heard)
        self._heard.extend(names)
        while self._heard and not under_way:
            for each in self.runtime.scheduler.dependents(self._heard[0]):
                instance = self.runtime.instances.get(each)
                if instance is not None and each in self._unsaid:
                    self.restate(instance)
            self._heard.popleft()

    def _is_early(self, name: str) -> bool:
        """Return whether a package is kept off by one that is not known yet, maybe through others with unreported decisions."""
        seen, to_see = {name}, [name]
        while to_see:
            missing = self._missing(to_see.pop())
            if missing & self.unheard:
                return True
            through = (missing & self._unsaid) - seen
            seen |= through
            to_see += through
        return False

    def _missing(self, name: str) -> set[str]:
        """Return the dependencies that are not on, if that is why a package is off."""
        scheduler = self.runtime.scheduler
        node, decided = scheduler.node(name), scheduler.decision(name)
        if node is None or decided is None or decided.allowed:
            return set()
        wanted, names = node.requirements, set[str]()
        if decided.reason == Reason.DEPENDENCY_NOT_ENABLED:
            names = {each.name for each in wanted.mandatory}
        elif decided.reason == Reason.ANY_OF_UNMET:
            names = {each.name for group in wanted.any_of for each in group.members}
        return {each for each in names if not scheduler.enabled(each)}
