"""The events that the sizing machine takes, and the effects that it returns. Pure."""

from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.pools.pods.pod_state import PodState
from wharfinger.pools.pods.resources import PoolSpec

# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpecChanged:
    """The pool's specification is new or has changed."""

    spec: PoolSpec


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The cache, or an answer of the API server, shows a pod."""

    pod: PodState


@dataclass(frozen=True, slots=True)
class PodGone:
    """The cache no longer shows a pod."""

    uid: str


@dataclass(frozen=True, slots=True)
class PodDoomed:
    """A pod must not be handed out again, because it is not known whether it was claimed. If it was not, it is retired."""

    uid: str


@dataclass(frozen=True, slots=True)
class Demand:
    """The numbers of the scheduler: how many requests wait, and how many requests it has accepted since it was opened."""

    waiting: int
    accepted: int


@dataclass(frozen=True, slots=True)
class PodMade:
    """The API server has the pod of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class PodRefused:
    """The API server has refused to create the pod, so the pod does not exist."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class MakeUnknown:
    """The API server did not answer: the pod may exist."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class PodChecked:
    """The API server was asked for a pod that was made but is not in the cache. ``found`` is false if it does not exist."""

    name: str
    found: bool


@dataclass(frozen=True, slots=True)
class RetireSettled:
    """A pod was retired, as a PodSeen has shown; or it was not, because others changed it after ``version``, or deleted it."""

    uid: str
    version: int


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The write that was to retire or delete a pod failed, but not because others had changed or deleted the pod."""

    uid: str
    problem: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed."""


MakingEvent: TypeAlias = PodMade | PodRefused | MakeUnknown | PodChecked
SizingEvent: TypeAlias = (
    SpecChanged | PodSeen | PodGone | PodDoomed | Demand | MakingEvent | RetireSettled | WriteFailed | TimePassed
)


# --- effects ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MakePod:
    """Create a pod of this name. Answered with PodMade (even if the pod existed), PodRefused or MakeUnknown."""

    name: str


@dataclass(frozen=True, slots=True)
class CheckPod:
    """Ask the API server for a pod of this name. Answered with PodChecked."""

    name: str


@dataclass(frozen=True, slots=True)
class RetirePod:
    """Take an idle pod out of the pool. Answered with RetireSettled, after a PodSeen if the pod was retired, or with
    WriteFailed.
    """

    pod: PodState


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod by its uid. Answered with PodGone when the cache no longer shows the pod, or with WriteFailed."""

    pod: PodState


SizingEffect: TypeAlias = MakePod | CheckPod | RetirePod | DeletePod
