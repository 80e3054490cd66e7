"""The state machine of a reflector: it lists once, watches from the list's revision, and lists again if the watch cannot be
resumed.

Pure; :mod:`wharfinger.cluster.watch.informer` and :mod:`wharfinger.cluster.watch.object_stream` perform its effects, one
action at a time, and report the outcome as the next event::

    Listing  ── Listed ─────────────────────────────────────► Watching
    Watching ── WatchEnded, after an event or LIVED_S ──────► Watching  (from the newest revision seen)
    Watching ── WatchEnded, otherwise ──────────────────────► Pausing
    Watching ── Failed (gone), as the first failure ────────► Listing
    Watching, Listing ── Failed, otherwise ─────────────────► Pausing
    Pausing  ── Paused ─────────────────────────────────────► Listing or Watching

A broken watch is resumed at its last revision; after a second failure in a row, all objects are listed again. If the server
forgets two lists in a row before all their pages are read, the next list is requested in one piece.

A caller may request a list (Asked) at any time. If a list is already under way, the requested list begins after it. If a watch
or a pause is under way, it is ended, and the requested list begins immediately. No other event ends a running action.

A pause is a capped exponential backoff with jitter (the jitter is part of the event: this file draws no random numbers). The
count of failures falls to zero only when a watch has delivered something or has lived for :data:`LIVED_S`. So a server that
accepts and drops every watch is not asked in a tight loop. The machine never gives up.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

BACKOFF_BASE_S: Final = 0.8
BACKOFF_CAP_S: Final = 30.0
LIVED_S: Final = 5.0
"""A watch counts as failed if it ends before this number of seconds and without any event."""


class Phase(Enum):
    """The action that the reflector performs now: a list, a watch, or a pause."""

    LISTING = "listing"
    WATCHING = "watching"
    PAUSING = "pausing"


@dataclass(frozen=True, slots=True)
class State:
    """The state of the reflector.

    ``resume_list``: a list begins after the pause, and not a watch. ``heard``: the present watch has delivered something.
    ``suspect``: a list or a watch failed, and none has succeeded since. ``expired``: the number of lists in a row that the
    server forgot before all pages were read. ``again``: a list was requested while a list was under way.
    """

    phase: Phase = Phase.LISTING
    resource_version: str = ""
    failures: int = 0
    resume_list: bool = True
    heard: bool = False
    suspect: bool = False
    expired: int = 0
    again: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """The list is complete. It shows the objects as of this revision."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A watch delivered an event, or a bookmark, with this revision."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """The server ended the watch after this number of seconds."""

    lived_s: float
    jitter: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The list or the watch failed; ``gone`` if the revision is too old (410)."""

    gone: bool
    jitter: float


@dataclass(frozen=True, slots=True)
class Paused:
    """The pause before the next attempt is over."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A caller needs a list that begins after this event. If `step` returns an effect for this event, the shell cancels the
    action that is running and performs this effect.
    """


Event = Listed | Seen | WatchEnded | Failed | Paused | Asked


@dataclass(frozen=True, slots=True)
class StartList:
    """The effect: list all objects, and replace the cache. If ``whole`` is true, list without pages, because a page of an
    earlier list has expired.
    """

    whole: bool = False


@dataclass(frozen=True, slots=True)
class StartWatch:
    """The effect: watch from this revision."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Pause:
    """The effect: wait for this number of seconds."""

    delay_s: float


Effect = StartList | StartWatch | Pause


class ProtocolError(Exception):
    """The event cannot happen in this phase: a bug of the caller."""


def start() -> tuple[State, Effect]:
    """Return the initial state, and the first action that the shell has to perform."""
    return State(), StartList()


def step(state: State, event: Event) -> tuple[State, Effect | None]:
    """Return the next state, and the next action; None if the running action continues. An action that is returned for Asked
    replaces the running action.
    """
    match event:
        case Listed():
            _need(state, event, Phase.LISTING)
            listed = replace(state, resource_version=event.resource_version, suspect=False, expired=0)
            return _list(listed) if state.again else _watch(listed)
        case Seen():
            _need(state, event, Phase.WATCHING)
            return _heard(state, event.resource_version), None
        case WatchEnded():
            _need(state, event, Phase.WATCHING)
            if state.heard or event.lived_s >= LIVED_S:
                return _watch(replace(state, failures=0, suspect=False))
            return _pause(state, event.jitter, resume_list=False)
        case Failed():
            _need(state, event, Phase.LISTING, Phase.WATCHING)
            return _failed(state, event)
        case Paused():
            _need(state, event, Phase.PAUSING)
            return _list(state) if state.resume_list else _watch(state)
        case Asked():
            return (replace(state, again=True), None) if state.phase is Phase.LISTING else _list(state)
        case _:
            assert_never(event)


def backoff_s(failures: int, jitter: float) -> float:
    """Return the seconds to wait after this number of failures in a row; ``jitter`` in [0, 1) shortens the wait by up to half."""
    full = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0 ** min(failures - 1, 16))
    return full * (1 - jitter / 2)


def _heard(state: State, revision: str) -> State:
    # The same as `replace`, at a third of its cost, because this runs for each event.
    return State(Phase.WATCHING, revision, 0, state.resume_list, True, False, state.expired, state.again)  # noqa: FBT003


def _failed(state: State, event: Failed) -> tuple[State, Effect]:
    if event.gone and state.phase is Phase.WATCHING and state.failures == 0:
        # After the first 410, a list begins immediately. If the next watch gets a 410 too, a pause precedes the next list.
        return _list(replace(state, failures=1))
    if state.phase is Phase.LISTING:
        state = replace(state, expired=state.expired + 1 if event.gone else 0)
        if state.again:
            return _list(replace(state, failures=state.failures + 1, suspect=True))
    # After two failures in a row, the server was probably down. It may return with another history of revisions (from a
    # backup, or in a new embedded control plane) that never reaches our revision; only a list shows that.
    resume_list = state.phase is Phase.LISTING or event.gone or state.suspect
    return _pause(replace(state, suspect=True), event.jitter, resume_list=resume_list)


def _list(state: State) -> tuple[State, Effect]:
    return replace(state, phase=Phase.LISTING, heard=False, again=False), StartList(whole=state.expired > 1)


def _watch(state: State) -> tuple[State, Effect]:
    return replace(state, phase=Phase.WATCHING, heard=False), StartWatch(state.resource_version)


def _pause(state: State, jitter: float, *, resume_list: bool) -> tuple[State, Effect]:
    failures = state.failures + 1
    paused = replace(state, phase=Phase.PAUSING, failures=failures, resume_list=resume_list, heard=False)
    return paused, Pause(backoff_s(failures, jitter))


def _need(state: State, event: Event, *phases: Phase) -> None:
    if state.phase not in phases:
        raise ProtocolError(f"the event {type(event).__name__} cannot happen while the informer is {state.phase.value}")
