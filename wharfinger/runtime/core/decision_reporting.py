"""The scheduler's decisions that are not reported yet in the status of packages.

A process that starts decides about each package when the package is loaded, although other installed packages are perhaps not
loaded yet. While a package is not loaded, its dependents stay off, and nothing is begun for them. But the decision that a
dependent is off is not *reported*, because the status of the dependent would say for a moment that its dependency is not
installed, which is wrong. A package is *known* once it was loaded, or has failed to load once (`mark_known`). Until the missing
packages are known, the dependent keeps its earlier status.

A decision stays unreported only if the package was installed and now misses a package that is not known yet, directly or
through packages whose decisions are unreported for the same reason. Every installed package is loaded or fails eventually, so
every decision is reported eventually.
"""

from collections.abc import Iterable

from wharfinger.runtime.scheduler.events import Decided
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status.reasons import Reason


class UnreportedDecisions:
    """The decisions that are not reported yet, and the installed packages that they wait for.

    A package is *known* once this process has loaded it, or has failed to load it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.unknown: set[str] = set()
        """Packages that an earlier process installed, and that this process has neither loaded yet nor failed to load."""
        self._unsaid: set[str] = set()

    def holds_back(self, decided: Decided, *, installed: bool) -> bool:
        """Return whether a decision must not be reported yet. If so, its package is remembered until `due` is called for the
        package.
        """
        if decided.allowed or not installed or not self._is_early(decided.name):
            return False
        self._unsaid.add(decided.name)
        return True

    def due(self, name: str) -> tuple[str, ...]:
        """Return the packages whose unreported decisions have to be checked again, because the decision about ``name`` is
        reported now.
        """
        if name not in self._unsaid:
            return ()
        self._unsaid.discard(name)
        return self._kept_dependents(name)

    def mark_known(self, names: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
        """Record that these packages are known from now on.

        Return the packages that were not known before, and the packages whose unreported decisions have to be checked again.
        """
        new = frozenset(self.unknown.intersection(names))
        self.unknown -= new
        return new, tuple(each for name in sorted(new) for each in self._kept_dependents(name))

    def others_unknown(self, name: str) -> bool:
        """Return whether any package besides ``name`` has not been marked as known yet (see `mark_known`)."""
        return len(self.unknown) > (name in self.unknown)

    def _kept_dependents(self, name: str) -> tuple[str, ...]:
        return tuple(each for each in self._scheduler.dependents(name) if each in self._unsaid)

    def _is_early(self, name: str) -> bool:
        """Return whether a package may be off only for now: it lacks a package that is not known yet, or it lacks, directly or
        through further packages, a package whose own decision is unreported for this reason.
        """
        seen, to_see = {name}, [name]
        while to_see:
            missing = self._missing(to_see.pop())
            if missing & self.unknown:
                return True
            through = (missing & self._unsaid) - seen
            seen |= through
            to_see += through
        return False

    def _missing(self, name: str) -> set[str]:
        """If a package is off because dependencies are not on, return these dependencies; otherwise an empty set."""
        scheduler = self._scheduler
        node, decided = scheduler.node(name), scheduler.decision(name)
        if node is None or decided is None or decided.allowed:
            return set()
        wanted, names = node.requirements, set[str]()
        if decided.reason == Reason.DEPENDENCY_NOT_ENABLED:
            names = {each.name for each in wanted.mandatory}
        elif decided.reason == Reason.ANY_OF_UNMET:
            names = {each.name for group in wanted.any_of for each in group.members}
        return {each for each in names if not scheduler.enabled(each)}
