"""The search for other versions with which the requirements of a package would be met.

For example, ``shop`` 1.0 needs ``db`` below 2, and ``db`` 2.1 is installed. The search may find ``shop`` 1.3, or ``db`` 1.9,
or other versions of both. Every set of versions is judged by a step of the scheduler itself, so the result follows the rules
of real decisions: with a suitable set, the package can be on, and no package that is on now is switched off.

Other versions are tried only for packages that take part in a conflict, because the conflict remains if none of these
packages changes. Sets are judged in the order of their cost: fewer changed packages first, then fewer downgrades, then newer
versions. So the first suitable set is the smallest change. The search ends after a limited number of judged sets; the result
says whether the limit was reached.

Pure. The search does not suggest new resources: a package without a resource has no versions to choose from.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from rpds import HashTrieMap, HashTrieSet

from wharfinger.formats.errors import FormatError
from wharfinger.formats.listing import listed
from wharfinger.formats.version_constraint import parse_version
from wharfinger.runtime.scheduler.events import Decided, NodeAdded
from wharfinger.runtime.scheduler.graph import CycleError, Node
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.rules import is_allowed
from wharfinger.runtime.scheduler.state import Entry, Graph
from wharfinger.runtime.status.reasons import Reason

MAX_JUDGED: Final = 200
"""The limit on the number of sets of versions that one search judges."""
MAX_CHANGED: Final = 6
"""The limit on the number of packages that get another version in one set of versions."""
_MOST_NAMED: Final = 5
_REQUIREMENTS: Final = frozenset(
    {
        Reason.KUBERNETES_UNMET,
        Reason.PLATFORM_UNMET,
        Reason.DEPENDENCY_NOT_ENABLED,
        Reason.DEPENDENCY_VERSION_MISMATCH,
        Reason.ANY_OF_UNMET,
        Reason.NONE_OF_UNMET,
    }
)
"""The reasons that can keep one version of a package off, but not another version."""

Candidates = Callable[[str], Sequence[Node]]
"""A function that takes the name of a package, and returns one node for each other version of it, preferred versions first."""


@dataclass(frozen=True, slots=True)
class VersionChange:
    """The change of one package to another version."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return a text such as ``db 1.9.0 (now 2.1.0)``."""
        return f"{self.name} {self.after} (now {self.before})"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search for versions of packages that work together. ``changes`` are the packages with other versions; it
    is empty if no suitable set was found. ``complete`` is True if no limit ended the search: a suitable set was found, or there
    is none. ``tried`` are the packages that take part in the conflicts, sorted. ``unread`` are the packages among them whose
    other versions were not read, because the number of packages that are read is limited.
    """

    changes: tuple[VersionChange, ...]
    complete: bool
    tried: tuple[str, ...]
    unread: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The result as one line of text."""
        if self.changes:
            return f"these versions would work: {listed(self.changes, MAX_CHANGED)}"
        names = listed(self.tried, _MOST_NAMED)
        if self.unread:
            left = listed(self.unread, _MOST_NAMED)
            return (
                f"no set of versions that work together was found; other versions of {left} were not tried, because "
                "the search is limited"
            )
        if self.complete:
            return f"no known versions of {names} would work together"
        return (
            f"none of the sets of versions of {names} that were tried would work; the search is limited to {MAX_JUDGED} "
            f"sets, and to {MAX_CHANGED} changed packages in a set"
        )


@dataclass(frozen=True, slots=True)
class _Set:
    """A judged set: versions of some packages, and the packages that these versions would switch off."""

    graph: Graph
    changed: "HashTrieMap[str, Node]" = HashTrieMap()  # noqa: RUF009 - persistent
    off: "HashTrieSet[str]" = HashTrieSet()  # noqa: RUF009


@dataclass(frozen=True, slots=True, order=True)
class _Proposal:
    """A set of versions that is not judged yet: the judged set ``base``, and in addition ``node``, another version of one more
    package. Proposals are ordered by their cost.
    """

    changed: int
    downgrades: int
    rank: int
    number: int
    base: _Set = field(compare=False)
    node: Node = field(compare=False)


def find_versions(
    graph: Graph,
    name: str,
    candidates: Candidates,
    *,
    wanted: Node | None = None,
    limit: int = MAX_JUDGED,
    between: Callable[[], None] = lambda: None,
) -> SearchResult | None:
    """Search for a set of versions with which a package can be on; with ``wanted``, the package has that version in the set.
    Return None if the scheduler is paused, or does not know the package. Without ``wanted``, also return None if the package is
    not off because of its requirements, or if no other versions are known. At most ``limit`` sets are judged. ``between`` is
    called before each set is judged; an exception from it ends the search.
    """
    entry = graph.entries.get(name)
    if graph.paused or entry is None or (wanted is None and not _is_refused(entry)):
        return None
    return _Search(graph, name, candidates, between).run(wanted, limit)


