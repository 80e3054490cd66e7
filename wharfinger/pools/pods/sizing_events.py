"""The values that the sizing machine is made of: its events, and its effects. Pure."""

from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.pools.pods.pod_state import PodState
from wharfinger.pools.pods.resources import PoolSpec

# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pool's specification is new or has changed."""

    spec: PoolSpec


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The cache shows a pod, or an answer of the API server does."""

    pod: PodState


@dataclass(frozen=True, slots=True)
class PodGone:
    """The cache no longer shows a pod."""

    uid: str


@dataclass(frozen=True, slots=True)
class Doomed:
    """A pod must not be handed out again, because it is not known whether it was claimed; an unclaimed pod is retired."""

    uid: str


@dataclass(frozen=True, slots=True)
class Demand:
    """The scheduler's numbers: requests that wait, and how many it has accepted since it was opened."""

    waiting: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Made:
    """The API server has the pod of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server does not accept the pod; it does not exist."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """The API server did not answer: the pod may exist."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The API server was asked for a pod that was made but is not in the cache."""

    name: str
    found: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """A pod was retired, as a PodSeen has shown; or it was not retired, because others changed it after ``version``."""

    uid: str
    version: int


@dataclass(frozen=True, slots=True)
class Troubled:
    """A pod could not be retired or deleted for another reason."""

    uid: str
    problem: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Time has passed."""


MakingEvent: TypeAlias = Made | Refused | Unsure | Checked
SizingEvent: TypeAlias = Wanted | PodSeen | PodGone | Doomed | Demand | MakingEvent | Settled | Troubled | Passed


# --- effects ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MakePod:
    """Create a pod of this name. Answered with Made (even if the pod existed), Refused or Unsure."""

    name: str


@dataclass(frozen=True, slots=True)
class CheckPod:
    """Ask the API server for a pod of this name. Answered with Checked."""

    name: str


@dataclass(frozen=True, slots=True)
class RetirePod:
    """Take an idle pod out of the pool. Answered with Settled, after a PodSeen if it was done, or with Troubled."""

    pod: PodState


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod by its uid. Answered with PodGone when the cache shows it, or with Troubled."""

    pod: PodState


SizingEffect: TypeAlias = MakePod | CheckPod | RetirePod | DeletePod
