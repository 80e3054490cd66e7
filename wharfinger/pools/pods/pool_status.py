"""The status of a WorkerPool. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find_list
from wharfinger.kube.times import format_time, transition_time
from wharfinger.pools.pods.pod_state import Phase
from wharfinger.pools.pods.sizing_machine import SizingState, current_idle, total, wanted_idle

READY: Final = "Ready"


@dataclass(frozen=True, slots=True)
class PoolNumbers:
    """The numbers of a pool. ``desired`` is the number of idle pods that are wanted. ``ready``, ``starting`` and ``claimed`` are
    the numbers of pods in these states, ``pods`` is the number of all pods.

    ``waiting`` is the number of claims without a pod. ``reason`` is empty if the pool is as wanted; otherwise ``reason`` and
    ``problem`` say why it is not.
    """

    desired: int
    ready: int
    starting: int
    claimed: int
    pods: int
    waiting: int
    reason: str = ""
    problem: str = ""


def numbers(state: SizingState, now: float) -> PoolNumbers:
    """Return the numbers of pods and claims of a pool at ``now``, a time of trio's clock."""
    idle = current_idle(state)
    ready = sum(pod.ready for pod in idle)
    claimed = sum(pod.phase is Phase.CLAIMED and not pod.ended for pod in state.pods.values())
    wanted = wanted_idle(state, now)
    desired = min(wanted, max(state.spec.max - claimed, 0))
    reason, problem = "", ""
    if state.problem:
        reason, problem = "WriteFailed", state.problem
    elif wanted > len(idle) + len(state.making) and total(state) >= state.spec.max:
        reason, problem = "MaxReached", f"{total(state)} pods exist, but spec.max is {state.spec.max}"
    elif ready < desired:
        stuck = next((f"{pod.name}: {pod.problem}" for pod in idle if not pod.ready and pod.problem), "")
        reason, problem = (
            "Starting",
            f"{desired - ready} of {desired} idle pods are not ready" + (f"; {stuck}" if stuck else ""),
        )
    return PoolNumbers(
        desired=desired,
        ready=ready,
        starting=len(idle) - ready + len(state.making),
        claimed=claimed,
        pods=len(state.pods),
        waiting=state.waiting,
        reason=reason,
        problem=problem,
    )


def pool_status(found: PoolNumbers, generation: int, written: JsonObject, now: datetime) -> JsonObject:
    """Return the status to write. A condition with an unchanged status keeps its lastTransitionTime from ``written``, the last
    status.
    """
    condition = _condition(found.reason or "AsWanted", found.problem, not found.reason, generation, written, now)
    return {
        "observedGeneration": generation,
        "desired": found.desired,
        "ready": found.ready,
        "starting": found.starting,
        "claimed": found.claimed,
        "waiting": found.waiting,
        "conditions": [condition],
    }


def invalid_status(problem: str, generation: int, written: JsonObject, now: datetime) -> JsonObject:
    """Return the status of a WorkerPool whose specification cannot be used."""
    condition = _condition("SpecInvalid", problem, False, generation, written, now)  # noqa: FBT003 - the condition's status
    return {"observedGeneration": generation, "conditions": [condition]}


def _condition(
    reason: str,
    message: str,
    holds: bool,  # noqa: FBT001 - the value of the condition
    generation: int,
    written: JsonObject,
    now: datetime,
) -> JsonValue:
    status = "True" if holds else "False"
    return {
        "type": READY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": transition_time(find_list(written, "conditions"), READY, status, format_time(now)),
        "observedGeneration": generation,
    }
