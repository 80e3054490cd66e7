"""The state machine of one candidate for a Lease: does the candidate hold the Lease, and how long may it rely on that?

Pure; :mod:`wharfinger.cluster.lease.lease` performs the effects, one at a time, and reports each outcome as the next
event. ``now`` is the candidate's own monotonic clock, in seconds; no clock of another machine is ever used::

               Read: free                   Written
    Waiting ───────────────► Claiming ─────────────────► Held ──Leave──► Leaving ──► Over
      ▲   │ Read: held          │                       │    │                         ▲
      │   ▼ (pause, look)       │ Refused, Failed       │    └─ not renewed in time, ──┘
      └─────────────────────────┘                       │       taken, deleted
                                     Woke: renew, Refused or Failed: look, then renew

A Lease is free in four cases:

* it does not exist, and this candidate has never seen it;
* it has no holder;
* this identity holds it, from an earlier process; the provider of identities makes sure that two processes with one identity
  never run at the same time;
* its :attr:`~LeaseRecord.mark` has not changed for the duration of the Lease since *this* candidate first saw the mark.

Two candidates never rely on the Lease at the same time. A holder relies on it until ``deadline_s`` after it *began* the last
write that succeeded. The server received that write later, and all other candidates saw it even later and wait ``duration_s``
from then. This holds as long as no clock runs faster than another one by a factor of ``duration_s / deadline_s``.

Each write names the resourceVersion that was read, so if two candidates claim the Lease, one of them is refused. Each claim
has a fence greater than any fence that the candidate has seen.
"""

from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never

from wharfinger.cluster.lease.record import Claim, LeaseRecord, whole_seconds


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of a candidate.

    The Lease is granted for ``duration_s``. Its holder renews it every ``renew_s``, and gives up after ``deadline_s`` without a
    renewal. A candidate reads it every ``retry_s``. Raises ValueError unless retry <= renew < deadline < duration.
    """

    duration_s: float = 15.0
    deadline_s: float = 10.0
    renew_s: float = 5.0
    retry_s: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError unless the four times are positive and in the order retry <= renew < deadline < duration."""
        if not 0 < self.retry_s <= self.renew_s < self.deadline_s < self.duration_s:
            raise ValueError(f"{self}: these must be in this order: 0 < retry <= renew < deadline < duration")


@dataclass(frozen=True, slots=True)
class Sighting:
    """The Lease as this candidate last read it; ``record`` is None if the Lease did not exist. ``since`` is the time since
    which the candidate has seen no change of the Lease.
    """

    record: LeaseRecord | None
    since: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another candidate may hold the Lease. ``highest`` is the greatest fence that this candidate has seen."""

    seen: Sighting | None = None
    highest: int = 0


@dataclass(frozen=True, slots=True)
class Claiming:
    """The write with which this candidate tries to take the Lease is under way."""

    waiting: Waiting


@dataclass(frozen=True, slots=True)
class Held:
    """The Lease is ours until ``good_until``. ``unsure``: the Lease must be read before it is renewed."""

    record: LeaseRecord
    good_until: float
    unsure: bool = False
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Leaving:
    """The write that gives the Lease back is under way."""


@dataclass(frozen=True, slots=True)
class Over:
    """This process does not hold the Lease any more. ``reason`` says how it was lost, and is "" if it was given back."""

    reason: str = ""


State: TypeAlias = Waiting | Claiming | Held | Leaving | Over


@dataclass(frozen=True, slots=True)
class Read:
    """The Lease was read; None: it does not exist."""

    record: LeaseRecord | None


@dataclass(frozen=True, slots=True)
class Written:
    """The write, which began at ``begun``, is done."""

    record: LeaseRecord
    begun: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The write is not done: another writer changed the Lease since it was read."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The outcome of the read or the write is not known: the write may have been done, or may be done later."""

    why: str


@dataclass(frozen=True, slots=True)
class Woke:
    """The pause is over."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The Lease is no longer wanted."""


Event: TypeAlias = Read | Written | Refused | Failed | Woke | Leave


@dataclass(frozen=True, slots=True)
class Look:
    """Read the Lease. The event Read or Failed reports the result."""


@dataclass(frozen=True, slots=True)
class Write:
    """Replace the record ``before`` in the Lease; None: create the Lease. The event Written, Refused or Failed reports the
    result.
    """

    claim: Claim
    before: LeaseRecord | None


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for ``delay_s`` seconds. The event Woke reports the end of the wait."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Do nothing more, because the Lease is lost or released. The machine has no further effects."""


