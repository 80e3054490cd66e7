"""The life of a WorkerClaim as a pure function: the next action, given the known facts.

A claim is *pending* until one final status is written: Bound, Failed or Expired. The status is written with the resourceVersion
of the claim as it was seen, so a daemon with an outdated view cannot write a second result; that daemon gives up its pod as soon
as it sees the first result.

No claimed pod is lost in a crash, because it has the uid of its claim. If the daemon ends after it has claimed a pod, but before
it has written the status, the next daemon finds the pod, and binds the claim to it. A pod whose claim is gone, or bound to
another pod, is deleted.

================================================ ===============================================================================
what is known                                    what is done
================================================ ===============================================================================
the claim is gone, or is being deleted           its request is withdrawn, and its pods are deleted
the claim has a final status                     its request is withdrawn, and all of its pods but the bound one are deleted
a pod belongs to an earlier claim of this name   this pod is deleted
the request was answered                         the result is written; after a conflict or a shutdown, a pod is requested again
the request waits, and a pod has the claim's uid the claim is bound to this pod, unless the request is claiming the pod just now
the request waits                                nothing; after a while, Pending is written
no request waits, and a pod has the claim's uid  the claim is bound to this pod
the claim's specification cannot be used         Failed is written
the claim's time is over                         Expired is written
the claim's pool does not serve, or is full      Pending is written, with the reason
otherwise                                        a pod is requested from the pool
================================================ ===============================================================================
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.times import format_time
from wharfinger.pools.claims.events import Answer
from wharfinger.pools.pods.pod_state import PodState

PENDING: Final = "Pending"
BOUND: Final = "Bound"
FAILED: Final = "Failed"
EXPIRED: Final = "Expired"
FINAL: Final = frozenset({BOUND, FAILED, EXPIRED})


class Reason(StrEnum):
    """The reasons in the status of a WorkerClaim."""

    POD_CLAIMED = "PodClaimed"
    WAITING = "WaitingForPod"
    NO_POOL = "NoSuchPool"
    POOL_FULL = "PoolFull"
    SPEC_INVALID = "SpecInvalid"
    REFUSED = "Refused"
    TIMEOUT = "Timeout"


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """The status of a WorkerClaim."""

    phase: str
    reason: str
    message: str
    pod: str = ""
    pod_uid: str = ""


@dataclass(frozen=True, slots=True)
class RequestState:
    """The request of a claim. ``answer`` is None while the request waits; ``pod`` and ``problem`` are its result."""

    answer: Answer | None = None
    pod: PodState | None = None
    problem: str = ""
    waited: bool = False
    """True once the request has waited for so long that the status of the claim reports it."""
    trying: str = ""
    """The uid of the pod in the last attempt to claim a pod for the request. ``answer`` shows whether this attempt succeeded.
    """


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """All known facts about a claim. ``uid`` is empty if there is no such claim. ``pods`` are the pods whose label names it.

    ``written`` is the claim's status in the cache. ``open`` is True if the claim's pool serves, and ``full`` is True if the
    pool has just refused a request.
    """

    uid: str
    leaving: bool = False
    written: ClaimStatus = ClaimStatus("", "", "")
    pods: tuple[PodState, ...] = ()
    asked: RequestState | None = None
    problem: str = ""
    expired: bool = False
    pool: str = ""
    open: bool = True
    full: bool = False


@dataclass(frozen=True, slots=True)
class RequestPod:
    """Request a pod of the pool."""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write this status of the WorkerClaim."""

    status: ClaimStatus


