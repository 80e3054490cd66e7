"""The right to do expensive work, as a pure state machine: slots of several kinds, and the packages that wait for them.

Theory of operation. A *slot* is the right to do one piece of leaf work, which is work that does not wait for other work with
a slot. Downloads, renders, hook runs and loads each take one slot of their kind **and** one of the slots for work, which all
four share. A task gets both together or neither, so no task holds one of them while it waits for the other. A call of the
cluster's API takes a slot of its own kind only, because the API server does the work.

*Shares.* A slot cannot be taken away from work that is under way, so hanging work keeps its slot until its own deadline.
Shares limit the slots that such work can occupy, so that it cannot block all other work:

* one package may hold half of the slots for hooks, and half of those for API calls, because the daemon does not control how
  long hooks and API calls take;
* one group, such as a namespace (see *Turns*), may hold `namespace_share` percent of the slots of each kind, and of the slots for
  work;
* one source (a registry's host) may hold `source_share` percent of the slots for downloads;
* all slow packages of a kind share a quarter of the slots of that kind; a package becomes slow if work of that kind holds its
  slot for a long time and then fails, and stops being slow when such work succeeds.

Each share is at least one slot. If its percentage is below 100 and there are two or more slots, the share is less than all slots,
so at least one slot remains for packages of other groups and sources. If r slots remain, the k-th of these other packages waits
for at most k/r pieces of work, all of which belong to these other packages (`tests/queue/test_slots_neighbours.py`).

*Turns.* Packages belong to groups: the namespace of an Application, one group for all Modules, one for the daemon itself. Each
kind has a line of groups in the order of their turns; a group that begins to wait gets the last turn, and so does a group that
was served and still waits. Within a group, packages take turns by the same rules, and the requests of one package are served in
order. A slot that becomes free is given to the request with the earliest turn that can use it. When a slot for work becomes
free, the turns of all four kinds are compared. So while a request waits only because no slot is free, each other group
overtakes it at most once per kind, however many requests that group makes.

=========  ========================================================================================================
event      what happens
=========  ========================================================================================================
Asked      the request is granted immediately if slots are free, no share is used up, and no earlier request of its package
           waits; otherwise the new request waits
Withdrawn  the request no longer waits; the next request of its package may be granted, since it may have another source
Returned   the slots become free, and the outcome may change whether the package is slow; all requests that can be
           granted now are granted: there may be several, because one may have waited for the share of its namespace, and
           another one for the share of its source
=========  ========================================================================================================

Invariants (`tests/queue/test_slots_rules.py`):

* No limit and no share is exceeded.
* The first request of a package waits only while it cannot be granted.
* A request is granted at most once, and never after it was withdrawn.
* Each group in a line has a waiting package, and each package in it has a request.
* At most MAX_SLOW packages of a kind are remembered as slow.

Withdrawing a request that does not wait, or returning a slot that is not held, raises IllegalSlotEvent and has no effect. The
machine has no clock and no I/O. A step costs about as much as copying the groups that wait for one kind, and the waiting
packages of one group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias, assert_never


class Kind(StrEnum):
    """The kind of work that a slot is for."""

    DOWNLOAD = "downloads"
    RENDER = "renders"
    HOOK = "hooks"
    LOAD = "loads"
    API = "api"


_WORK: Final = (Kind.DOWNLOAD, Kind.RENDER, Kind.HOOK, Kind.LOAD)
_API: Final = (Kind.API,)
_SHARED: Final = frozenset({Kind.HOOK, Kind.API})
"""The kinds of work for which one package may use at most half of the slots."""
MAX_SLOW: Final = 1_000
"""The number of packages that are remembered as slow, for each kind; the oldest is forgotten first."""


class Outcome(StrEnum):
    """The result of a piece of work, as far as it matters for slots."""

    DONE = "done"
    FAILED = "failed"
    """The work failed early, and did not delay other work."""
    SLOW = "slow"
    """The work held its slot for a long time without success: it failed, timed out, or was cancelled."""


class IllegalSlotEvent(Exception):  # noqa: N818 - named for what happened
    """The caller (`queue.slots`) reported an event that cannot happen in this state. This is a bug in the caller."""


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """The numbers of slots, over all packages: for all work (``work``), and of each kind; each at least 1.

    ``source_share`` is the percentage of the slots for downloads that one source may have, ``namespace_share`` the percentage of
    each number of slots that one namespace may have; at 100, no slot is kept for other sources or namespaces. Raises ValueError.
    """

    work: int = 16
    downloads: int = 8
    renders: int = 3
    hooks: int = 8
    loads: int = 4
    api: int = 32
    source_share: int = 50
    namespace_share: int = 75

    def __post_init__(self) -> None:
        for name in ("work", *(kind.value for kind in Kind)):
            if (limit := getattr(self, name)) < 1:
                raise ValueError(f"limit of {name}: expected at least 1, found {limit}; with 0, nothing would ever run")
        for name in ("source_share", "namespace_share"):
            if not 1 <= (share := getattr(self, name)) <= 100:
                raise ValueError(f"{name}: expected a percentage from 1 to 100, found {share}")


# --- state -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiter:
    """A waiting request, and the source whose share of the slots the request would use ("" if it has no source)."""

    request: int
    source: str = ""


Packages: TypeAlias = Mapping[str, tuple[Waiter, ...]]
"""The packages that wait in a group, in the order of their turns, each with its requests, oldest first. A group always has at
least one waiting package.
"""


@dataclass(frozen=True, slots=True)
class Group:
    """The packages of one group that wait for slots of one kind. The group with the lowest ``turn`` is served first."""

    turn: int
    packages: Packages


@dataclass(frozen=True, slots=True)
class Shares:
    """The numbers of slots of one kind that a package, a group, a source, and all slow packages together may have."""

    package: int
    group: int
    source: int
    slow: int


@dataclass(frozen=True, slots=True)
class KindState:
    """The slots of one kind: their number, the shares, the holders, and the waiters (in the order of turns).

    ``held`` has the number of slots in use for each package, ``groups`` for each group, and ``sources`` for each source.
    ``slow`` are the packages that have had `Outcome.SLOW` since their last success, oldest first.
    """

    limit: int
    shares: Shares
    used: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, int] = field(default_factory=dict)
    slow: Mapping[str, None] = field(default_factory=dict)
    line: Mapping[str, Group] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkState:
    """The slots for all kinds of work together: their number, the largest number for one group, the number in use, and the
    number that each group uses.
    """

    limit: int
    share: int
    used: int = 0
    groups: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotsState:
    """All slots. ``turns`` is the number of the turn that was given to a group last; groups with lower numbers are served
    first.
    """

    work: WorkState
    turns: int
    kinds: Mapping[Kind, KindState]


def fresh(limits: SlotLimits) -> SlotsState:
    """Return a state in which no slot is in use."""
    kinds: dict[Kind, KindState] = {}
    for kind in Kind:
        limit: int = getattr(limits, kind.value)
        # No more than ``work`` slots can be in use, so shares are computed from that number if it is lower.
        usable = limit if kind is Kind.API else min(limit, limits.work)
        shares = Shares(
            package=max(1, limit // 2) if kind in _SHARED else limit,
            group=_percent(usable, limits.namespace_share),
            source=_percent(usable, limits.source_share),
            slow=max(1, usable // 4),
        )
        kinds[kind] = KindState(limit, shares)
    return SlotsState(WorkState(limits.work, _percent(limits.work, limits.namespace_share)), 0, kinds)


def _percent(limit: int, percent: int) -> int:
    return max(1, limit * percent // 100)


# --- events and effects ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A package requests a slot. ``request`` is a new number; ``source`` is the host on which the work depends, or ""."""

    request: int
    kind: Kind
    package: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A waiting request was withdrawn."""

    request: int
    kind: Kind
    package: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The work has ended, and its slots are returned."""

    kind: Kind
    package: str
    source: str = ""
    outcome: Outcome = Outcome.DONE