Effect: TypeAlias = Look | Write | Pause | Stop
START: Final = (Waiting(), Look())


@dataclass(frozen=True, slots=True)
class LeaseMachine:
    """The state machine of one candidate; ``identity`` stays the same after a restart."""

    identity: str
    times: LeaseTimes = field(default_factory=LeaseTimes)

    def step(self, state: State, event: Event, now: float) -> tuple[State, Effect]:
        """Return the next state and effect. An answer that is not awaited any more changes nothing."""
        match state:
            case Waiting():
                return self._waiting(state, event, now)
            case Claiming():
                return self._claiming(state, event, now)
            case Held():
                return self._held(state, event, now)
            case Leaving() | Over():
                return (state if isinstance(state, Over) else Over()), Stop()
            case _:
                assert_never(state)

    def _waiting(self, state: Waiting, event: Event, now: float) -> tuple[State, Effect]:
        match event:
            case Read(record):
                return self._read(state, record, now)
            case Woke():
                return state, Look()
            case Written() | Refused() | Failed():
                return state, Pause(self.times.retry_s)
            case Leave():
                return Over(), Stop()
            case _:
                assert_never(event)

    def _read(self, state: Waiting, record: LeaseRecord | None, now: float) -> tuple[State, Effect]:
        seen = state.seen
        if record is None and seen is None:
            return Claiming(state), Write(self._claim(state.highest), None)
        if seen is None or _mark(seen.record) != _mark(record):
            seen = Sighting(record, now)
        waiting = Waiting(seen, max(state.highest, record.fence if record else 0))
        left_s = self.left_s(seen, now)
        if left_s > 0 and (record is None or record.holder not in {"", self.identity}):
            return waiting, Pause(min(self.times.retry_s, left_s))
        return Claiming(waiting), Write(self._claim(waiting.highest), record)

    def left_s(self, seen: Sighting, now: float) -> float:
        """Return the seconds for which a Lease that has been unchanged since ``seen.since`` still belongs to its holder."""
        granted = max(self.times.duration_s, seen.record.duration_s if seen.record else 0)
        return seen.since + granted - now

    def _claim(self, highest: int) -> Claim:
        return Claim(self.identity, highest + 1, whole_seconds(self.times.duration_s))

    def _claiming(self, state: Claiming, event: Event, now: float) -> tuple[State, Effect]:
        match event:
            case Written(record, begun):
                held = Held(record, begun + self.times.deadline_s)
                if now < held.good_until:
                    return held, Pause(self.times.renew_s)
                return replace(state.waiting, highest=max(state.waiting.highest, record.fence)), Look()
            case Refused() | Failed() | Read() | Woke():
                return state.waiting, Pause(self.times.retry_s)
            case Leave():
                return Over(), Stop()
            case _:
                assert_never(event)

    def _held(self, state: Held, event: Event, now: float) -> tuple[State, Effect]:
        if now >= state.good_until:
            trouble = f": {state.trouble}" if state.trouble else ""
            return Over(f"it could not be renewed within {self.times.deadline_s:g} seconds{trouble}"), Stop()
        match event:
            case Written(record, begun):
                return Held(record, max(state.good_until, begun + self.times.deadline_s)), Pause(self.times.renew_s)
            case Refused() | Failed():
                trouble = event.why if isinstance(event, Failed) else state.trouble
                pause_s = min(self.times.retry_s, state.good_until - now)
                return replace(state, unsure=True, trouble=trouble), Pause(pause_s)
            case Woke():
                return state, Look() if state.unsure else Write(self._renewal(state), state.record)
            case Read(record):
                return self._looked(state, record)
            case Leave():
                return Leaving(), Write(replace(self._renewal(state), holder=""), state.record)
            case _:
                assert_never(event)

    def _looked(self, state: Held, record: LeaseRecord | None) -> tuple[State, Effect]:
        if record is None or record.uid != state.record.uid:
            return Over("the Lease was deleted"), Stop()
        if (record.holder, record.fence) != (self.identity, state.record.fence):
            why = f"{record.holder} holds it now" if record.holder else "another daemon took and released it"
            return Over(why), Stop()
        held = replace(state, record=record, unsure=False)
        return held, Write(self._renewal(held), record)

    def _renewal(self, state: Held) -> Claim:
        return Claim(self.identity, state.record.fence, whole_seconds(self.times.duration_s))


def _mark(record: LeaseRecord | None) -> tuple[str, str, int, int, int] | None:
    return None if record is None else record.mark
