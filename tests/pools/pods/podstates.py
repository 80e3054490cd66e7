"""Pods and pools as plain values, for tests of pure functions."""

from dataclasses import replace

from tests.pools.pods.pool_cluster import NAMESPACE, pool_object
from wharfinger.formats.json.value import JsonValue, find_object
from wharfinger.pools.pods.pod_state import Phase, PodState
from wharfinger.pools.pods.resources import PoolSpec, read_pool


def pool_spec(**spec: JsonValue) -> PoolSpec:
    obj = pool_object(**spec)
    return read_pool({**obj, "metadata": {**find_object(obj, "metadata"), "uid": "pool-1", "generation": 1}})


POOL = pool_spec()
_READY = PodState(NAMESPACE, "", "", 1, POOL.name, POOL.uid, POOL.template_hash, Phase.IDLE, ready=True)


def pod(uid: str, version: int = 1, **changes: object) -> PodState:
    """Return an idle ready pod, with these fields changed."""
    return replace(_READY, name=f"pod-{uid}", uid=uid, version=version, **changes)  # type: ignore[arg-type]
