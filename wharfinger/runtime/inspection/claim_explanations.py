"""The explanation of a WorkerClaim (`wharfinger why claim/NAMESPACE/NAME`): its place among the waiting claims, the state of
its pool, and the remedy.
"""

from typing import Final

from wharfinger.pools.claims.events import Answer
from wharfinger.pools.pods.claim_controller import claim_key
from wharfinger.pools.pods.claim_machine import BOUND, FINAL, ClaimFacts, Reason
from wharfinger.pools.pods.pod_pool import PodPool
from wharfinger.pools.pods.pod_pools import PodPools
from wharfinger.runtime.scheduler_details import CauseSnapshot, ExplanationSnapshot

CLAIM: Final = "claim/"
"""The prefix of a claim's name in `wharfinger why`."""
_REMEDIES: Final = {
    "WriteFailed": "solve the problem of the pool; the daemon retries by itself",
    "MaxReached": "delete claims that are not used any more, or raise spec.max of the WorkerPool",
    "Starting": "wait until a pod is ready, or look at the pods of the pool: `kubectl get pods -l wharfinger.dev/pool={pool}`",
}


def explain_claim(name: str, pools: PodPools) -> ExplanationSnapshot | None:
    """Explain the state of a claim named ``claim/NAMESPACE/NAME``; None if there is no such claim."""
    namespace, _, claim = name.removeprefix(CLAIM).partition("/")
    key = claim_key(namespace, claim)
    known = pools.claims.known(key) if pools.claims is not None else None
    if pools.claims is None or known is None:
        return None
    if known.written.phase == BOUND:
        return ExplanationSnapshot(name, ready=True, causes=(), also=(f"bound to pod {known.written.pod}",))
    if known.written.phase in FINAL:
        cause = CauseSnapshot(name, known.written.phase, known.written.message)
        return ExplanationSnapshot(name, ready=False, causes=(cause,), remedy="delete the claim and create another one")
    if known.problem:
        cause = CauseSnapshot(name, "cannot be used", known.problem)
        return ExplanationSnapshot(
            name, ready=False, causes=(cause,), remedy="delete the claim and create a correct one"
        )
    pool = pools.pool(namespace, known.pool)
    if pool is None:
        return ExplanationSnapshot(
            name,
            ready=False,
            causes=(
                CauseSnapshot(name, "Pending", f"waits for a pod of pool {known.pool}"),
                CauseSnapshot(f"pool {namespace}/{known.pool}", "missing", "no WorkerPool of this name is working now"),
            ),
            remedy="create the WorkerPool, or correct its spec; `kubectl describe workerpool` shows its conditions",
        )
    pending = pools.claims.pending().get(key)
    place = pool.position(pending.request) if pending is not None else 0
    causes = (CauseSnapshot(name, "Pending", _waits(known, place)), _pool_cause(pool))
    reason = pool.numbers().reason
    remedy = _REMEDIES.get(reason, "wait: the next free pod of the pool is given to the claim that has waited longest")
    return ExplanationSnapshot(name, ready=False, causes=causes, remedy=remedy.format(pool=pool.spec.name))


def _waits(known: ClaimFacts, place: int) -> str:
    if known.full:
        return f"{Reason.POOL_FULL}: too many claims wait for a pod, so this claim is not queued yet"
    if place:
        return f"this claim is number {place} of the claims that wait for a pod"
    if known.asked is not None and known.asked.answer is None:
        return "a pod is being assigned to the claim"
    if known.asked is not None and known.asked.answer is Answer.CONFLICTED:
        return "each free pod was changed by others before it could be assigned; the daemon tries again in a second"
    return "the result is being written into the claim"


def _pool_cause(pool: PodPool) -> CauseSnapshot:
    found, now = pool.numbers(), pool.snapshot()
    counted = {
        "ready": now.ready if now is not None else 0,
        "reserved": now.reserved if now is not None else 0,
        "starting": found.starting,
        "claimed": found.claimed,
        "waiting claims": now.waiting if now is not None else 0,
    }
    listed = ", ".join(f"{number} {what}" for what, number in counted.items())
    message = f"{listed}; {found.problem}" if found.problem else listed
    return CauseSnapshot(f"pool {pool.spec.namespace}/{pool.spec.name}", found.reason or "ready", message)
