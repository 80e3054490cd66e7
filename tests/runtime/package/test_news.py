"""Events that contain nothing new. The state machine would ignore them, so a check recognizes them before the machine makes a
step.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.package.test_machine import DESIRED, GIVEN, IDLE, NAME, PLAIN, after, installed, loaded
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.sources.source import FolderSource
from wharfinger.runtime.lifecycle.desired_state import Decision, DecisionKind
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.events import (
    DesiredAdopted,
    DriftReported,
    Event,
    ForeignRevision,
    HealthSeen,
    Placed,
    Progressed,
    Reachable,
    Released,
    Removing,
    StageFailed,
    Succeeded,
    Tracked,
    Troubled,
    Uninstalled,
    ValuesChanged,
    WarnedOf,
)
from wharfinger.runtime.package.findings import (
    AccountGiven,
    ObjectsKnown,
    OverridesMatched,
    PackageRead,
    ValuesRead,
    Verified,
)
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.news import is_news
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason

KEY: Final = ObjectKey(ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True), "prod", "a")
NOTHING_NEW: Final = DesiredAdopted(
    replace(GIVEN, first=False), Decision(DecisionKind.NONE), 1, None, new_login=False, needs_changed=False
)
OTHER: Final = replace(GIVEN, first=False, directives=Directives(maintenance="NoResourceReconciliation", asked="x"))
EVENTS: Final[Sequence[Event]] = (
    WarnedOf("hooks", ()), WarnedOf("hooks", ("odd",)), Troubled(()), Troubled(("stuck",)), ForeignRevision("helm"),
    OverridesMatched(()), OverridesMatched(("web",)), ObjectsKnown(()), ObjectsKnown((KEY,)), ValuesRead(), Verified(),
    Placed(), Reachable(()), Reachable((("https://x", ""),)), Tracked((), ()), Tracked(("a",), ()), Tracked((), ("a",)),
    HealthSeen(), HealthSeen(any_stalled=True, stalled="a"), HealthSeen(failed="a"), HealthSeen(rolling="a"),
    DriftReported((), ()), DriftReported(("a.b",), ()), DriftReported(("a.b",), ("a.b",)),
    NOTHING_NEW, replace(NOTHING_NEW, generation=2), replace(NOTHING_NEW, given=OTHER), AccountGiven("deployer"),
    ValuesChanged("hook"), PackageRead(PLAIN, ()), Uninstalled(), Removing("Removing", "waiting"),
    Progressed(Stage.APPLIED, "ApplyingManifests", "at work"), *(Succeeded(stage) for stage in Stage),
    StageFailed(Stage.APPLIED, Failure(Reason.DRIFT_FOUGHT, "a.b", permanent=False)),
)  # fmt: skip


@given(st.lists(st.sampled_from((*EVENTS, Released(1), Released(2))), max_size=30), st.booleans())
def test_events_without_news_change_nothing(events: list[Event], before: bool) -> None:
    known = after(installed(loaded()) if before else loaded(), Succeeded(Stage.FETCHED))
    for event in events:
        if not is_news(known, event):
            assert step(known, event, IDLE) == (known, ())
        known = after(known, event)
        if isinstance(event, Released):  # in each task, the conditions of the stage follow
            known = after(known, Succeeded(Stage.APPLIED))


def settled() -> Package:
    known = installed(loaded())
    given = replace(NOTHING_NEW, decision=Decision(DecisionKind.RECONFIGURE))
    events: tuple[Event, ...] = (given, Placed(), Released(1), *(Succeeded(stage) for stage in Stage), Verified())
    for event in events:
        known = after(known, event)
    return known


@pytest.mark.parametrize(
    "event",
    [
        WarnedOf("hooks", ()), Troubled(()), OverridesMatched(()), ObjectsKnown(()), ValuesRead(), Verified(), Placed(),
        Released(1), Reachable(()), Tracked(("a",), ()), DriftReported((), ()), NOTHING_NEW,
    ],
)  # fmt: skip
def test_repeated_reports_are_no_news(event: Event) -> None:
    assert not is_news(settled(), event)


def test_health_is_news_once_the_objects_were_judged() -> None:
    assert is_news(settled(), HealthSeen())
    applying = after(settled(), Progressed(Stage.APPLIED, "ApplyingManifests", "at work"))
    assert not is_news(applying, HealthSeen())
    assert is_news(applying, HealthSeen(any_stalled=True))


@pytest.mark.parametrize(
    "event",
    [
        replace(NOTHING_NEW, generation=2),
        replace(NOTHING_NEW, new_login=True),
        replace(NOTHING_NEW, needs_changed=True),
        replace(NOTHING_NEW, decision=Decision(DecisionKind.RECONFIGURE)),
        replace(NOTHING_NEW, given=GIVEN),
        replace(NOTHING_NEW, given=OTHER),
        replace(NOTHING_NEW, given=replace(GIVEN, first=False, source=FolderSource(Path("/y")))),
        replace(NOTHING_NEW, given=replace(GIVEN, first=False, settings=ResolvedSettings({"a": 1}))),
    ],
)
def test_a_changed_desired_state_is_news(event: Event) -> None:
    assert is_news(settled(), event)


def test_the_same_desired_state_is_news_after_an_account_was_given() -> None:
    assert is_news(after(settled(), AccountGiven("deployer")), NOTHING_NEW)


def test_the_store_makes_no_step_for_an_unchanged_state() -> None:
    steps: list[object] = []
    store = LifecycleStore(observe=lambda *each: steps.append(each))
    assert store.reconcile(NAME, DESIRED).kind is DecisionKind.UPDATE
    assert store.reconcile(NAME, DESIRED) == Decision(DecisionKind.NONE)
    assert len(steps) == 1
