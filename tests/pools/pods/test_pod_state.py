"""The state of pods, read from their objects, and the objects and patches that a pool writes."""

from dataclasses import replace

import pytest

from tests.pools.pods.podstates import POOL, pod, pool_spec
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.pools.pods.pod_state import (
    Phase,
    claim_patch,
    kept_of_pod,
    make_pod,
    read_pod,
    retire_patch,
    unknown_containers,
)
from wharfinger.pools.pods.resources import ClaimSpec

RUNNING: JsonObject = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def stored(status: JsonObject | None = None, **metadata: JsonValue) -> JsonObject:
    """Return a pod of the pool in the form in which the API server stores it."""
    made = make_pod(POOL, "pod-a")
    server: JsonObject = {"uid": "a", "resourceVersion": "7"}
    return {**made, "metadata": {**find_object(made, "metadata"), **server, **metadata}, "status": status or {}}


def test_a_new_pod_is_read_as_idle() -> None:
    found = read_pod(stored(RUNNING))
    assert found == pod("a", 7)
    assert found.usable(POOL)
    assert not found.usable(replace(POOL, uid="another"))


@pytest.mark.parametrize(
    ("status", "ready", "ended"),
    [
        ({}, False, False),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, False, False),
        ({"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}, False, False),
        ({"phase": "Failed", "reason": "Evicted"}, False, True),
        ({"phase": "Succeeded"}, False, True),
    ],
)
def test_unready_and_ended_pods_are_unusable(status: JsonObject, ready: bool, ended: bool) -> None:
    found = read_pod(stored(status))
    assert found is not None
    assert (found.ready, found.ended) == (ready, ended)
    assert not found.usable(POOL)


def test_the_reason_of_an_unready_pod_is_stored() -> None:
    waiting: JsonObject = {"state": {"waiting": {"reason": "ImagePullBackOff"}}, "name": "main"}
    found = read_pod(stored({"phase": "Pending", "containerStatuses": [waiting]}))
    assert found is not None
    assert found.problem == "container main: ImagePullBackOff"


@pytest.mark.parametrize(
    ("label", "phase"), [("idle", Phase.IDLE), ("retiring", Phase.RETIRING), ("debug", Phase.CLAIMED)]
)
def test_an_unknown_phase_label_is_read_as_claimed(label: str, phase: Phase) -> None:
    found = read_pod(stored(RUNNING, labels={"wharfinger.dev/pool": "workers", "wharfinger.dev/pool-phase": label}))
    assert found is not None
    assert found.phase is phase


def test_a_pod_that_is_being_deleted_is_leaving() -> None:
    found = read_pod(stored(RUNNING, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert found is not None
    assert found.leaving
    assert not found.usable(POOL)


def test_a_resource_version_that_is_not_a_number_makes_a_pod_unusable() -> None:
    assert read_pod(stored(resourceVersion="v7")) is None
    assert read_pod(stored(resourceVersion="")) is None


def test_a_pod_has_the_spec_of_the_template_and_is_owned_by_the_pool() -> None:
    made = make_pod(pool_spec(), "pod-a")
    assert find(made, "metadata", "labels") == {
        "app": "worker",
        "wharfinger.dev/pool": "workers",
        "wharfinger.dev/pool-phase": "idle",
        "wharfinger.dev/pool-template": POOL.template_hash,
    }
    assert find(made, "metadata", "ownerReferences", 0, "uid") == POOL.uid
    assert find(made, "spec") == find(POOL.template, "spec")


def test_a_claim_is_one_patch_of_exactly_this_pod() -> None:
    claim = ClaimSpec("default", "one", "c-1", "workers", images={"side": "new"})
    found = read_pod(stored(RUNNING))
    assert found is not None
    patch = claim_patch(found, claim)
    assert find(patch, "metadata", "uid") == "a"
    assert find(patch, "metadata", "resourceVersion") == "7"
    assert find(patch, "spec", "containers") == [
        {"name": "main", "image": "busybox:1"},
        {"name": "side", "image": "new"},
    ]
    assert unknown_containers(found, claim) == ()
    assert unknown_containers(found, ClaimSpec("default", "one", "c-1", "workers", images={"z": "x", "b": "x"})) == (
        "b",
        "z",
    )
    assert "spec" not in claim_patch(found, ClaimSpec("default", "one", "c-1", "workers"))


def test_retiring_needs_the_same_version() -> None:
    assert retire_patch(pod("a", 7)) == {
        "metadata": {"uid": "a", "resourceVersion": "7", "labels": {"wharfinger.dev/pool-phase": "retiring"}}
    }


def test_the_cache_stores_all_fields_that_are_read() -> None:
    whole = stored(RUNNING, managedFields=[{"manager": "x"}])
    kept = kept_of_pod({**whole, "spec": {**find_object(whole, "spec"), "volumes": [{}]}})
    assert read_pod(kept) == read_pod(whole)
    assert find(kept, "metadata", "managedFields") is None
    assert find(kept, "spec", "volumes") is None
