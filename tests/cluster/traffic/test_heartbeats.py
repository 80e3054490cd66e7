"""Heartbeats of watches: when a watch counts as stale, and how that is reported."""

import pytest

from wharfinger.cluster.traffic.heartbeats import MARGIN_S, Followed, Heartbeats

PODS = Followed("Pod", "prod", "app=x", "metadata.name=a")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("followed", "words"),
    [
        (PODS, "Pod in prod (app=x, metadata.name=a)"),
        (Followed("Deployment.apps"), "Deployment.apps"),
        (Followed("Pod", "", "", "a=b"), "Pod (a=b)"),
    ],
)
def test_a_followed_target_is_formatted(followed: Followed, words: str) -> None:
    assert str(followed) == words


def test_a_watch_is_stale_if_neither_server_nor_task_is_active() -> None:
    clock = Clock()
    beats = Heartbeats(clock)
    with beats.follow(PODS) as beat:
        beat.begin("watching", 150.0)
        assert beats.signs()[0].heard_s_ago is None
        clock.now += 150.0 + MARGIN_S
        assert not beats.signs()[0].is_stale
        clock.now += 1.0
        sign = beats.signs()[0]
        assert sign.is_stale
        assert str(sign) == (
            "the watch of Pod in prod (app=x, metadata.name=a) hangs: no sign of life for 211 s while watching, "
            "the limit is 210 s"
        )
        beat.received()
        assert not beats.signs()[0].is_stale
        clock.now += 211.0
        beat.begin("pausing", 30.0)  # a failed attempt is a heartbeat, but no sign of life of the server
        sign = beats.signs()[0]
        assert (sign.is_stale, sign.heard_s_ago, sign.action) == (False, 211.0, "pausing")
    assert beats.signs() == ()


def test_heartbeats_are_sorted_by_target() -> None:
    beats = Heartbeats(Clock())
    with beats.follow(PODS), beats.follow(Followed("ConfigMap")), beats.follow(PODS):
        assert [sign.followed.kind for sign in beats.signs()] == ["ConfigMap", "Pod", "Pod"]
