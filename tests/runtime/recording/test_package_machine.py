"""The machine of a package in a recording: every event and effect can be written and read."""

from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from tests.runtime.support.recorded import DEFINITION, T0
from wharfinger.packages.sources.source import FolderSource
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle.desired_state import Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package import effects, events
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import Effect, Log, Offer, Simple, Tell
from wharfinger.runtime.package.events import (
    Changed,
    CrdsStarted,
    DecisionMade,
    DesiredAdopted,
    Event,
    NodeAccepted,
    StageFailed,
)
from wharfinger.runtime.package.facts import DesiredGiven, VoteBegun
from wharfinger.runtime.package.findings import AccountGiven, PackageRead, Verified
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import NO_SETTINGS, Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.recording.canonical import CanonicalError, normal, unmasked
from wharfinger.runtime.recording.machines import PACKAGE
from wharfinger.runtime.recording.marks import plain
from wharfinger.runtime.recording.package_machine import PACKAGE_CODEC, package_step, surroundings
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.upgrade_policy import UpgradePolicy
from wharfinger.runtime.scheduler.events import Rescheduled
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.versions.rollback_note import RollbackNote

FRESH = Package(AppId("shop", "web"), statuses.fresh(1, T0))
DESIRED = DesiredState("oci://r/x", "web", "1.0.0", "sha256:a")
NOTE = RollbackNote(3, "1.0.0", "2.0.0", "UpgradeFailed", "no")
DIRECTIVES = Directives(account="package", asked="sha256:b", upgrade=UpgradePolicy(rollback=True), rolled_back=NOTE)
GIVEN = DesiredGiven("web", "2.0.0", FolderSource(Path("/x")), NO_SETTINGS, DIRECTIVES, first=False)
ADOPTED = DesiredAdopted(
    GIVEN, Decision(DecisionKind.UPDATE), 2, WorkScope("update"), new_login=False, needs_changed=True
)


@pytest.mark.parametrize("module", [events, effects])
def test_the_codec_supports_all_records(module: ModuleType) -> None:
    unions = [each for name, each in vars(module).items() if name in ("Event", "Effect")]
    kinds = {kind for union in unions for kind in get_args(union)} - {Simple, Log}
    assert kinds
    assert kinds <= PACKAGE_CODEC.kinds


def test_running_and_cancelled_operations_are_recorded_with_events() -> None:
    store = LifecycleStore()
    store.reconcile("shop.web", DESIRED)
    store.begin_update("shop.web")
    assert surroundings(FRESH, Around(T0, store.package("shop.web"))) == [T0, 1]
    store.begin_reconciliation("shop.web", "again")
    assert surroundings(FRESH, Around(T0, store.package("shop.web"))) == [T0, 5]
    scope = WorkScope("vote")
    known = step(applied(FRESH, VoteBegun(scope, "", ())), CrdsStarted(scope), Around(T0, None))[0]
    assert surroundings(known, Around(T0, None)) == [T0, 0]
    scope.cancel("test")
    assert surroundings(known, Around(T0, None)) == [T0, 24]


def test_a_recorded_step_is_replayed_with_the_same_result() -> None:
    around = Around(T0, None)
    loaded, _ = step(
        applied(FRESH, PackageRead(DEFINITION, ())), NodeAccepted(DEFINITION, fresh=True, stored=False), around
    )
    writer, reader = PACKAGE_CODEC.writer(), PACKAGE_CODEC.reader()
    again = reader.decode(normal(writer.encode(loaded)))
    failure = Failure(Reason.RENDER_FAILED, "broken", permanent=True)
    told: tuple[Event, ...] = (
        DecisionMade(allowed=True),
        Verified(),
        Changed(statuses.succeeded(loaded.status, Stage.LOADED, T0)),
        ADOPTED,
        StageFailed(Stage.LOADED, failure),
        AccountGiven("deployer"),
    )
    made: list[Effect] = []
    for event in told:
        writer.status = loaded.status
        given = reader.decode(normal(writer.quick(event, unmasked, set())))
        after, effects_again = package_step(again, given, normal(surroundings(loaded, around)))
        expected, expected_effects = step(loaded, event, around)
        assert isinstance(after, Package)
        assert after.status == expected.status
        assert after.applied.verified == expected.applied.verified
        assert after.desired.attempt == expected.desired.attempt
        assert after.desired.account == expected.desired.account
        assert normal(PACKAGE.changes(reader, again, after, lambda _: unmasked)) == plain(
            normal(PACKAGE.changes(writer, loaded, expected, lambda _: unmasked))
        )
        assert len(effects_again) == len(expected_effects)
        loaded, again = expected, after
        made += expected_effects
    assert loaded.status.rollback == NOTE
    assert Simple.NOTIFY in made


def test_effects_are_written_without_the_texts_of_log_lines() -> None:
    codec = PACKAGE_CODEC.writer()
    assert codec.encode(Log("hunter2", warning=True)) == ["Log", "", True]
    assert codec.decode(["Log", "", True]) == Log("", warning=True)
    assert codec.encode(Tell(Rescheduled("a", "why"))) == ["Tell", ["SchedulerRescheduled", "a", "why"]]
    offer = codec.encode(Offer(DEFINITION, fresh=True, stored=False, established=()))
    assert offer == ["Offer", ["~", 1, "Definition", "web", "1.0.0", False, False], True, False, ["()"]]


def test_invalid_surroundings_are_refused() -> None:
    with pytest.raises(CanonicalError):
        package_step(FRESH, DecisionMade(allowed=True), "x")