@dataclass(frozen=True, slots=True)
class ReleasePods:
    """Delete these pods. ``withdraw``: also withdraw the claim's request."""

    pods: tuple[PodState, ...]
    withdraw: bool = True


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until a fact about the claim changes."""


Step: TypeAlias = RequestPod | WriteStatus | ReleasePods | Wait


def decide(known: ClaimFacts) -> Step:
    """Return the next action for a claim."""
    if not known.uid or known.leaving or known.written.phase in FINAL:
        return _finish(known)
    if strangers := tuple(pod for pod in _present(known.pods) if pod.claim_uid != known.uid):
        return ReleasePods(strangers, withdraw=False)  # pods of an earlier claim of this name
    own = _present(known.pods)
    if (asked := known.asked) is not None:
        others = [pod for pod in own if pod.uid != asked.trying]
        if asked.answer is None and others:
            return WriteStatus(bound_status(others[0]))
        if (step := _asked(known, asked)) is not None:
            return step
    if own:
        return WriteStatus(bound_status(own[0]))
    if known.problem:
        return WriteStatus(ClaimStatus(FAILED, Reason.SPEC_INVALID, known.problem))
    if known.expired:
        return WriteStatus(ClaimStatus(EXPIRED, Reason.TIMEOUT, f"no pod of pool {known.pool} was ready in time"))
    if not known.open:
        return _pending(
            known,
            Reason.NO_POOL,
            f"no WorkerPool {known.pool} is working in this namespace; create it, or correct its spec",
        )
    if known.full:
        return _pending(known, Reason.POOL_FULL, f"too many claims wait for pool {known.pool}; retried every second")
    return RequestPod()


def _finish(known: ClaimFacts) -> Step:
    """Give up everything that the claim has or requested. A bound claim that exists and is not being deleted keeps its pod."""
    got = (known.asked.pod,) if known.asked is not None and known.asked.pod is not None else ()
    kept = known.written.pod_uid if known.uid and not known.leaving else ""
    others = {pod.uid: pod for pod in (*_present(known.pods), *got) if pod.uid != kept}
    waits = known.asked is not None and known.asked.answer is None
    return ReleasePods(tuple(others.values())) if others or waits else Wait()


def _asked(known: ClaimFacts, asked: RequestState) -> Step | None:
    """Return the step that follows from the state of the claim's request; None if a pod is to be requested again."""
    match asked.answer:
        case None:
            return _pending(known, Reason.WAITING, f"waits for a pod of pool {known.pool}") if asked.waited else Wait()
        case Answer.CLAIMED:
            return WriteStatus(bound_status(asked.pod)) if asked.pod is not None else None
        case Answer.FAILED:
            return WriteStatus(ClaimStatus(FAILED, Reason.REFUSED, asked.problem))
        case Answer.EXPIRED:
            return WriteStatus(ClaimStatus(EXPIRED, Reason.TIMEOUT, f"no pod of pool {known.pool} was ready in time"))
        case Answer.CONFLICTED | Answer.CLOSED | Answer.WITHDRAWN:
            return None
        case _:
            assert_never(asked.answer)


def _pending(known: ClaimFacts, reason: Reason, message: str) -> Step:
    wanted = ClaimStatus(PENDING, reason, message)
    return Wait() if known.written == wanted else WriteStatus(wanted)


def _present(pods: tuple[PodState, ...]) -> tuple[PodState, ...]:
    return tuple(pod for pod in pods if not pod.leaving)


def bound_status(pod: PodState) -> ClaimStatus:
    """Return the status of a claim that has a pod."""
    return ClaimStatus(BOUND, Reason.POD_CLAIMED, "", pod.name, pod.uid)


def read_status(obj: JsonObject) -> ClaimStatus:
    """Return the status that is written in a WorkerClaim. Raises ShapeError."""
    status = find_object(obj, "status")
    names = ("phase", "reason", "message", "podName", "podUID")
    return ClaimStatus(*(find_str(status, name) for name in names))


def status_patch(status: ClaimStatus, uid: str, version: str, now: datetime) -> JsonObject:
    """Return the patch that writes a status; it fails if the claim has changed since it was seen."""
    written: JsonObject = {
        "phase": status.phase,
        "reason": status.reason,
        "message": status.message,
        "podName": status.pod or None,
        "podUID": status.pod_uid or None,
    }
    if status.phase in FINAL:
        written["finishedAt"] = format_time(now)
    return {"metadata": {"uid": uid, "resourceVersion": version}, "status": written}
