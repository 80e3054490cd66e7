"""The number of pods of one pool as a pure machine: it decides which pods are made, retired and deleted.

The wanted number of idle pods follows demand, never the number of existing pods::

    wanted = requests that wait + (size, or min if no request came for idle_s)

Idle pods, pods that start and pods that are being made count towards this number, so that no request causes two pods. Claimed
pods do not count, but no pod is made beyond ``max`` pods altogether. ``size``, ``min``, ``max``, ``idle_s`` and ``start_s`` are
fields of the pool's `PoolSpec`.

* A pod that was made counts as *being made* until it appears in the daemon's cache of pods. If this takes longer than CHECK_S,
  the daemon requests the pod from the API server. A pod that does not exist no longer counts.
* A surplus pod is retired once it has been idle for ``idle_s``, and immediately if there are more than ``max`` pods. Pods of an
  earlier template, or of an earlier pool of the same name, are retired immediately.
* A pod is retired by a conditional write. After a conflict, the pod may have been claimed, so nothing is done with it before the
  cache shows a later version of it. The only exception is a conflict although the API server still has the same version of the
  pod: this counts as a failure. A pod is *doomed* if it is not known whether a claim got it; it is retired in the same way. Only
  a pod that is retiring or has ended while idle is deleted, never a claimed one.
* A pod that does not become ready within ``start_s`` is retired.
* After a failure, nothing is made or changed during a pause, which doubles with each further failure.

No clock and no I/O.
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, assert_never

from wharfinger.pools.pods.pod_state import Phase, PodState
from wharfinger.pools.pods.resources import PoolSpec
from wharfinger.pools.pods.sizing_events import (
    CheckPod,
    DeletePod,
    Demand,
    MakePod,
    MakeUnknown,
    MakingEvent,
    PodChecked,
    PodDoomed,
    PodGone,
    PodMade,
    PodRefused,
    PodSeen,
    RetirePod,
    RetireSettled,
    SizingEffect,
    SizingEvent,
    SpecChanged,
    TimePassed,
    WriteFailed,
)

AT_ONCE: Final = 32
"""The largest number of pods that are being made at the same time."""
CHECK_S: Final = 30.0
PAUSE_FIRST_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
NEVER: Final = float("inf")


# --- state -----------------------------------------------------------------------------------------------------------------


class Stage(Enum):
    """The stage of a pod that is being made."""

    SENT = auto()
    UNSURE = auto()
    MADE = auto()
    CHECKING = auto()


@dataclass(slots=True)
class Making:
    """A pod that is being made, its stage, and the time at which this stage began."""

    stage: Stage
    since: float


@dataclass(slots=True)
class SizingState:
    """The machine's state of a pool. ``busy`` contains the uids of pods that must not be changed now. The value of a uid is None
    while a write of the pod is under way. After a conflict, the value is a version, and the pod stays busy until the cache shows
    a later version.

    ``first_seen`` and ``idle_since`` are times by uid. ``problem`` is the last failure; it is empty again once a pod is made or
    the pool's template changes.
    """

    prefix: str
    spec: PoolSpec
    used_at: float
    pods: dict[str, PodState] = field(default_factory=dict)
    first_seen: dict[str, float] = field(default_factory=dict)
    idle_since: dict[str, float] = field(default_factory=dict)
    making: dict[str, Making] = field(default_factory=dict)
    busy: dict[str, int | None] = field(default_factory=dict)
    doomed: set[str] = field(default_factory=set)
    waiting: int = 0
    accepted: int = 0
    serial: int = 0
    failures: int = 0
    paused_until: float = -NEVER
    problem: str = ""
    replaced: int = 0


def new_sizing_state(spec: PoolSpec, prefix: str, now: float) -> SizingState:
    """Return the state of a pool without pods. Pods are named ``<prefix>-<number>``, so each state needs a new prefix."""
    return SizingState(prefix, spec, now)


def wanted_idle(state: SizingState, now: float) -> int:
    """Return how many idle pods the pool should have now, without regard to ``max``."""
    used = now - state.used_at < state.spec.idle_s
    return state.waiting + (state.spec.size if used else state.spec.min)


def current_idle(state: SizingState) -> list[PodState]:
    """Return the idle pods of the present template, ready or not. Pods that are being changed, and pods that a claim may have
    got, are left out.
    """
    return [pod for pod in state.pods.values() if _is_current(state, pod)]


def total(state: SizingState) -> int:
    """Return the number of all pods that have not ended, including those that are being made."""
    return sum(not pod.ended for pod in state.pods.values()) + len(state.making)


def step(state: SizingState, event: SizingEvent, now: float) -> tuple[SizingState, tuple[SizingEffect, ...]]:
    """Return the state after ``event``, and the effects in order. The caller must not use the passed state any more."""
    match event:
        case SpecChanged():
            _want(state, event.spec, now)
        case PodSeen():
            _see(state, event.pod, now)
        case PodGone():
            _lose(state, event.uid)
        case PodDoomed():
            state.doomed.add(event.uid)
        case Demand():
            if event.waiting or event.accepted != state.accepted:
                state.used_at = now
            state.waiting, state.accepted = event.waiting, event.accepted
        case PodMade() | PodRefused() | MakeUnknown() | PodChecked():
            _make(state, event, now)
        case RetireSettled():
            _settle(state, event.uid, event.version)
        case WriteFailed():
            state.busy.pop(event.uid, None)
            _pause(state, event.problem, now)
        case TimePassed():
            pass
        case _:
            assert_never(event)
    return state, tuple(_decide(state, now))


def next_time(state: SizingState, now: float) -> float:
    """Return the time at which the caller must send TimePassed; infinite if nothing depends on the time."""
    spec = state.spec
    due = [state.paused_until, state.used_at + spec.idle_s]
    due += [since + spec.idle_s for since in state.idle_since.values()]
    due += [each.since + CHECK_S for each in state.making.values() if each.stage is Stage.MADE]
    due += [state.first_seen[pod.uid] + spec.start_s for pod in current_idle(state) if not pod.ready]
    return min((time for time in due if time > now), default=NEVER)


# --- what happened ---------------------------------------------------------------------------------------------------------


def _want(state: SizingState, spec: PoolSpec, now: float) -> None:
    if spec.template_hash != state.spec.template_hash:
        state.failures, state.paused_until, state.problem = 0, -NEVER, ""  # the cause may be gone now
    state.spec = spec
    for pod in state.pods.values():
        _note_idle(state, pod, now)


def _see(state: SizingState, pod: PodState, now: float) -> None:
    known = state.pods.get(pod.uid)
    if known is not None and pod.version < known.version:
        return
    state.pods[pod.uid] = pod
    state.making.pop(pod.name, None)
    state.first_seen.setdefault(pod.uid, now)
    until = state.busy.get(pod.uid)
    if until is not None and pod.version > until:
        del state.busy[pod.uid]
    _note_idle(state, pod, now)


def _note_idle(state: SizingState, pod: PodState, now: float) -> None:
    if pod.usable(state.spec):
        state.idle_since.setdefault(pod.uid, now)
    else:
        state.idle_since.pop(pod.uid, None)


def _lose(state: SizingState, uid: str) -> None:
    state.pods.pop(uid, None)
    for times in (state.first_seen, state.idle_since):
        times.pop(uid, None)
    state.busy.pop(uid, None)
    state.doomed.discard(uid)


def _make(state: SizingState, event: MakingEvent, now: float) -> None:
    match event:
        case PodMade():
            _stage(state, event.name, Stage.MADE, now)
            state.failures, state.problem = 0, ""
        case PodRefused():
            state.making.pop(event.name, None)
            _pause(state, event.problem, now)
        case MakeUnknown():
            _stage(state, event.name, Stage.UNSURE, now)
            _pause(state, event.problem, now)
        case PodChecked():
            if event.found:
                _stage(state, event.name, Stage.MADE, now)
            else:
                state.making.pop(event.name, None)
        case _:
            assert_never(event)


def _stage(state: SizingState, name: str, stage: Stage, now: float) -> None:
    """Record the stage of a pod that is being made; do nothing if the cache has shown the pod meanwhile."""
    if name in state.making:
        state.making[name] = Making(stage, now)


def _settle(state: SizingState, uid: str, version: int) -> None:
    """Process the end of a write to a pod. The pod stays busy, so that no other write to it begins, until the cache shows a
    state later than ``version``.
    """
    pod = state.pods.get(uid)
    if pod is None or uid not in state.busy:
        return
    if pod.version > version:
        del state.busy[uid]
    else:
        state.busy[uid] = version


def _pause(state: SizingState, problem: str, now: float) -> None:
    state.failures += 1
    state.problem = problem
    pause_s = min(PAUSE_FIRST_S * 2 ** min(state.failures - 1, 10), PAUSE_MAX_S)
    state.paused_until = max(state.paused_until, now + pause_s)


# --- what is done ----------------------------------------------------------------------------------------------------------


def _is_current(state: SizingState, pod: PodState) -> bool:
    return (
        pod.phase is Phase.IDLE
        and pod.alive
        and pod.pool_uid == state.spec.uid
        and pod.template == state.spec.template_hash
        and pod.uid not in state.busy
        and pod.uid not in state.doomed
    )


def _decide(state: SizingState, now: float) -> list[SizingEffect]:
    if now < state.paused_until:
        return []
    effects: list[SizingEffect] = []
    for pod in state.pods.values():
        if pod.uid not in state.busy and not pod.leaving:
            effects += _disposal(state, pod)
    _replace_late(state, now, effects)
    for name, making in state.making.items():
        if making.stage is Stage.UNSURE:
            state.making[name] = Making(Stage.SENT, now)
            effects.append(MakePod(name))
        elif making.stage is Stage.MADE and now >= making.since + CHECK_S:
            state.making[name] = Making(Stage.CHECKING, now)
            effects.append(CheckPod(name))
    missing = wanted_idle(state, now) - len(current_idle(state)) - len(state.making)
    over = total(state) - state.spec.max
    for _ in range(min(missing, -over, AT_ONCE - len(state.making))):
        state.serial += 1
        name = f"{state.prefix}-{state.serial}"
        state.making[name] = Making(Stage.SENT, now)
        effects.append(MakePod(name))
    effects += [_retired(state, pod) for pod in _surplus(state, -missing, over, now)]
    return effects


def _disposal(state: SizingState, pod: PodState) -> list[SizingEffect]:
    """Return the effect that disposes of a pod; nothing if the pod is to be kept. A pod that has ended or is retiring is
    deleted. A pod that is doomed or outdated begins to retire. A claimed pod is kept, because its claim disposes of it.
    """
    ours = pod.phase is not Phase.CLAIMED
    if ours and (pod.phase is Phase.RETIRING or pod.ended):
        state.busy[pod.uid] = None
        return [DeletePod(pod)]
    strange = pod.pool_uid != state.spec.uid or pod.template != state.spec.template_hash
    if ours and (strange or pod.uid in state.doomed):
        return [_retired(state, pod)]
    return []


def _replace_late(state: SizingState, now: float, effects: list[SizingEffect]) -> None:
    """Retire pods that have not become ready within ``start_s``."""
    late = [
        pod for pod in current_idle(state) if not pod.ready and now >= state.first_seen[pod.uid] + state.spec.start_s
    ]
    if late:
        effects += [_retired(state, pod) for pod in late]
        state.replaced += len(late)


def _surplus(state: SizingState, surplus: int, over: int, now: float) -> list[PodState]:
    """Return the pods to retire: up to ``over`` of all idle pods, and up to ``surplus`` of the pods that have been idle for
    ``idle_s``.

    Starting pods are chosen before ready ones, and newer pods before older ones.
    """
    if surplus <= 0 and over <= 0:
        return []
    idle = current_idle(state)
    order = {pod.uid: number for number, pod in enumerate(idle)}
    idle.sort(key=lambda pod: (pod.ready, -state.idle_since.get(pod.uid, now), -order[pod.uid]))
    long = [pod for pod in idle if now >= state.idle_since.get(pod.uid, NEVER) + state.spec.idle_s]
    chosen = {pod.uid: pod for pod in (*idle[: max(over, 0)], *long[: max(surplus, 0)])}
    return list(chosen.values())


def _retired(state: SizingState, pod: PodState) -> RetirePod:
    state.busy[pod.uid] = None
    return RetirePod(pod)
