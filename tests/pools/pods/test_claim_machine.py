"""The next action for a claim: each row of the table in `claim_machine`, and the life cycle of claims with events in random
order.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pools.pods.podstates import pod
from wharfinger.pools.claims.events import Answer
from wharfinger.pools.pods.claim_machine import (
    BOUND,
    EXPIRED,
    FAILED,
    PENDING,
    ClaimFacts,
    ClaimStatus,
    Reason,
    ReleasePods,
    RequestPod,
    RequestState,
    Step,
    Wait,
    WriteStatus,
    bound_status,
    decide,
    read_status,
    status_patch,
)
from wharfinger.pools.pods.pod_state import Phase, PodState

OWN = pod("p", phase=Phase.CLAIMED, claim="one", claim_uid="c-1")
OTHER = pod("q", phase=Phase.CLAIMED, claim="one", claim_uid="c-1")
STRANGER = pod("s", phase=Phase.CLAIMED, claim="one", claim_uid="c-0")
NOTHING = ClaimStatus("", "", "")
NEW = ClaimFacts("c-1", pool="workers")
TIMEOUT = ClaimStatus(EXPIRED, Reason.TIMEOUT, "no pod of pool workers was ready in time")


def test_a_new_claim_is_requested() -> None:
    assert decide(NEW) == RequestPod()
    assert decide(replace(NEW, asked=RequestState())) == Wait()


def test_the_status_of_a_claim_reports_a_long_wait_once() -> None:
    waits = ClaimStatus(PENDING, Reason.WAITING, "waits for a pod of pool workers")
    assert decide(replace(NEW, asked=RequestState(waited=True))) == WriteStatus(waits)
    assert decide(replace(NEW, asked=RequestState(waited=True), written=waits)) == Wait()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (RequestState(Answer.CLAIMED, OWN), WriteStatus(bound_status(OWN))),
        (
            RequestState(Answer.FAILED, problem="no such image"),
            WriteStatus(ClaimStatus(FAILED, Reason.REFUSED, "no such image")),
        ),
        (RequestState(Answer.EXPIRED), WriteStatus(TIMEOUT)),
        (RequestState(Answer.CONFLICTED), RequestPod()),
        (RequestState(Answer.CLOSED), RequestPod()),
        (RequestState(Answer.WITHDRAWN), RequestPod()),
    ],
)
def test_an_answer_is_written_or_the_pod_requested_again(asked: RequestState, expected: Step) -> None:
    assert decide(replace(NEW, asked=asked)) == expected


@pytest.mark.parametrize("known", [ClaimFacts(""), replace(NEW, leaving=True)])
def test_a_deleted_claim_releases_its_pods_and_requests(known: ClaimFacts) -> None:
    assert decide(known) == Wait()
    assert decide(replace(known, asked=RequestState())) == ReleasePods(())
    assert decide(replace(known, pods=(OWN, replace(OTHER, leaving=True)))) == ReleasePods((OWN,))
    assert decide(replace(known, asked=RequestState(Answer.CLAIMED, OWN))) == ReleasePods((OWN,))


def test_a_bound_claim_keeps_its_pod_and_no_other() -> None:
    known = replace(NEW, written=bound_status(OWN))
    assert decide(replace(known, pods=(OWN,))) == Wait()
    assert decide(replace(known, pods=(OWN,), asked=RequestState(Answer.CLAIMED, OWN))) == Wait()
    assert decide(replace(known, pods=(OWN, OTHER))) == ReleasePods((OTHER,))
    assert decide(replace(known, asked=RequestState(Answer.CLAIMED, OTHER))) == ReleasePods((OTHER,))
    assert decide(replace(known, asked=RequestState())) == ReleasePods(())


def test_a_pod_claimed_by_an_earlier_daemon_is_adopted() -> None:
    assert decide(replace(NEW, pods=(OWN,))) == WriteStatus(bound_status(OWN))
    assert decide(replace(NEW, pods=(OWN,), asked=RequestState(trying="p"))) == Wait()  # The answer is on its way.
    assert decide(replace(NEW, pods=(OWN,), asked=RequestState())) == WriteStatus(bound_status(OWN))
    assert decide(replace(NEW, pods=(OWN, OTHER), asked=RequestState(trying="p"))) == WriteStatus(bound_status(OTHER))
    assert decide(replace(NEW, pods=(OTHER,), asked=RequestState(Answer.CLAIMED, OWN, trying="p"))) == WriteStatus(
        bound_status(OWN)
    )
    assert decide(replace(NEW, pods=(OWN,), expired=True, open=False, problem="x")) == WriteStatus(bound_status(OWN))


def test_a_pod_of_an_earlier_claim_of_this_name_is_deleted_first() -> None:
    assert decide(replace(NEW, pods=(STRANGER,))) == ReleasePods((STRANGER,), withdraw=False)
    assert decide(replace(NEW, pods=(STRANGER,), asked=RequestState())) == ReleasePods((STRANGER,), withdraw=False)


def test_obstacles_are_written_to_the_status() -> None:
    assert decide(replace(NEW, problem="bad")) == WriteStatus(ClaimStatus(FAILED, Reason.SPEC_INVALID, "bad"))
    assert decide(replace(NEW, expired=True)) == WriteStatus(TIMEOUT)
    missing = decide(replace(NEW, open=False))
    assert isinstance(missing, WriteStatus)
    assert (missing.status.phase, missing.status.reason) == (PENDING, Reason.NO_POOL)
    assert decide(replace(NEW, open=False, written=missing.status)) == Wait()
    full = decide(replace(NEW, full=True))
    assert isinstance(full, WriteStatus)
    assert full.status.reason == Reason.POOL_FULL
    assert decide(replace(NEW, full=True, written=full.status)) == Wait()


def test_a_status_is_written_with_the_resource_version_that_was_read() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    patch = status_patch(bound_status(OWN), "c-1", "17", now)
    assert patch == {
        "metadata": {"uid": "c-1", "resourceVersion": "17"},
        "status": {
            "phase": "Bound",
            "reason": "PodClaimed",
            "message": "",
            "podName": "pod-p",
            "podUID": "p",
            "finishedAt": "2026-01-01T00:00:00Z",
        },
    }
    assert read_status(patch) == bound_status(OWN)
    pending = status_patch(ClaimStatus(PENDING, Reason.WAITING, "x"), "c-1", "17", now)["status"]
    assert isinstance(pending, dict)
    assert "finishedAt" not in pending


@dataclass
class World:
    """One claim, its pods, and a daemon that may end at any time. The daemon's view of the claim may be outdated."""

    exists: bool = True
    written: ClaimStatus = NOTHING
    version: int = 1
    seen: ClaimStatus = NOTHING
    seen_version: int = 1
    seen_exists: bool = True
    pods: tuple[PodState, ...] = ()
    asked: RequestState | None = None
    results: int = 0
    made: int = 0

    def known(self) -> ClaimFacts:
        return ClaimFacts(
            "c-1" if self.seen_exists else "", written=self.seen, pods=self.pods, asked=self.asked, pool="workers"
        )

    def catch_up(self) -> None:
        self.seen, self.seen_version, self.seen_exists = self.written, self.version, self.exists

    def claim_a_pod(self) -> PodState:
        self.made += 1
        found = replace(OWN, uid=f"p{self.made}", name=f"pod-{self.made}")
        self.pods += (found,)
        return found

    def happen(self, event: str) -> None:
        waits = self.asked is not None and self.asked.answer is None
        match event:
            case "act":
                self.act()
            case "catch up":
                self.catch_up()
            case "claimed" if waits:
                self.asked = RequestState(Answer.CLAIMED, self.claim_a_pod())
            case "shown late" if waits:  # An earlier daemon has claimed this pod.
                self.claim_a_pod()
            case "claimed unseen" if waits:  # The daemon ends before it gets the answer.
                self.claim_a_pod()
                self.asked = None
            case "expired" if waits:
                self.asked = RequestState(Answer.EXPIRED)
            case "conflicted" if waits:
                self.asked = RequestState(Answer.CONFLICTED)
            case "crash":
                self.asked = None
                self.catch_up()
            case "delete":
                self.exists = False
            case _:
                pass

    def act(self) -> None:
        step = decide(self.known())
        match step:
            case RequestPod():
                self.asked = RequestState()
            case WriteStatus(status):
                if self.exists and self.seen_version == self.version:  # The API server checks this, too.
                    self.results += status.phase in (BOUND, FAILED, EXPIRED)
                    self.written, self.version = status, self.version + 1
            case ReleasePods(pods, withdraw):
                gone = {each.uid for each in pods if not self.exists or self.written.pod_uid not in ("", each.uid)}
                gone |= {each.uid for each in pods if self.written.phase in (FAILED, EXPIRED)}
                self.pods = tuple(each for each in self.pods if each.uid not in gone)
                self.asked = None if withdraw else self.asked
            case Wait():
                if not self.seen_exists or self.seen.phase in (BOUND, FAILED, EXPIRED):
                    self.asked = None


EVENTS = st.lists(
    st.sampled_from(
        ["act", "catch up", "claimed", "claimed unseen", "shown late", "expired", "conflicted", "crash", "delete"]
    )
)


@given(EVENTS)
def test_any_order_of_events_has_one_result_and_no_extra_pod(events: list[str]) -> None:
    world = World()
    for event in events:
        world.happen(event)
        assert world.results <= 1
    for _ in range(8):
        world.catch_up()
        if world.asked is not None and world.asked.answer is None:
            world.asked = RequestState(Answer.CLAIMED, world.claim_a_pod())
        world.act()
    world.catch_up()
    if world.exists:
        assert world.results == 1
        assert [each.uid for each in world.pods] == ([world.written.pod_uid] if world.written.phase == BOUND else [])
    else:
        assert world.pods == ()
    assert decide(world.known()) == Wait()
