"""The fence, which refuses writes of a daemon that may no longer hold the Lease."""

import pytest

from wharfinger.cluster.api.errors import FencedError
from wharfinger.cluster.lease.fence import Fence, suspended_too


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_writes_are_permitted_only_between_acquisition_and_deadline() -> None:
    clock = Clock()
    fence = Fence(clock, clock)
    with pytest.raises(
        FencedError, match="apply x: not sent, because this daemon does not hold the Lease: it is not held yet"
    ):
        fence.check("apply x")
    fence.permit(110.0)
    fence.check("apply x")
    clock.now = 109.9
    fence.check("apply x")
    clock.now = 110.0
    with pytest.raises(FencedError, match="it was not renewed in time; the daemon that holds the Lease does this"):
        fence.check("apply x")
    fence.permit(120.0)
    fence.check("apply x")
    fence.close("host_2 holds it now")
    with pytest.raises(FencedError, match="host_2 holds it now"):
        fence.check("apply x")


def test_a_suspended_machine_loses_its_permission_although_its_monotonic_clock_stopped() -> None:
    clock, boot = Clock(), Clock()
    fence = Fence(clock, boot)
    fence.permit(110.0)
    boot.now += 3600
    with pytest.raises(FencedError):
        fence.check("delete x")


def test_the_clock_that_includes_suspension_is_monotonic() -> None:
    first = suspended_too()
    assert suspended_too() >= first > 0
