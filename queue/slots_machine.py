"""Who may do expensive work now, as a pure machine: slots of several kinds, and who waits for them.

Theory of operation. A *slot* is the right to do one piece of leaf work: work that waits for nothing else that takes a slot.
Downloads, renders, hook runs and loads each take one slot of their kind **and** one of the slots for work, which all four
share; both at once or neither, so nobody holds one while waiting for the other. A call of the cluster's API takes a slot of
its own kind only: it waits for somebody else's work.

One package may have no more than `share` slots of a kind. It is half of them for hooks and API calls, whose length others
decide: a package whose event hooks all hang keeps half of the hook slots, not all.

*Turns.* Packages belong to groups: the namespace of an Application, one group for all Modules, one for the daemon itself. Each
kind has a line of groups in the order of their turns; a group that comes to wait gets the last turn, and so does a group that
was served and still waits. In a group packages take turns likewise, and the requests of one package are served as they came.
A slot that becomes free goes to the earliest turn among those who could have it, of all kinds where a slot for work was the
shortage. So whoever could go but for a free slot is overtaken by each other group at most once per kind, however much that
group asks for.

=========  ========================================================================================================
event      what happens
=========  ========================================================================================================
Asked      granted at once where slots are free and the package is below its share; otherwise the request waits
Withdrawn  the request no longer waits
Returned   the slots are free; at most one request is granted, since no request waits for more than what was returned
=========  ========================================================================================================

Invariants (`tests/queue/test_slots_rules.py`): no limit and no share is passed; nobody waits who could go; a request is
granted at most once and never after it was withdrawn; a line holds no empty group and no package without requests.

Withdrawing what does not wait, or returning what is not held, raises IllegalSlotEvent and changes nothing. No clock and no
I/O. A step costs what copying one line takes: the groups that wait for one kind, the packages that wait of one group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final, TypeAlias, assert_never


class Kind(StrEnum):
    """What a slot is for."""

    DOWNLOAD = "downloads"
    RENDER = "renders"
    HOOK = "hooks"
    LOAD = "loads"
    API = "api"


_WORK: Final = (Kind.DOWNLOAD, Kind.RENDER, Kind.HOOK, Kind.LOAD)
_API: Final = (Kind.API,)
_SHARED: Final = frozenset({Kind.HOOK, Kind.API})
"""Of these a package may have half."""


class IllegalSlotEvent(Exception):  # noqa: N818 - named for what happened
    """The shell reported something that cannot have happened: a bug of the shell."""


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """How much may be under way at once, over all packages: in all (``work``) and of each kind; each at least 1.

    Raises ValueError.
    """

    work: int = 16
    downloads: int = 4
    renders: int = 2
    hooks: int = 8
    loads: int = 4
    api: int = 32

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self)):
            if (limit := getattr(self, name)) < 1:
                raise ValueError(f"limit of {name}: {limit}; at least 1 is needed, or nothing would ever run")


# --- state -----------------------------------------------------------------------------------------------------------------

Packages: TypeAlias = Mapping[str, tuple[int, ...]]
"""Who waits in a group, in the order of turns: the requests of each package, oldest first; never empty."""


@dataclass(frozen=True, slots=True)
class Group:
    """The packages of one group that wait for one kind. ``turn``: when it is the group's turn; the lowest comes first."""

    turn: int
    packages: Packages


@dataclass(frozen=True, slots=True)
class KindState:
    """The slots of one kind: how many, how many a package may have, who has them, who waits (in the order of turns)."""

    limit: int
    share: int
    used: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    line: Mapping[str, Group] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotsState:
    """All slots. ``work`` of ``work_limit`` are in use; ``turns`` have been given out so far."""

    work_limit: int
    work: int
    turns: int
    kinds: Mapping[Kind, KindState]


