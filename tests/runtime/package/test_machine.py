"""The state machine of one package: the rows of the table in its docstring."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.packages.sources.source import FolderSource
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle.desired_state import Change, Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import (
    BeginUpdate,
    Effect,
    Log,
    Offer,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    DecisionMade,
    DesiredAdopted,
    Event,
    NodeAccepted,
    NodeRefused,
    UpdateStarted,
    UpdateWanted,
    ValuesChanged,
)
from wharfinger.runtime.package.facts import DesiredGiven, Fact, Offered
from wharfinger.runtime.package.findings import HooksUnusable, PackageRead, ValuesRead, Verified
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import NO_SETTINGS, Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import AppId, PackageId
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.scheduler.events import (
    Rescheduled,
)
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.reasons import Reason

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
APP: Final = AppId("prod", "shop")
NAME: Final = APP.name
PLAIN: Final = Definition(
    Layout.PACKAGE, None, "web", "1.0.0", "", "", NO_REQUIREMENTS, 900, critical=False, chart=None,
    static_values={}, settings_schema=None, values_schema=None, helm_schema=None, hooks=False, enabled_script=False,
    crds=False, images={},
)  # fmt: skip
WITH_CRDS: Final = replace(PLAIN, crds=True)
SCRIPTED: Final = replace(PLAIN, enabled_script=True)
CYCLE: Final = Failure(Reason.DEPENDENCY_CYCLE, "a cycle", permanent=True)
DESIRED: Final = DesiredState("folder:/x", "web", "1.0.0", "sha256:a")
GIVEN: Final = DesiredGiven("web", "1.0.0", FolderSource(Path("/x")), NO_SETTINGS, Directives(), first=True)
IDLE: Final = Around(NOW, None)


def operations(*, suspended: bool = False, loading: bool = False, applying: bool = False) -> Around:
    """Return the surroundings of a package for which these operations are running."""
    store = LifecycleStore()
    store.reconcile(NAME, DESIRED)
    if loading:
        store.begin_update(NAME)
    if applying:
        store.begin_reconciliation(NAME, "test")
    if suspended:
        store.reconcile(NAME, replace(DESIRED, suspended=True))
    return Around(NOW, store.package(NAME))


LOADING: Final = operations(loading=True)
SUSPENDED: Final = operations(suspended=True)


def package(*facts: Fact, identity: PackageId = APP) -> Package:
    """Return a package with a desired state and these facts."""
    known = Package(identity, statuses.fresh(1, NOW))
    for fact in (GIVEN, *facts):
        known = applied(known, fact)
    return known


def loaded(definition: Definition = PLAIN) -> Package:
    """Return a package that has been loaded, and whose definition the scheduler has accepted as a node."""
    return after(package(PackageRead(definition, ())), NodeAccepted(definition, fresh=True, stored=False))


def refused(definition: Definition = PLAIN) -> Package:
    return after(package(PackageRead(definition, ())), NodeRefused(CYCLE, fresh=True, established=()))


def installed(known: Package) -> Package:
    return structs.replace(known, status=structs.replace(known.status, installed_since=NOW, version="1.0.0"))


def after(known: Package, event: Event, around: Around = IDLE) -> Package:
    return step(known, event, around)[0]


def effects(known: Package, event: Event, around: Around = IDLE) -> tuple[Effect, ...]:
    """Return the effects of an event, without log lines."""
    return tuple(effect for effect in step(known, event, around)[1] if not isinstance(effect, Log))


def offer(definition: Definition = PLAIN, *, fresh: bool = False) -> Offer:
    return Offer(definition, fresh, stored=False, established=())


# --- the table -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "around", "new_login", "expected"),
    [
        (DecisionKind.SUSPEND, SUSPENDED, False, (Simple.SUSPEND,)),
        (DecisionKind.RECONFIGURE, IDLE, False, (Simple.UNPARK, Tell(Rescheduled(NAME, "SettingsChanged")))),
        (DecisionKind.RECONFIGURE, LOADING, False, (Simple.UNPARK,)),
        (DecisionKind.RECONFIGURE, LOADING, True, (BeginUpdate(2),)),
        (DecisionKind.NONE, LOADING, True, (BeginUpdate(2),)),
        (DecisionKind.NONE, IDLE, False, ()),
        (DecisionKind.REMOVING, IDLE, False, ()),
    ],
)
def test_a_desired_state_begins_the_decided_operation(
    kind: DecisionKind, around: Around, new_login: bool, expected: tuple[Effect, ...]
) -> None:
    decision = Decision(kind, (Change.SETTINGS,))
    assert (
        effects(loaded(), DesiredAdopted(GIVEN, decision, 2, None, new_login, needs_changed=False), around) == expected
    )
    more = effects(loaded(), DesiredAdopted(GIVEN, decision, 2, None, new_login, needs_changed=True), around)
    assert more == (*expected, Simple.NEEDS_CHANGED)


@pytest.mark.parametrize("kind", [DecisionKind.UPDATE, DecisionKind.RESUME])
def test_a_desired_state_begins_its_update_in_the_same_step(kind: DecisionKind) -> None:
    scope, suspended = WorkScope("update"), Decision(DecisionKind.SUSPEND)
    known = after(loaded(), DesiredAdopted(GIVEN, suspended, 1, None, new_login=False, needs_changed=False))
    assert known.status.suspended
    desired = DesiredAdopted(GIVEN, Decision(kind), 2, scope, new_login=False, needs_changed=True)
    assert effects(known, desired) == (*effects(known, UpdateStarted(scope, 2)), Simple.NEEDS_CHANGED)
    assert after(known, desired).status.suspended is (kind is DecisionKind.UPDATE)
    assert after(known, desired).status.generation == 2
    refused = effects(known, replace(desired, scope=None))
    assert refused == (Simple.NEEDS_CHANGED,)


def test_a_changed_desired_state_is_another_attempt() -> None:
    def given(asked: str, kind: DecisionKind, known: Package) -> Package:
        desired = replace(GIVEN, directives=replace(GIVEN.directives, asked=asked))
        return after(known, DesiredAdopted(desired, Decision(kind), 2, None, new_login=False, needs_changed=False))

    first = given("sha256:a", DecisionKind.UPDATE, loaded())
    assert (first.desired.attempt.asked, first.desired.attempt.since, first.desired.attempt.changed) == (
        "sha256:a",
        NOW,
        False,
    )
    assert given("sha256:a", DecisionKind.NONE, first).desired.attempt is first.desired.attempt
    assert given("sha256:b", DecisionKind.RECONFIGURE, first).desired.attempt.changed
    assert given("sha256:b", DecisionKind.REMOVING, first).desired.attempt is first.desired.attempt


def test_an_unchanged_desired_state_is_observed() -> None:
    decision = Decision(DecisionKind.NONE)
    known = after(loaded(), DesiredAdopted(GIVEN, decision, 2, None, new_login=False, needs_changed=False))
    assert known.status.generation == 2
    other = replace(GIVEN, version="2.0.0", first=False)
    assert (
        after(known, DesiredAdopted(other, decision, 2, None, new_login=False, needs_changed=False)).desired.version
        == "2.0.0"
    )


def test_a_requested_update_queries_the_registry() -> None:
    known = loaded()
    assert not known.desired.refresh
    assert after(known, UpdateWanted(2)).desired.refresh
    assert effects(known, UpdateWanted(2)) == (BeginUpdate(2),)


def test_a_finding_changes_records_without_effects() -> None:
    known = after(loaded(), ValuesChanged("hooks/a.sh"), operations(applying=True))
    for finding in (Verified(), ValuesRead(), PackageRead(SCRIPTED, ()), HooksUnusable()):
        assert step(known, finding, IDLE) == (applied(known, finding), ())
        assert after(known, finding).status is known.status


def test_a_decision_during_a_removal_ensures_no_definitions() -> None:
    store = LifecycleStore()
    store.adopt(NAME, DESIRED)
    store.complete_update(NAME)
    known = applied(applied(package(), PackageRead(WITH_CRDS, ())), Offered(None))
    decided = DecisionMade(allowed=True)
    assert Simple.CRDS in step(known, decided, Around(NOW, store.package(NAME)))[1]
    store.begin_removal(NAME)
    assert Simple.CRDS not in step(known, decided, Around(NOW, store.package(NAME)))[1]