Event: TypeAlias = Asked | Withdrawn | Returned


@dataclass(frozen=True, slots=True)
class Granted:
    """The request has been granted its slots."""

    request: int


# --- the machine -----------------------------------------------------------------------------------------------------------


def step(state: SlotsState, event: Event) -> tuple[SlotsState, tuple[Granted, ...]]:
    """Return the state after ``event``, and the grants. Raises IllegalSlotEvent, and changes nothing in that case."""
    match event:
        case Asked():
            return _asked(state, event)
        case Withdrawn(request, kind, package):
            line = _without(state.kinds[kind].line, request, package)
            return _settled(_with_line(state, kind, line, state.turns), (kind,))
        case Returned():
            return _returned(state, event)
        case _:
            assert_never(event)


def _asked(state: SlotsState, asked: Asked) -> tuple[SlotsState, tuple[Granted, ...]]:
    kind, package = asked.kind, asked.package
    slots = state.kinds[kind]
    waiter = Waiter(asked.request, asked.source)
    name = group_of(package)
    group = slots.line.get(name)
    mine = group.packages.get(package, ()) if group else ()
    # A waiting request that could use the free slot would already have got it, so this request overtakes no other one.
    if not mine and _may_be_granted(state, kind, package, asked.source):
        return _with_slot_taken(state, kind, package, waiter, slots.line), (Granted(asked.request),)
    turns = state.turns
    if group:
        group = Group(group.turn, {**group.packages, package: (*mine, waiter)})
    else:
        turns += 1
        group = Group(turns, {package: (waiter,)})
    return _with_line(state, kind, {**slots.line, name: group}, turns), ()


