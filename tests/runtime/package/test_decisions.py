"""The effects of the scheduler's decisions on a package, and of its requests to run or to disable the package."""

from dataclasses import replace

import pytest
from msgspec import structs

from tests.runtime.package.test_machine import (
    CYCLE,
    IDLE,
    LOADING,
    NAME,
    PLAIN,
    SCRIPTED,
    SUSPENDED,
    WITH_CRDS,
    after,
    effects,
    installed,
    loaded,
    offer,
    package,
    refused,
)
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import (
    BeginDisable,
    BeginReconciliation,
    BeginVote,
    Effect,
    GiveWay,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    CrdsStarted,
    DecisionMade,
    DecisionReported,
    DisableOrdered,
    NeedsChanged,
    NodeAccepted,
    NodeRefused,
    NodeSettled,
    RunDone,
    RunOrdered,
    VoteRecorded,
)
from wharfinger.runtime.package.findings import PackageRead
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import NO_SETTINGS, Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import GLOBAL, ModuleId
from wharfinger.runtime.scheduler.events import Completed, Decided, Failed, NodeRemoved, ScriptVoted
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason


@pytest.mark.parametrize(
    ("known", "around", "expected"),
    [
        (package(), IDLE, BeginReconciliation(7, "why")),
        (loaded(), LOADING, Tell(Failed(NAME, 7))),
        (loaded(), SUSPENDED, BeginReconciliation(7, "why")),
        (refused(), IDLE, offer(fresh=True)),
        (refused(), SUSPENDED, BeginReconciliation(7, "why")),
        (loaded(), IDLE, BeginReconciliation(7, "why")),
    ],
)
def test_an_ordered_run_begins_or_is_answered(known: Package, around: Around, expected: Effect) -> None:
    assert effects(known, RunOrdered(7, "why"), around) == (expected,)
    assert after(known, RunOrdered(7, "why"), around).node.run == 7


def test_an_ordered_run_of_the_global_hooks_begins_a_round() -> None:
    known = package(identity=ModuleId(GLOBAL))
    assert effects(known, RunOrdered(7, "why")) == (Simple.ROUND_BEGINS, BeginReconciliation(7, "why"))
    assert effects(known, RunOrdered(7, "why"), LOADING) == (Simple.ROUND_BEGINS, Tell(Failed(GLOBAL, 7)))
    refusing = after(applied(known, PackageRead(PLAIN, ())), NodeRefused(CYCLE, fresh=True, established=()))
    assert effects(refusing, RunOrdered(7, "why")) == (Simple.ROUND_BEGINS, offer(fresh=True))
    done = (Simple.RUN_COMPLETE, Tell(Completed(GLOBAL, 7)), Simple.ROUND_RAN)
    assert effects(known, RunDone(7)) == done


@pytest.mark.parametrize(
    ("known", "around", "missed"),
    [
        (package(), IDLE, False),
        (package(), LOADING, True),
        (loaded(), LOADING, False),
        (loaded(), SUSPENDED, True),
        (refused(), IDLE, False),
        (loaded(), IDLE, False),
    ],
)
def test_an_ordered_disable_begins_or_is_recorded_as_missed(known: Package, around: Around, missed: bool) -> None:
    order = DisableOrdered("gone", uninstall=True)
    assert effects(known, order, around) == (() if missed else (BeginDisable("gone", uninstall=True),))
    assert after(known, order, around).node.missed_disable == (("gone", True) if missed else None)


@pytest.mark.parametrize(
    ("known", "around", "begins"),
    [
        (loaded(WITH_CRDS), IDLE, True),
        (loaded(), IDLE, False),
        (loaded(WITH_CRDS), LOADING, False),
        (loaded(WITH_CRDS), SUSPENDED, False),
        (refused(WITH_CRDS), IDLE, False),
        (after(loaded(WITH_CRDS), CrdsStarted(WorkScope("crds"))), IDLE, False),
    ],
)
def test_an_allowed_package_ensures_its_crds(known: Package, around: Around, begins: bool) -> None:
    if known.files.definition is WITH_CRDS and known.node.refused is None:
        known = structs.replace(known, crds=structs.replace(known.crds, established=None))
    assert effects(known, DecisionMade(allowed=True), around) == ((Simple.CRDS,) if begins else ())
    assert effects(known, DecisionMade(allowed=False), around) == ()


