"""The events that the claim machine takes, and the effects that it returns. Pure.

The *shell* (:mod:`wharfinger.pools.claims.scheduler`) reports the events to the machine, and performs the effects.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one pool.

    ``waiting`` limits the requests that wait, and ``in_flight`` the claims that are under way at the same time. After
    ``attempts`` conflicts, a request is answered as conflicted. Raises ValueError for a limit below 1.

    ``expires_claims``: if true, a request whose claim is under way is answered at its deadline, and the member is recycled. It
    must be false if a claim may have begun work that the caller would then repeat elsewhere. If it is false, a request waits for
    the end of its claim.
    """

    waiting: int = 8192
    in_flight: int = 128
    attempts: int = 8
    expires_claims: bool = True

    def __post_init__(self) -> None:
        for name in ("waiting", "in_flight", "attempts"):
            if (limit := getattr(self, name)) < 1:
                raise ValueError(
                    f"limit of {name}: expected at least 1, found {limit}; with 0, no request would ever be served"
                )


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a pool as its cache shows it.

    ``uid`` is its identity: a member that is deleted and made again under the same name has another uid. ``version`` grows with
    every change of the member. A ``protected`` member is idle but must not be handed out, because it is about to be removed.
    """

    uid: str
    version: int
    idle: bool = True
    protected: bool = False


# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A caller requests a member, and waits for it until ``deadline``. ``request`` is a new number, higher than all earlier
    ones.
    """

    request: int
    deadline: float


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The caller of a request does not wait for the answer any more. If the request was already answered, nothing changes."""

    request: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The cache shows a member that is new or has changed."""

    member: Member


@dataclass(frozen=True, slots=True)
class Lost:
    """The cache no longer shows a member."""

    uid: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A claim has succeeded; ``version`` is the version of the member after the claim."""

    request: int
    version: int


@dataclass(frozen=True, slots=True)
class Conflicted:
    """A claim came too late: the member was changed or removed by others, or is not idle any more."""

    request: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A claim failed for another reason than a conflict, and the member is unchanged."""

    request: int


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed: requests whose deadline is ``now`` or earlier have expired."""

    now: float


@dataclass(frozen=True, slots=True)
class Closed:
    """The pool takes no more requests; those that wait are answered, and claims under way may finish."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The code that makes the claims has stopped waiting for those under way, and will not report their ends."""


Event: TypeAlias = (
    Enqueued | Withdrawn | Seen | Lost | Succeeded | Conflicted | Failed | TimePassed | Closed | Abandoned
)


# --- effects ---------------------------------------------------------------------------------------------------------------


class Answer(StrEnum):
    """The outcome of a request for a member of a pool."""

    CLAIMED = "claimed"
    EXPIRED = "expired"
    """The deadline of the request passed before a member was claimed for it."""
    CONFLICTED = "conflicted"
    """The claims of the request ended with a conflict as often as the limit allows."""
    FAILED = "failed"
    """The claim of the request failed for a reason that is not a conflict."""
    CLOSED = "closed"
    """The pool was closed."""
    WITHDRAWN = "withdrawn"
    """The caller of the request is gone."""


@dataclass(frozen=True, slots=True)
class StartClaim:
    """Claim a member for a request. One event reports the result, Succeeded, Conflicted or Failed; after Abandoned, none
    does.
    """

    request: int
    member: Member


@dataclass(frozen=True, slots=True)
class Answered:
    """Report the end of a request to its caller, exactly once for each accepted request."""

    request: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Recycle:
    """Give back or remove a member that was claimed, or may have been claimed, although no caller takes it."""

    uid: str


Effect: TypeAlias = StartClaim | Answered | Recycle
