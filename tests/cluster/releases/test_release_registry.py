"""The registry, which stores what the engine knows about each release."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from wharfinger.cluster.drift.comparison import Drift, DriftedField
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.desired import Identity
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.release_registry import Known, ReleaseRegistry
from wharfinger.cluster.releases.request import Outcome, ReleaseResult
from wharfinger.kube.resource import ObjectKey

WEB, DB = Owner("web", "default"), Owner("db", "default")


class Listener:
    """A listener that records its notifications."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Owner]] = []

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        self.heard.append(("drifted", owner))

    def health_changed(self, owner: Owner, health: Health) -> None:
        self.heard.append(("health", owner))

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Ignore the report about pruned objects."""

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Ignore the report about troubles of a release."""

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        self.heard.append((f"{release_revision} by {by}", owner))


async def test_operations_of_a_release_run_one_at_a_time_in_order(autojump_clock: MockClock) -> None:
    board, story = ReleaseRegistry(), list[str]()

    async def work(owner: Owner, name: str) -> None:
        async with board.turn(owner):
            story.append(f"{name} begins")
            await trio.sleep(1)
            story.append(f"{name} ends")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, WEB, "first")
        await wait_all_tasks_blocked()
        nursery.start_soon(work, WEB, "second")
        nursery.start_soon(work, DB, "other")
        await wait_all_tasks_blocked()
        assert (board.busy, board.is_busy(WEB), board.is_busy(Owner("x", "y"))) == (3, True, False)
    assert [line for line in story if not line.startswith("other")] == [
        "first begins",
        "first ends",
        "second begins",
        "second ends",
    ]
    assert story.index("other begins") < story.index("first ends")
    assert (board.busy, board.turns) == (0, {})


async def test_a_turn_ends_even_with_an_exception() -> None:
    board = ReleaseRegistry()
    with pytest.raises(LookupError):
        async with board.turn(WEB):
            raise LookupError
    assert not board.is_busy(WEB)


def test_every_listener_is_notified() -> None:
    board, one, other = ReleaseRegistry(), Listener(), Listener()
    board.report_health(WEB, Health())
    board.listeners = (one, other)
    board.report_drift(WEB, (), ())
    board.report_health(DB, Health())
    board.report_foreign(WEB, 3, "ann")
    assert one.heard == other.heard == [("drifted", WEB), ("health", DB), ("3 by ann", WEB)]


def test_drifted_fields_of_an_object_are_listed() -> None:
    board, identity = ReleaseRegistry(), Identity("ConfigMap", "default", "a")
    assert board.drifted_fields(WEB, identity) == ""
    fields = (DriftedField("/data/a", "ed"), DriftedField("/data/b", ""))
    board.report_drift(WEB, (Drift(identity, missing=False, fields=fields),), ())
    assert board.drifted_fields(WEB, identity) == "/data/a by ed, /data/b"
    assert board.drifted_fields(DB, identity) == ""


def test_a_forgotten_release_is_removed_from_the_registry() -> None:
    board = ReleaseRegistry()
    board.known[WEB] = Known("f", ReleaseResult(Outcome.UNCHANGED, 1, ()), ())
    board.whole.add(WEB)
    board.forget(WEB)
    board.forget(DB)
    assert (board.known, board.whole) == ({}, set())
