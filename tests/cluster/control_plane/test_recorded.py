"""The control plane answers as the recorded kube-apiserver did, except where it is known to differ."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.control_plane.replay import Bindings, load, replay_step
from wharfinger.cluster.control_plane.service import open_control_plane

TOKEN = "admintoken"
ROLES = "roles are stored, not yet evaluated"
REVIEWS = "the review kinds are not served yet"
QUOTED = "the message quotes the object in another order of keys"

SCENARIOS = (
    "02-discovery-b",
    "04-crud-configmap",
    "06-errors-configmap",
    "08-preconditions-configmap",
    "10-patch-json-merge-configmap",
    "14-apply-basic-configmap",
    "18-selectors-secrets",
    "20-paging-configmaps",
    "22-watch-configmap",
    "24-watch-bookmarks-configmap",
    "26-delete-finalizers-configmap",
    "28-gc-orphan-absent-owner",
    "40-crd-lifecycle-namespaced",
    "46-crd-versions",
    "52-dryrun-configmap",
    "56-auth-configmaps",
)
"""The folder holds more, for tests of single modules."""

SIMULATED = ("26-delete-finalizers-configmap", "28-gc-orphan-absent-owner")
"""Scenarios that wait for controllers; the others are replayed without, so that nobody else writes."""

KNOWN_TO_DIFFER: dict[tuple[str, int], str] = {
    ("02-discovery-b", 5): "autoscaling/v1 is not served",
    ("10-patch-json-merge-configmap", 5): QUOTED,
    ("10-patch-json-merge-configmap", 14): QUOTED,
    ("20-paging-configmaps", 19): "no controller makes the kube-root-ca.crt ConfigMap of a namespace",
    ("24-watch-bookmarks-configmap", 14): "one bookmark more: upstream's timer did not fire within this second",
    ("56-auth-configmaps", 11): ROLES,
    ("56-auth-configmaps", 13): ROLES,
    **{("56-auth-configmaps", step): REVIEWS for step in range(15, 26)},
}
"""(scenario, step) → why. A step that comes to match fails the test until it is taken out here."""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recorded(scenario: str) -> None:
    trio.run(_replay, scenario, clock=MockClock(autojump_threshold=0))


async def _replay(scenario: str) -> None:
    start, waited = datetime(2026, 11, 21, 4, tzinfo=UTC), trio.current_time()
    bindings = Bindings()
    failures = []
    async with (
        open_control_plane(
            token=TOKEN,
            simulate=scenario in SIMULATED,
            now=lambda: start + timedelta(seconds=trio.current_time() - waited),
        ) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
    ):
        for step in load(scenario):
            if step.poll:
                await trio.sleep(1)  # upstream a poll took a moment, and timestamps are whole seconds
            found = await replay_step(client, step, bindings, TOKEN)
            known = KNOWN_TO_DIFFER.get((scenario, step.number))
            if found and known is None:
                failures.append(f"step {step.number} ({step.note}):\n  " + "\n  ".join(found))
            elif known is not None and not found:
                failures.append(f"step {step.number} ({step.note}) matches now: take it out of KNOWN_TO_DIFFER")
    assert not failures, "\n".join(failures)


def test_every_known_difference_is_of_a_recorded_step() -> None:
    steps = {(scenario, step.number) for scenario in SCENARIOS for step in load(scenario)}
    assert set(KNOWN_TO_DIFFER) - steps == set()