def test_a_missed_disable_is_dropped_by_an_approval_only() -> None:
    known = after(loaded(), DisableOrdered("gone", uninstall=False), SUSPENDED)
    assert after(known, DecisionMade(allowed=False)).node.missed_disable == ("gone", False)
    assert after(known, DecisionMade(allowed=True)).node.missed_disable is None


def test_an_accepted_node_is_reported_and_settled() -> None:
    known = package(PackageRead(PLAIN, ()))
    vote = Tell(ScriptVoted(NAME, None))
    assert effects(known, NodeAccepted(PLAIN, fresh=True, stored=False)) == (vote, Simple.RESTATE, Simple.SETTLE)
    assert effects(known, NodeAccepted(PLAIN, fresh=False, stored=False)) == (vote, Simple.RESTATE)
    assert effects(known, NodeAccepted(PLAIN, fresh=False, stored=True)) == (vote,)
    cast = ScriptVoted(NAME, enabled=False, reason="no")
    known = after(known, VoteRecorded(cast), LOADING)
    assert effects(known, NodeAccepted(PLAIN, fresh=True, stored=False))[0] == Tell(cast)
    assert after(known, NodeAccepted(PLAIN, fresh=True, stored=False)).node.joined is PLAIN


def test_a_refused_node_leaves_the_previous_node_in_place() -> None:
    before = installed(loaded())
    known = after(applied(before, PackageRead(WITH_CRDS, ())), NeedsChanged())
    assert known.crds.established is None
    known, done = step(known, NodeRefused(CYCLE, fresh=True, established=()), IDLE)
    assert (known.node.joined, known.node.refused, known.crds.established) == (PLAIN, CYCLE, ())
    assert known.status.stages[Stage.REQUIREMENTS].truth is Truth.FALSE
    assert Tell(NodeRemoved(NAME)) not in done
    new = package(PackageRead(PLAIN, ()))
    refusal = NodeRefused(CYCLE, fresh=True, established=())
    assert effects(new, refusal) == (*effects(installed(new), refusal), Tell(NodeRemoved(NAME)))
    assert GiveWay(0, at_once=True) in effects(new, refusal)
    # Only the changed dependencies of the installed version are refused, so this version stays.
    assert after(before, NodeRefused(CYCLE, fresh=False, established=())).node.refused is None
    # The approval is about the earlier version, so it is not shown.
    shown = after(known, DecisionReported(Decided(NAME, allowed=True, reason="Met", message="")))
    assert shown.status.stages[Stage.REQUIREMENTS].reason == Reason.DEPENDENCY_CYCLE
    shown = after(before, DecisionReported(Decided(NAME, allowed=True, reason="Met", message="")))
    assert shown.status.stages[Stage.REQUIREMENTS].truth is Truth.TRUE
    assert after(known, NeedsChanged()).node.refused is None


def test_a_settled_node_begins_its_next_operation() -> None:
    on, off = NodeSettled(enabled=True, unwanted=False), NodeSettled(enabled=False, unwanted=True)
    crds = structs.replace(loaded(WITH_CRDS), crds=structs.replace(loaded().crds, established=None))
    assert effects(crds, on) == (Simple.CRDS,)
    assert effects(loaded(), off) == ()
    missed = after(loaded(), DisableOrdered("gone", uninstall=False), SUSPENDED)
    assert effects(missed, off) == (BeginDisable("gone", uninstall=True),)
    assert effects(missed, on) == ()
    assert after(missed, on).node.missed_disable is None
    assert effects(loaded(SCRIPTED), on) == (BeginVote("SettingsChanged"),)
    both = loaded(replace(SCRIPTED, crds=True))
    both = structs.replace(both, crds=structs.replace(both.crds, established=None))
    assert effects(both, on) == (Simple.CRDS, BeginVote("SettingsChanged"))
    asked = structs.replace(loaded(SCRIPTED), vote=structs.replace(loaded().vote, asked_about=NO_SETTINGS.checksum))
    assert effects(asked, on) == ()