def _returned(state: SlotsState, returned: Returned) -> tuple[SlotsState, tuple[Granted, ...]]:
    kind, package, source = returned.kind, returned.package, returned.source
    slots = state.kinds[kind]
    if not slots.held.get(package) or (source and not slots.sources.get(source)):
        raise IllegalSlotEvent(f"{package or 'the daemon'} returned a slot of {kind}, but holds none")
    group = group_of(package)
    # Not dataclasses.replace, here and in _with_slot_taken, for speed: every API call runs this.
    slots = KindState(
        slots.limit,
        slots.shares,
        slots.used - 1,
        _one_less(slots.held, package),
        _one_less(slots.groups, group),
        _one_less(slots.sources, source) if source else slots.sources,
        _slow_after(slots.slow, package, returned.outcome)
        if slots.slow or returned.outcome is Outcome.SLOW
        else slots.slow,
        slots.line,
    )
    work = state.work
    if kind is not Kind.API:
        work = WorkState(work.limit, work.share, work.used - 1, _one_less(work.groups, group))
    state = SlotsState(work, state.turns, {**state.kinds, kind: slots})
    kinds = _API if kind is Kind.API else _WORK
    return _settled(state, kinds) if any(state.kinds[each].line for each in kinds) else (state, ())


def _settled(state: SlotsState, kinds: tuple[Kind, ...]) -> tuple[SlotsState, tuple[Granted, ...]]:
    """Grant the requests of these kinds for which slots are free now; the request with the earliest turn is granted first."""
    granted: list[Granted] = []
    while chosen := _next(state, kinds):
        kind, package, waiter = chosen
        line = _after_serving(state.kinds[kind].line, package, state.turns + 1)
        state = _with_slot_taken(state, kind, package, waiter, line)
        granted.append(Granted(waiter.request))
    return state, tuple(granted)


def _next(state: SlotsState, kinds: tuple[Kind, ...]) -> tuple[Kind, str, Waiter] | None:
    """Return the request of these kinds that can be granted and has the earliest turn, with its kind and its package.

    Return None if none of them can be granted.
    """
    found: tuple[Kind, str, Waiter] | None = None
    first = state.turns + 1
    for kind in kinds:
        slots = state.kinds[kind]
        if not slots.line or slots.used >= slots.limit:
            continue
        for name, group in slots.line.items():
            if group.turn >= first:
                break
            if slots.groups.get(name, 0) >= slots.shares.group:
                continue
            if mine := _first_of(state, kind, group):
                found, first = (kind, *mine), group.turn
                break
    return found


def _first_of(state: SlotsState, kind: Kind, group: Group) -> tuple[str, Waiter] | None:
    for package, waiters in group.packages.items():
        if _may_be_granted(state, kind, package, waiters[0].source):
            return package, waiters[0]
    return None


def _may_be_granted(state: SlotsState, kind: Kind, package: str, source: str) -> bool:
    """Return whether slots are free, and no limit on the slots of one package, group or source is reached."""
    slots, work, group = state.kinds[kind], state.work, group_of(package)
    shares = slots.shares
    if slots.used >= slots.limit or slots.held.get(package, 0) >= shares.package:
        return False
    if kind is not Kind.API and (work.used >= work.limit or work.groups.get(group, 0) >= work.share):
        return False
    if slots.groups.get(group, 0) >= shares.group or (source and slots.sources.get(source, 0) >= shares.source):
        return False
    return package not in slots.slow or held_by_slow(slots) < shares.slow


