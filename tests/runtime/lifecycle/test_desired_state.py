"""Decisions about a changed desired state, field by field (spec/runtime §1.4, §2.2)."""

from dataclasses import fields, replace
from typing import Final

import pytest

from wharfinger.runtime.lifecycle.desired_state import Change, Decision, DecisionKind, DesiredState, decide

V1: Final = DesiredState("https://r", "web", "1.0.0", "sha256:a")
SUSPENDED: Final = replace(V1, suspended=True)

CHANGED: Final[dict[Change, tuple[DesiredState, DecisionKind]]] = {
    Change.SOURCE: (replace(V1, source="http://r"), DecisionKind.UPDATE),
    Change.PACKAGE: (replace(V1, package="shop"), DecisionKind.UPDATE),
    Change.VERSION: (replace(V1, version="1.0.1"), DecisionKind.UPDATE),
    Change.DIGEST: (replace(V1, digest="sha256:d"), DecisionKind.UPDATE),
    Change.NAMESPACE: (replace(V1, namespace="prod"), DecisionKind.UPDATE),
    Change.FORCED: (replace(V1, forced="now"), DecisionKind.UPDATE),
    Change.RESET: (replace(V1, reset="now"), DecisionKind.UPDATE),
    Change.REQUESTED: (replace(V1, requested="now"), DecisionKind.UPDATE),
    Change.RESOURCES: (replace(V1, resources="sha256:c"), DecisionKind.RECONFIGURE),
    Change.SETTINGS: (replace(V1, settings_checksum="sha256:b"), DecisionKind.RECONFIGURE),
    Change.SETTINGS_VERSION: (replace(V1, settings_version=2), DecisionKind.RECONFIGURE),
    Change.MAINTENANCE: (replace(V1, maintenance="NoResourceReconciliation"), DecisionKind.RECONFIGURE),
    Change.RELEASE_POLICY: (replace(V1, upkeep="sha256:d"), DecisionKind.RECONFIGURE),
    Change.PATCHES: (replace(V1, patches="sha256:e"), DecisionKind.RECONFIGURE),
    Change.UPGRADE: (replace(V1, upgrade="sha256:f"), DecisionKind.RECONFIGURE),
    Change.ACCOUNT: (replace(V1, account="deployer"), DecisionKind.RECONFIGURE),
    Change.SCOPE: (replace(V1, cluster_scope=True), DecisionKind.RECONFIGURE),
    Change.SUSPENDED: (SUSPENDED, DecisionKind.SUSPEND),
}


@pytest.mark.parametrize("change", Change)
def test_each_changed_field_gives_its_change_and_decision(change: Change) -> None:
    after, kind = CHANGED[change]
    assert decide(V1, after) == Decision(kind, (change,))
    assert decide(after, after) == Decision(DecisionKind.NONE)


def test_every_field_has_a_change() -> None:
    assert len(Change) == len(fields(DesiredState))


def test_a_new_package_is_an_update_unless_it_is_suspended() -> None:
    assert decide(None, V1) == Decision(DecisionKind.UPDATE)
    assert decide(None, SUSPENDED) == Decision(DecisionKind.SUSPEND)


def test_an_update_includes_a_reconfiguration() -> None:
    both = decide(V1, replace(V1, version="2.0.0", settings_checksum="sha256:b"))
    assert both == Decision(DecisionKind.UPDATE, (Change.VERSION, Change.SETTINGS))


def test_suspending_and_resuming_outrank_other_changes() -> None:
    later = replace(V1, version="2.0.0")
    paused = replace(later, suspended=True)
    assert decide(V1, paused) == Decision(DecisionKind.SUSPEND, (Change.VERSION, Change.SUSPENDED))
    assert decide(SUSPENDED, later) == Decision(DecisionKind.RESUME, (Change.VERSION, Change.SUSPENDED))
    assert decide(SUSPENDED, paused) == Decision(DecisionKind.NONE, (Change.VERSION,))


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (replace(V1, resources="r", settings_checksum="s", settings_version=1, maintenance="m"), Change.RESOURCES),
        (replace(V1, settings_checksum="s", settings_version=1, maintenance="m", version="2"), Change.SETTINGS),
        (replace(V1, settings_version=1, maintenance="m"), Change.SETTINGS_VERSION),
        (replace(V1, maintenance="m", forced="now"), Change.MAINTENANCE),
        (replace(V1, forced="now"), "DesiredStateChanged"),
        (V1, "DesiredStateChanged"),
    ],
)
def test_reasons_follow_their_precedence(after: DesiredState, reason: str) -> None:
    assert decide(V1, after).reason == reason
