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
    """A pod must not be handed out again, because it is not known whether it was claimed. If the pod proves to be unclaimed, it
    is retired.
    """

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
    """The API server did not answer the request to create the pod, so the pod may exist."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class PodChecked:
    """The API server was asked for a pod that was made but is not in the cache. ``found`` is false if it does not exist."""

    name: str
    found: bool


@dataclass(frozen=True, slots=True)
class RetireSettled:
    """The attempt to retire a pod is over. Either the pod was retired, as an earlier PodSeen has shown, or others have deleted
    the pod, or changed it after ``version``.
    """

    uid: str
    version: int


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """A write to retire or delete a pod failed, but not because others had changed or deleted the pod."""

    uid: str
    problem: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A time has come at which the machine may have to act, although nothing else has happened."""


MakingEvent: TypeAlias = PodMade | PodRefused | MakeUnknown | PodChecked
SizingEvent: TypeAlias = (
    SpecChanged | PodSeen | PodGone | PodDoomed | Demand | MakingEvent | RetireSettled | WriteFailed | TimePassed
)


# --- effects ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MakePod:
    """Create a pod of this name. The event PodMade (even if the pod existed already), PodRefused or MakeUnknown reports the
    result.
    """

    name: str


@dataclass(frozen=True, slots=True)
class CheckPod:
    """Ask the API server for a pod of this name. The event PodChecked reports the result."""

    name: str


@dataclass(frozen=True, slots=True)
class RetirePod:
    """Take an idle pod out of the pool. The event RetireSettled or WriteFailed reports the result; if the pod was retired, a
    PodSeen comes before RetireSettled.
    """

    pod: PodState


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod by its uid. The event PodGone reports that the cache no longer shows the pod, or WriteFailed that the
    deletion failed.
    """

    pod: PodState


SizingEffect: TypeAlias = MakePod | CheckPod | RetirePod | DeletePod
