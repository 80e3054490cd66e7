"""WorkerPools and WorkerClaims: defaults, and refusals that name the field and the remedy."""

from datetime import UTC, datetime

import pytest

from tests.pools.pods.pool_cluster import claim_object, pool_object
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.pools.pods.resources import (
    WORKER_CLAIM,
    PoolSpecError,
    owner_reference,
    read_claim,
    read_pool,
)

CONTAINER: JsonObject = {"name": "main", "image": "x"}


def test_the_defaults_of_a_pool() -> None:
    pool = read_pool(pool_object())
    assert (pool.size, pool.min, pool.max, pool.idle_s, pool.start_s, pool.allows_images) == (
        1,
        1,
        100,
        300,
        300,
        False,
    )
    assert str(pool.key) == "WorkerPool.wharfinger.dev default/workers"


def test_the_hash_depends_on_the_template_only() -> None:
    one, two = read_pool(pool_object()), read_pool(pool_object(size=4))
    other = read_pool(pool_object(template={"spec": {"containers": [CONTAINER]}}))
    assert one.template_hash == two.template_hash != other.template_hash


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"size": -1}, "spec.size: expected a number from 0 to 1000, found -1"),
        ({"max": 1001}, "spec.max: expected a number from 1 to 1000, found 1001"),
        ({"size": 3, "max": 2}, "expected min <= size <= max, found min 3, size 3, max 2"),
        ({"size": 3, "min": 4}, "expected min <= size <= max, found min 4, size 3, max 100"),
        ({"idleSeconds": 0}, "spec.idleSeconds: expected a number from 1 to 86400"),
        ({"startSeconds": "x"}, "startSeconds"),
        ({"template": {}}, "spec.template.spec.containers: expected at least one container"),
        ({"template": {"metadata": {"labels": {"a b": "c"}}, "spec": {"containers": [CONTAINER]}}}, "'a b'"),
        (
            {"template": {"metadata": {"labels": {"wharfinger.dev/pool": "c"}}, "spec": {"containers": [CONTAINER]}}},
            "Wharfinger sets this key itself",
        ),
    ],
)
def test_pools_that_are_refused(spec: dict[str, JsonValue], said: str) -> None:
    with pytest.raises(PoolSpecError) as refused:
        read_pool(pool_object(**spec))
    assert said in str(refused.value)


def test_the_deadline_of_a_claim_counts_from_its_creation() -> None:
    obj = claim_object("one", timeoutSeconds=60, owner="alice")
    find_object(obj, "metadata")["creationTimestamp"] = "2026-01-01T00:00:00Z"
    claim = read_claim(obj)
    assert (claim.pool, claim.owner, claim.expires) == ("workers", "alice", datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    assert read_claim(claim_object("one")).expires is None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"pool": ""}, "spec.pool: expected the name of a WorkerPool"),
        ({"pool": 1}, "pool"),
        ({"timeoutSeconds": -1}, "spec.timeoutSeconds: expected a number of seconds, found -1"),
        ({"labels": {"a": 1}}, "spec.labels.a: expected a text, found 1; quote it"),
        ({"labels": {"a": "b c"}}, "spec.labels.a: expected the value of a label, found 'b c'"),
        ({"annotations": {"": "x"}}, "spec.annotations: expected a name such as example.com/name"),
        ({"annotations": {"wharfinger.dev/claim-uid": "x"}}, "Wharfinger sets this key itself"),
        ({"labels": {"wharfinger.dev/pool-phase": "idle"}}, "Wharfinger sets this key itself"),
    ],
)
def test_claims_that_are_refused(spec: dict[str, JsonValue], said: str) -> None:
    with pytest.raises(PoolSpecError) as refused:
        read_claim(claim_object("one", **spec))
    assert said in str(refused.value)


def test_other_keys_of_the_project_may_be_set() -> None:
    """Annotations for the simulation are accepted, and so are keys that do not exist yet."""
    assert read_claim(claim_object("one", annotations={"wharfinger.dev/ready-after": "3"})).annotations


def test_an_owner_is_a_controller() -> None:
    assert owner_reference(WORKER_CLAIM, "a", "u") == {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "WorkerClaim",
        "name": "a",
        "uid": "u",
        "controller": True,
    }