class _Search:
    """One search for a set of versions with which a package can be on (`find_versions`)."""

    def __init__(self, graph: Graph, name: str, candidates: Candidates, between: Callable[[], None]) -> None:
        self._graph = graph
        self._between = between
        self._name = name
        self._candidates = candidates
        self._proposals: list[_Proposal] = []
        self._seen: set[frozenset[tuple[str, str]]] = set()
        self._tried: set[str] = set()
        self._numbers = count()
        self._cut = False
        """True if a set of versions was not judged, because it changes too many packages."""

    def run(self, wanted: Node | None, limit: int) -> SearchResult | None:
        """Judge sets of versions, until a set is suitable, ``limit`` sets were judged, or no set is left. Return None if there
        is no set to judge.
        """
        first = _Set(self._graph)
        if wanted is None:
            self._propose(first, self._name, 0, 0)
        else:
            heapq.heappush(self._proposals, _Proposal(1, 0, 0, next(self._numbers), first, wanted))
        judged = 0
        while self._proposals:
            if judged >= limit:
                return self._result((), complete=False)
            self._between()
            proposal = heapq.heappop(self._proposals)
            judged += 1
            if (made := self._judged(proposal)) is None:
                continue
            if (wrong := self._wrong(made)) is None:
                return self._result(tuple(self._changes(made)), complete=True)
            self._propose(made, wrong, proposal.downgrades, proposal.rank)
        return self._result((), complete=not self._cut) if judged else None

    def _result(self, changes: tuple[VersionChange, ...], *, complete: bool) -> SearchResult:
        return SearchResult(changes, complete, tuple(sorted(self._tried)))

    def _changes(self, made: _Set) -> Iterator[VersionChange]:
        for name in sorted(made.changed):
            yield VersionChange(name, self._graph.entries[name].node.version, made.changed[name].version)

    def _judged(self, proposal: _Proposal) -> _Set | None:
        """Judge a proposal; return the judged set, or None if it would close a cycle."""
        base, node = proposal.base, proposal.node
        try:
            graph, effects = step(base.graph, NodeAdded(node))
        except CycleError:
            return None
        off = base.off
        for effect in effects:
            if isinstance(effect, Decided) and self._was_on(effect.name):
                off = off.discard(effect.name) if effect.allowed else off.insert(effect.name)
        return _Set(graph, base.changed.insert(node.name, node), off)

    def _was_on(self, name: str) -> bool:
        entry = self._graph.entries.get(name)
        return entry is not None and entry.on

    def _wrong(self, made: _Set) -> str | None:
        """Return a package that would be off with this set; None if the set is suitable."""
        entry = made.graph.entries[self._name]
        if not entry.on and not (entry.decision is not None and entry.decision.pending):
            return self._name
        return min(made.off, default=None)

    def _propose(self, base: _Set, wrong: str, downgrades: int, rank: int) -> None:
        """Add proposals for the conflict because of which the package ``wrong`` is off. Each proposal is the set ``base`` with
        another version of one package that takes part in the conflict.
        """
        for name in _involved(base.graph, wrong):
            self._tried.add(name)
            if name in base.changed:
                continue
            now = self._graph.entries[name].node.version
            for place, node in enumerate(self._candidates(name)):
                if node.version == now:
                    continue
                if len(base.changed) >= MAX_CHANGED:
                    self._cut = True
                    break
                versions = {each: other.version for each, other in base.changed.items()} | {name: node.version}
                if (key := frozenset(versions.items())) in self._seen:
                    continue
                self._seen.add(key)
                down = downgrades + _is_older(node.version, now)
                proposal = _Proposal(len(versions), down, rank + place, next(self._numbers), base, node)
                heapq.heappush(self._proposals, proposal)


def _involved(graph: Graph, wrong: str) -> list[str]:
    """Return the package ``wrong``, and then all other packages that take part in the conflict because of which ``wrong`` is
    off.
    """
    found: dict[str, None] = {}
    to_see = [wrong]
    for name in to_see:
        entry = graph.entries.get(name)
        if name in found or entry is None or not (entry.on or _is_refused(entry)):
            continue
        found[name] = None
        if not entry.on:
            to_see += sorted(set(_opponents(graph, entry.node)))
    return list(found)


def _opponents(graph: Graph, node: Node) -> Iterator[str]:
    """Yield the present packages that conflict with a node: those that do not meet a requirement of the node, and those that
    exclude it.
    """
    for dependency, optional in node.dependencies():
        there = graph.entries.get(dependency.name)
        if there is None or (optional and not there.on):
            continue
        if not there.on or not is_allowed(dependency.constraint, there.node.version):
            yield dependency.name
    for group in node.requirements.any_of:
        members = [(each, graph.entries.get(each.name)) for each in group.members if each.name != node.name]
        if not any(there and there.on and is_allowed(each.constraint, there.node.version) for each, there in members):
            yield from (each.name for each, there in members if there is not None)
    for group in node.excluded:
        yield from (each.name for each in group.members if each.name != node.name and _is_on(graph, each.name))
    for name in graph.topology.named_by.get(node.name) or ():
        if _is_on(graph, name) and node.name in graph.topology.edges[name].none_of:
            yield name


def _is_on(graph: Graph, name: str) -> bool:
    entry = graph.entries.get(name)
    return entry is not None and entry.on


def _is_refused(entry: Entry) -> bool:
    """Return whether a package is off because of its requirements."""
    return entry.decision is not None and not entry.on and entry.decision.reason in _REQUIREMENTS


def _is_older(text: str, than: str) -> bool:
    try:
        return parse_version(text) < parse_version(than)
    except FormatError:
        return False
