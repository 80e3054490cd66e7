"""The effect of each fact on the records of a package."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

import pytest

from tests.runtime.package.test_machine import APP, NAME, NOW, PLAIN, SCRIPTED, package
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.registry.registry import Manifest
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.sources.source import FolderSource
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.enabled_vote import KeptVote
from wharfinger.runtime.package.facts import (
    AttemptBegun,
    AttemptFailed,
    AttemptSettled,
    CrdsBegun,
    CrdsEnded,
    DesiredGiven,
    DisableBegun,
    DisableMissed,
    DriftSeen,
    Fact,
    HookRan,
    LaneFailed,
    LaneRecovered,
    LoadCompleted,
    ReconciliationBegun,
    RefreshWanted,
    ScriptDone,
    SettingsGiven,
    SuspendBegun,
    UpdateBegun,
    ValuesOutdated,
    VoteBegun,
    Warned,
)
from wharfinger.runtime.package.findings import (
    AccountGiven,
    AdoptedForRemoval,
    ChartApplied,
    ChartSearched,
    Configured,
    CrdsEstablished,
    Downloaded,
    FoundInstalled,
    FoundStored,
    HooksStarted,
    HooksStarting,
    HooksStopped,
    HooksUnusable,
    ObjectsKnown,
    OverridesMatched,
    PackageRead,
    Renamed,
    ScriptAnswered,
    ScriptAsked,
    SettingsConverted,
    StartupHookDone,
    Unpacked,
    ValuesPatched,
    ValuesRead,
    Verified,
    VoteReported,
    WebhooksSearched,
)
from wharfinger.runtime.package.state import NO_FAILURES, NO_SETTINGS, Brought, HookHistory, Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.reasons import Reason

KEY: Final = ObjectKey(ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True), "prod", "web")
SETTINGS: Final = replace(NO_SETTINGS, settings={"a": 1})


def after(*facts: Fact, known: Package | None = None) -> Package:
    known = known or package()
    for fact in facts:
        known = applied(known, fact)
    return known


def given(requested: str = "", *, first: bool = False) -> DesiredGiven:
    return DesiredGiven("web", "2.0.0", FolderSource(Path("/y")), SETTINGS, Directives(requested=requested), first)


@pytest.mark.parametrize(
    ("fact", "record", "expected"),
    [
        (FoundInstalled("other", "3.0.0"), "desired", {"package": "other", "version": "3.0.0"}),
        (SettingsGiven(SETTINGS), "desired", {"settings": SETTINGS}),
        (RefreshWanted(), "desired", {"refresh": True}),
        (UpdateBegun(NOW), "desired", {"begun": NOW}),
        (Unpacked(Path("/tree")), "files", {"tree": Path("/tree")}),
        (PackageRead(PLAIN, ()), "files", {"definition": PLAIN, "hooks": ()}),
        (HooksUnusable(), "files", {"hooks": ()}),
        (LoadCompleted(), "files", {"loaded_once": True}),
        (WebhooksSearched("sha256:a", mentioned=True), "files", {"mentions_webhooks": ("sha256:a", True)}),
        (DisableBegun("why", uninstall=True), "node", {"disabling": ("why", True)}),
        (DisableMissed("why", uninstall=False), "node", {"missed_disable": ("why", False)}),
        (ScriptAsked(("dns",)), "vote", {"saw": ("dns",), "voting": None}),
        (VoteReported("sha256:a"), "vote", {"asked_about": "sha256:a"}),
        (SettingsConverted(SETTINGS), "configuration", {"newest": SETTINGS, "configured": NO_SETTINGS}),
        (ValuesPatched({"b": 1}), "configuration", {"values": {"b": 1}}),
        (AdoptedForRemoval(SETTINGS, {"b": 1}), "configuration", {"configured": SETTINGS, "configured_by": None}),
        (ObjectsKnown((KEY,)), "applied", {"objects": (KEY,)}),
        (OverridesMatched(("x",)), "applied", {"unmatched": ("x",)}),
        (ValuesOutdated(), "applied", {"dirty": True}),
        (Verified(), "applied", {"verified": True}),
        (DriftSeen(("a",), ("b",)), "applied", {"drift": ("a",), "fought": ("b",)}),
        (StartupHookDone("a"), "hooks", {"startup_done": frozenset({"a"})}),
        (HookRan("a", "broken", NOW), "hooks", {"history": {"a": HookHistory(1, NOW, "broken")}}),
        (LaneFailed("a", "main", "broken"), "hooks", {"failing": {("a", "main"): "broken"}}),
        (CrdsEstablished(("v1/A",)), "crds", {"established": ("v1/A",)}),
        (Warned("drift", ("x",)), "warnings", {}),
        (Renamed(AppId("other", "shop")), "id", {}),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str | dict) else "",
)
def test_a_fact_changes_one_record(fact: Fact, record: str, expected: dict[str, object]) -> None:
    before = package()
    now = after(fact, known=before)
    assert {name: getattr(getattr(now, record), name) for name in expected} == expected
    for name in Package.__struct_fields__:
        if name != record:
            assert getattr(now, name) is getattr(before, name)


def test_files_hooks_and_names_are_recorded() -> None:
    manifest, hooks = cast("Manifest", "a manifest"), (cast("Hook", "a hook"),)
    files = after(FoundStored(manifest, Path("/tree")), PackageRead(PLAIN, hooks)).files
    assert (files.manifest, files.tree, files.hooks) == (manifest, Path("/tree"), hooks)
    assert after(PackageRead(PLAIN, hooks), HooksUnusable()).files.hooks == ()
    use = ChartUse()
    assert after(ChartSearched("sha256:a", use)).files.chart_use == ("sha256:a", use)
    started = cast("PackageHooks", "hooks")
    assert after(HooksStarted(started)).hooks.started is started
    assert after(Renamed(AppId("other", "shop"))).id == AppId("other", "shop")


def test_directives_of_an_installed_package_replace_the_previous_ones() -> None:
    directives = Directives(account="package")
    before = after(given())
    assert applied(before, FoundInstalled("other", "3.0.0", directives)).desired.directives is directives
    assert applied(before, FoundInstalled("other", "3.0.0")).desired.directives is before.desired.directives


def test_an_attempt_retains_its_permanent_failure() -> None:
    first, last = (Failure(Reason.RENDER_FAILED, text, permanent=False) for text in ("first", "last"))
    stuck = Failure(Reason.RENDER_FAILED, "stuck", permanent=True)
    tried = after(AttemptBegun("sha256:a", NOW), AttemptFailed(first), AttemptFailed(last))
    assert (tried.desired.attempt.failures, tried.desired.attempt.failure) == (2, last)
    kept = after(AttemptFailed(stuck), AttemptFailed(last), known=tried).desired.attempt
    assert (kept.failures, kept.failure, kept.settled) == (4, stuck, False)
    assert after(AttemptSettled(), known=tried).desired.attempt.settled


def test_a_new_request_needs_a_query_of_the_registry() -> None:
    assert not after(given("now", first=True), known=Package(APP, statuses.fresh(1, NOW))).desired.refresh
    assert not after(given()).desired.refresh
    again = after(given("now"))
    assert again.desired.refresh
    assert after(given("now"), known=again).desired.refresh  # still true, because a download has to end it


def test_only_a_download_from_the_registry_ends_a_refresh() -> None:
    manifest = cast("Manifest", "a manifest")
    for asked in (False, True):
        known = after(RefreshWanted(), Downloaded(manifest, asked))
        assert (known.desired.refresh, known.files.manifest) == (not asked, manifest)


def test_configured_settings_are_in_force_with_their_definition() -> None:
    now = after(Configured(SCRIPTED, SETTINGS, {"a": 1}, {"a": 1, "b": 2})).configuration
    removal = after(AdoptedForRemoval(NO_SETTINGS, {"c": 3}), known=after(Configured(SCRIPTED, SETTINGS, {}, {})))
    assert (removal.configuration.configured_by, removal.configuration.values) == (None, {"c": 3})
    assert (now.configured, now.configured_by, now.settings, now.values) == (
        SETTINGS,
        SCRIPTED,
        {"a": 1},
        {"a": 1, "b": 2},
    )


def test_fights_end_when_inputs_change() -> None:
    brought = Brought("sha256:a", "sha256:b")
    fought = after(ChartApplied((KEY,), "sha256:a", brought), DriftSeen(("a",), ("a",)))
    assert (fought.applied.objects, fought.applied.brought) == ((KEY,), brought)
    assert after(ChartApplied((KEY,), "sha256:a", brought), known=fought).applied.fought == ("a",)
    assert after(ChartApplied((KEY,), "sha256:c", None), known=fought).applied.fought == ()
    assert after(ValuesOutdated(), ValuesRead()).applied.dirty is False


def test_stopped_hooks_have_only_their_history() -> None:
    scope = WorkScope("hooks")
    started = after(HooksStarting(scope), StartupHookDone("a"), HookRan("a", "", NOW), LaneFailed("a", "x", "broken"))
    assert started.hooks.scope is scope
    stopped = after(HooksStopped(), HookRan("a", "", NOW), known=started).hooks
    assert (stopped.scope, stopped.started, stopped.startup_done, dict(stopped.failing)) == (
        None,
        None,
        frozenset(),
        {},
    )
    assert stopped.history["a"].runs == 2


def test_an_account_is_used_until_other_directives_are_given() -> None:
    before = after(given())
    known = applied(before, AccountGiven("deployer"))
    assert known.desired.account == "deployer"
    assert known.desired.directives is before.desired.directives
    assert applied(known, FoundInstalled("other", "3.0.0")).desired.account == "deployer"
    assert applied(known, FoundInstalled("other", "3.0.0", Directives(account="package"))).desired.account is None
    assert applied(known, given("now", first=False)).desired.account is None


def test_each_lane_recovers_separately() -> None:
    failing = after(LaneFailed("a", "x", "1"), LaneFailed("a", "y", "2"), LaneFailed("a", "x", "3"))
    one = after(LaneRecovered("a", "x"), known=failing)
    assert one.hooks.failing == {("a", "y"): "2"}
    assert after(LaneRecovered("a", "y"), known=one).hooks.failing is NO_FAILURES


def test_a_suspension_retains_a_disable_and_a_reconciliation_ends_it() -> None:
    both = after(DisableMissed("old", uninstall=False), DisableBegun("new", uninstall=True))
    assert after(SuspendBegun(), known=both).node.missed_disable == ("new", True)
    assert after(DisableMissed("old", uninstall=False), SuspendBegun()).node.missed_disable == ("old", False)
    node = after(ReconciliationBegun(), known=both).node
    assert (node.disabling, node.missed_disable) == (None, None)


def test_a_vote_has_a_scope_until_it_is_done() -> None:
    scope, kept = WorkScope("vote"), KeptVote("key", enabled=True, reason="")
    begun = after(VoteBegun(scope, "", ("dns",)))
    assert (begun.vote.voting, begun.vote.saw, begun.vote.reason) == (scope, ("dns",), "")
    asked = after(ScriptAsked(("dns", "web")), ScriptAnswered(kept), VoteBegun(scope, "why", None), known=begun)
    assert (asked.vote.voting, asked.vote.saw, asked.vote.kept) == (scope, ("dns", "web"), kept)
    assert asked.vote.reason == "why"
    done = after(ScriptDone(), known=asked).vote
    assert (done.voting, done.reason) == (None, "")


def test_the_scope_of_the_crds_ends_with_their_task() -> None:
    scope = WorkScope("crds")
    begun = after(CrdsBegun(scope))
    assert begun.crds.scope is scope
    assert after(CrdsEnded(), known=begun).crds.scope is None


def test_warnings_of_a_subject_replace_earlier_warnings() -> None:
    now = after(Warned("a", ("1",)), Warned("b", ("2",)), Warned("a", ()))
    assert now.warnings == {"a": (), "b": ("2",)}
    assert now.id.name == NAME
    assert datetime(2026, 1, 1, tzinfo=UTC) == NOW
