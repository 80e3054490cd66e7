"""What the scheduler has decided, said in the status of packages; and what is not said, since it would not be true yet.

A process that starts decides about a package when it is loaded, and others that are installed may not be loaded by then. Whoever
needs one of those may not be on, and that is right: nothing is begun for it. But it is not *said*: "the dependency is not
installed, so it is suspended" would be told for a moment to everybody who looks, and is untrue. Until what it needs was loaded
or has failed once (`heard`), such a package says what it said before: that it is on its way.

Only of packages that were installed, and only where the way goes: to one that was not heard of, through others of which nothing
is said for the same reason. Each package that was installed is heard of in the end, so everything is said in the end.
"""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.scheduler.events import Decided
from wharfinger.runtime.scheduler.rules import Reason
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Stage

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime


class Statements:
    """Says for one runtime, which it belongs to, what its scheduler decides."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        self.unheard: set[str] = set()
        """Packages of which an earlier process installed something: not loaded by this one so far, and not failed either."""
        self._unsaid: set[str] = set()
        self._heard: deque[str] = deque()

    def say(self, instance: Instance, decided: Decided) -> None:
        """A package's status is what was decided about it, unless that is too early."""
        name, now = instance.id.name, self.runtime.now()
        if not decided.allowed and instance.status.installed_since is not None and self._is_early(name):
            self._unsaid.add(name)
            return
        refused = instance.refused
        if decided.allowed and refused is not None:  # that is about the version before
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
        """Say what the scheduler has decided, whatever went wrong on the way there."""
        decided = self.runtime.scheduler.decision(instance.id.name)
        if decided is not None:
            self.say(instance, decided)

    def heard(self, names: Iterable[str]) -> None:
        """From now on it is known how these packages are: what was not said for their sake is said."""
        heard = self.unheard.intersection(names)
        self.unheard -= heard
        self._restate_for(sorted(heard))
        if heard:
            self.runtime.operations.ask_scripts_again()
            self.runtime.rounds.look()

    def missing(self, name: str) -> bool:
        """Whether anything beside ``name`` is installed and was not read by this process, be it that it cannot be."""
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
        """One after the other, also where saying it of one makes it due of the next: a chain may be long."""
        under_way = bool(self._heard)
        self._heard.extend(names)
        while self._heard and not under_way:
            for each in self.runtime.scheduler.dependents(self._heard[0]):
                instance = self.runtime.instances.get(each)
                if instance is not None and each in self._unsaid:
                    self.restate(instance)
            self._heard.popleft()

    def _is_early(self, name: str) -> bool:
        """Whether what keeps a package off is one that was not heard of, maybe through others of which nothing is said."""
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
        """Those that are not on, where a package is off for that."""
        scheduler = self.runtime.scheduler
        node, decided = scheduler.node(name), scheduler.decision(name)
        if node is None or decided is None or decided.allowed:
            return set()
        wanted, names = node.requirements, set[str]()
        if decided.reason == Reason.DEPENDENCY_NOT_ENABLED:
            names = {each.name for each in wanted.mandatory}
        elif decided.reason == Reason.ANY_OF:
            names = {each.name for group in wanted.any_of for each in group.members}
        return {each for each in names if not scheduler.enabled(each)}