def _with_slot_taken(
    state: SlotsState, kind: Kind, package: str, waiter: Waiter, line: Mapping[str, Group]
) -> SlotsState:
    """Return the state with one more slot of this kind in use. The turn of the group that got the slot is used up, even if
    others in the group still wait.
    """
    slots, work, group = state.kinds[kind], state.work, group_of(package)
    slots = KindState(
        slots.limit,
        slots.shares,
        slots.used + 1,
        _one_more(slots.held, package),
        _one_more(slots.groups, group),
        _one_more(slots.sources, waiter.source) if waiter.source else slots.sources,
        slots.slow,
        line,
    )
    if kind is not Kind.API:
        work = WorkState(work.limit, work.share, work.used + 1, _one_more(work.groups, group))
    return SlotsState(work, state.turns + 1, {**state.kinds, kind: slots})


def _one_more(counts: Mapping[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}


def _one_less(counts: Mapping[str, int], name: str) -> dict[str, int]:
    rest = dict(counts)
    if left := rest.pop(name) - 1:
        rest[name] = left
    return rest


def _slow_after(slow: Mapping[str, None], package: str, outcome: Outcome) -> Mapping[str, None]:
    """Return the slow packages after a piece of work of ``package`` has ended: slow work adds the package, a success removes
    it, and a failure changes nothing.
    """
    match outcome:
        case Outcome.FAILED:
            return slow
        case Outcome.DONE:
            return {each: None for each in slow if each != package} if package in slow else slow
        case Outcome.SLOW:
            kept = [each for each in slow if each != package][-(MAX_SLOW - 1) :]
            return dict.fromkeys((*kept, package))
        case _:
            assert_never(outcome)


def _after_serving(line: Mapping[str, Group], package: str, turn: int) -> dict[str, Group]:
    """Return the line without the package's first request. If other requests of the package wait, the package moves to the end
    of its group. If other requests of the group wait, the group moves to the end of the line.
    """
    name = group_of(package)
    rest = dict(line)
    packages = dict(rest.pop(name).packages)
    waiters = packages.pop(package)[1:]
    if waiters:
        packages[package] = waiters
    if packages:
        rest[name] = Group(turn, packages)
    return rest


def _without(line: Mapping[str, Group], request: int, package: str) -> dict[str, Group]:
    """Return the line without one request; all others keep their turn."""
    name = group_of(package)
    group = line.get(name)
    waiters = group.packages.get(package, ()) if group else ()
    left = tuple(each for each in waiters if each.request != request)
    if group is None or len(left) == len(waiters):
        raise IllegalSlotEvent(f"{package or 'the daemon'} withdrew request {request}, which does not wait")
    packages = {each: left if each == package else waiting for each, waiting in group.packages.items()}
    if not left:
        del packages[package]
    rest = {each: Group(group.turn, packages) if each == name else other for each, other in line.items()}
    if not packages:
        del rest[name]
    return rest


def _with_line(state: SlotsState, kind: Kind, line: Mapping[str, Group], turns: int) -> SlotsState:
    return SlotsState(state.work, turns, {**state.kinds, kind: replace(state.kinds[kind], line=line)})


def group_of(package: str) -> str:
    """Return the group in which a package takes turns: the namespace of an Application, ``.`` for a Module, or "" for the daemon
    itself.
    """
    namespace, dot, _ = package.partition(".")
    return namespace if dot or not package else "."


# --- questions about the state ---------------------------------------------------------------------------------------------


def count_waiting(slots: KindState) -> int:
    """Return the number of requests that wait for one kind."""
    return sum(len(requests) for group in slots.line.values() for requests in group.packages.values())


def held_by_slow(slots: KindState) -> int:
    """Return how many slots of one kind are held by slow packages."""
    return sum(count for package, count in slots.held.items() if package in slots.slow) if slots.slow else 0


def waits_for(state: SlotsState, package: str) -> tuple[Kind, ...]:
    """Return the kinds of work for which a package waits for a slot."""
    name = group_of(package)
    return tuple(
        kind for kind, slots in state.kinds.items() if (group := slots.line.get(name)) and package in group.packages
    )