def fresh(limits: SlotLimits) -> SlotsState:
    """Nothing is in use."""
    kinds: dict[Kind, KindState] = {}
    for kind in Kind:
        limit: int = getattr(limits, kind.value)
        kinds[kind] = KindState(limit, max(1, limit // 2) if kind in _SHARED else limit)
    return SlotsState(limits.work, 0, 0, kinds)


# --- events and effects ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A package wants a slot. ``request`` is a number never used before."""

    request: int
    kind: Kind
    package: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A request that waits no longer wants its slot."""

    request: int
    kind: Kind
    package: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The work is over."""

    kind: Kind
    package: str


Event: TypeAlias = Asked | Withdrawn | Returned


@dataclass(frozen=True, slots=True)
class Granted:
    """The request has its slots now."""

    request: int


# --- the machine -----------------------------------------------------------------------------------------------------------


def step(state: SlotsState, event: Event) -> tuple[SlotsState, tuple[Granted, ...]]:
    """The state after ``event``, and who was granted what they asked for. Raises IllegalSlotEvent; then nothing changed."""
    match event:
        case Asked(request, kind, package):
            return _asked(state, request, kind, package)
        case Withdrawn(request, kind, package):
            line = _without(state.kinds[kind].line, request, package)
            return _with_line(state, kind, line, state.turns), ()
        case Returned(kind, package):
            return _returned(state, kind, package)
        case _:
            assert_never(event)


def _asked(state: SlotsState, request: int, kind: Kind, package: str) -> tuple[SlotsState, tuple[Granted, ...]]:
    slots = state.kinds[kind]
    # Whoever waits already and could have this slot would have it, so going past them takes nothing from them.
    if (
        slots.used < slots.limit
        and (kind is Kind.API or state.work < state.work_limit)
        and slots.held.get(package, 0) < slots.share
    ):
        return _taken(state, kind, package, slots.line), (Granted(request),)
    name = group_of(package)
    turns = state.turns
    if group := slots.line.get(name):
        packages = {**group.packages, package: (*group.packages.get(package, ()), request)}
        group = Group(group.turn, packages)
    else:
        turns += 1
        group = Group(turns, {package: (request,)})
    return _with_line(state, kind, {**slots.line, name: group}, turns), ()


def _returned(state: SlotsState, kind: Kind, package: str) -> tuple[SlotsState, tuple[Granted, ...]]:
    slots = state.kinds[kind]
    held = dict(slots.held)
    left = held.pop(package, 0) - 1
    if left < 0:
        raise IllegalSlotEvent(f"{package or 'the daemon'} returned one of {kind}, of which it holds none")
    if left:
        held[package] = left
    slots = KindState(slots.limit, slots.share, slots.used - 1, held, slots.line)
    work = state.work if kind is Kind.API else state.work - 1
    state = SlotsState(state.work_limit, work, state.turns, {**state.kinds, kind: slots})
    chosen = _next(state, _API if kind is Kind.API else _WORK)
    if chosen is None:
        return state, ()
    kind, package = chosen
    line = state.kinds[kind].line
    request = line[group_of(package)].packages[package][0]
    return _taken(state, kind, package, _served(line, package, state.turns + 1)), (Granted(request),)


def _next(state: SlotsState, kinds: tuple[Kind, ...]) -> tuple[Kind, str] | None:
    """The earliest turn among those of these kinds who could go: kind and package.

    Packages with their whole share are passed over; there cannot be more of them than shares in a limit.
    """
    found: tuple[Kind, str] | None = None
    first = state.turns + 1
    for kind in kinds:
        slots = state.kinds[kind]
        if not slots.line or slots.used >= slots.limit:
            continue
        for group in slots.line.values():
            if group.turn >= first:
                break
            package = _below_share(slots, group)
            if package is not None:
                found, first = (kind, package), group.turn
                break
    return found


def _below_share(slots: KindState, group: Group) -> str | None:
    for package in group.packages:
        if slots.held.get(package, 0) < slots.share:
            return package
    return None


def _taken(state: SlotsState, kind: Kind, package: str, line: Mapping[str, Group]) -> SlotsState:
    """One more slot in use. The turn of whoever was served counts as given out, whether or not it still waits."""
    slots = state.kinds[kind]
    held = {**slots.held, package: slots.held.get(package, 0) + 1}
    slots = KindState(slots.limit, slots.share, slots.used + 1, held, line)
    work = state.work if kind is Kind.API else state.work + 1
    return SlotsState(state.work_limit, work, state.turns + 1, {**state.kinds, kind: slots})


def _served(line: Mapping[str, Group], package: str, turn: int) -> dict[str, Group]:
    """The line without the package's first request; if more wait, package and group go to the end."""
    name = group_of(package)
    rest = dict(line)
    packages = dict(rest.pop(name).packages)
    requests = packages.pop(package)[1:]
    if requests:
        packages[package] = requests
    if packages:
        rest[name] = Group(turn, packages)
    return rest


def _without(line: Mapping[str, Group], request: int, package: str) -> dict[str, Group]:
    """The line without one request; everybody else keeps their turn."""
    name = group_of(package)
    group = line.get(name)
    requests = group.packages.get(package, ()) if group else ()
    if group is None or request not in requests:
        raise IllegalSlotEvent(f"{package or 'the daemon'} withdrew request {request}, which does not wait")
    left = tuple(each for each in requests if each != request)
    packages = {each: left if each == package else waiting for each, waiting in group.packages.items()}
    if not left:
        del packages[package]
    rest = {each: Group(group.turn, packages) if each == name else other for each, other in line.items()}
    if not packages:
        del rest[name]
    return rest


def _with_line(state: SlotsState, kind: Kind, line: Mapping[str, Group], turns: int) -> SlotsState:
    slots = state.kinds[kind]
    slots = KindState(slots.limit, slots.share, slots.used, slots.held, line)
    return SlotsState(state.work_limit, state.work, turns, {**state.kinds, kind: slots})


def group_of(package: str) -> str:
    """Who a package takes turns with: its namespace; ``.`` for all Modules; nothing for the daemon's own work."""
    namespace, dot, _ = package.partition(".")
    return namespace if dot or not package else "."


# --- questions about the state ---------------------------------------------------------------------------------------------


def count_waiting(slots: KindState) -> int:
    """How many requests wait for one kind."""
    return sum(len(requests) for group in slots.line.values() for requests in group.packages.values())


def waits_for(state: SlotsState, package: str) -> tuple[Kind, ...]:
    """The kinds that a package waits for."""
    name = group_of(package)
    return tuple(
        kind for kind, slots in state.kinds.items() if (group := slots.line.get(name)) and package in group.packages
    )
