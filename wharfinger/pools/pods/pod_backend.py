"""The pods of one pool as a backend of the claim scheduler: a claim is one conditional patch of a pod.

The patch has the uid and the resourceVersion of the pod as it was seen, so it succeeds for at most one writer, whatever the cache
shows. If the API server does not answer, the same patch is sent again: it cannot succeed twice, and a pod that the first patch
had claimed is recognized by the uid of the claim. A pod for which it is not known whether a claim succeeded is *doomed*: it is
not handed out again, and its pool retires it if it turns out to be idle.

The backend never deletes a pod. A claimed pod belongs to its WorkerClaim, even if the caller here does not want it: another
attempt, or another daemon, may have claimed it for the same WorkerClaim and written it to the status of the WorkerClaim. The
controller of claims sees the pod in the cache, and deletes it unless its claim may be bound to it. Pods are used once, so a
recycled pod never becomes idle again.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api import errors
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, ClusterError, InvalidError, NotFoundError
from wharfinger.cluster.api.retrying import is_retryable
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.pools.claims.backend import Claimed, ClaimError, ConflictError
from wharfinger.pools.claims.events import Lost, Member, Seen
from wharfinger.pools.pods.pod_state import Phase, PodState, claim_patch, read_pod, unknown_containers
from wharfinger.pools.pods.resources import ClaimSpec, PoolSpec

log = logging.getLogger(__name__)

CLAIM_S: Final = 8.0
"""The time that a claim may take. It is less than CLOSING_S of :mod:`wharfinger.pools.claims.scheduler`, in which claims can
finish after the pool was closed.
"""
PAUSES_S: Final = (0.05, 0.2, 0.5, 1.0)
"""The pauses between the attempts of one claim; the last one is repeated until CLAIM_S is over."""

ClaimedPod: TypeAlias = PodState
"""The result of a claim: the pod as it is after the claim."""


class NotPermittedError(ClaimError):
    """The daemon has no permission to change pods now. It retries the claim later: neither the claim nor the pod is the cause."""


class PodBackend:
    """The pods of one pool, as the claim scheduler uses them."""

    def __init__(self, client: ClusterClient, pool: PoolSpec) -> None:
        self._client = client
        self._pool = pool
        self._pods: dict[str, PodState] = {}
        self._deleted: set[str] = set()
        """Pods that are not handed out any more, but are still in the cache."""
        self._changes: dict[str, Seen | Lost] = {}
        self.on_change: Callable[[], None] = lambda: None
        """A function that is called when there are changes to read. It must not block."""
        self.on_claimed: Callable[[PodState], None] = lambda _pod: None
        """Called when a pod was claimed; the argument is the state of the pod after the claim."""
        self.on_doomed: Callable[[str], None] = lambda _uid: None
        """Called with the uid of a pod that must be retired, because the outcome of a claim of this pod is not known."""
        self.doomed: set[str] = set()

    def use(self, pool: PoolSpec) -> None:
        """Adopt a changed specification of the pool. Pods that were made from another template are not handed out any more."""
        self._pool = pool
        for pod in self._pods.values():
            self._show(pod)

    def see(self, pod: PodState) -> None:
        """Record a pod as the cache, or an answer of the API server, shows it. States older than the last one are ignored."""
        known = self._pods.get(pod.uid)
        if pod.uid in self._deleted or (known is not None and pod.version < known.version):
            return
        self._pods[pod.uid] = pod
        self._show(pod)

    def lose(self, uid: str) -> None:
        """Record that the cache no longer shows a pod."""
        self._deleted.discard(uid)
        self.doomed.discard(uid)
        if self._pods.pop(uid, None) is not None:
            self._put(uid, Lost(uid))

    def changes(self) -> Sequence[Seen | Lost]:
        """Return the pods that came, changed or went since the last call."""
        found = tuple(self._changes.values())
        self._changes.clear()
        return found

    async def claim(self, member: Member, spec: ClaimSpec, /) -> Claimed[ClaimedPod]:
        """Claim a pod for a WorkerClaim."""
        pod = self._pods.get(member.uid)
        if pod is None or pod.version != member.version:
            raise ConflictError("the pod has changed since it was ready")
        self._check_images(pod, spec)
        answer = await self._patched(pod, spec)
        claimed = read_pod(answer)
        if claimed is None or claimed.version <= member.version:
            self._doom(pod.uid)
            raise ConflictError(f"{pod.key}: expected a greater resourceVersion in the answer of the API server")
        self.see(claimed)
        self.on_claimed(claimed)
        return Claimed(claimed.version, claimed)

    async def recycle(self, uid: str) -> None:
        """Never hand out this pod again, because it was claimed, or may have been. The controller of claims decides what
        happens to the pod.
        """
        self.forget(uid)
        await trio.lowlevel.checkpoint()

    def forget(self, uid: str) -> None:
        """Never hand out a pod again, because its deletion was accepted, or because it belongs to a claim."""
        if self._pods.pop(uid, None) is not None:
            self._deleted.add(uid)
            self._put(uid, Lost(uid))

    async def _patched(self, pod: PodState, claim: ClaimSpec) -> JsonObject:
        """Send the patch that claims a pod, again and again until the outcome is known, and return the pod.

        Raises ConflictError if the pod is gone, if others have changed it, or if the outcome is still unknown after CLAIM_S.
        Raises ClaimError if the API server refuses the patch for another reason.
        """
        patch, problem, sent, denied = claim_patch(pod, claim), "no answer", 0, 0
        with trio.move_on_after(CLAIM_S):
            for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
                sent += 1
                try:
                    return await self._client.merge_patch(pod.key, patch)
                except NotFoundError as error:
                    raise ConflictError("the pod is gone") from error
                except errors.ConflictError as error:
                    problem = str(error)
                    if (found := await self._ours(pod, claim)) is not None:
                        return found
                except InvalidError as error:
                    raise ClaimError(str(error)) from error
                except ClusterError as error:
                    if _is_denied(error):
                        denied += 1  # this attempt has changed nothing
                    elif not is_retryable(error):
                        raise ClaimError(str(error)) from error
                    problem = str(error)
                await trio.sleep(pause_s)
        if sent == denied:
            log.warning("%s: the daemon has no permission to claim this pod: %s", pod.key, problem)
            raise NotPermittedError(problem)
        self._doom(pod.uid)
        raise ConflictError(f"not known whether the pod was claimed: {problem}")

    async def _ours(self, pod: PodState, claim: ClaimSpec) -> JsonObject | None:
        """Return the pod if any attempt has claimed it for this claim; None if it is unchanged, or cannot be read.

        If others changed the pod, record its new state, without waiting for the cache, and raise ConflictError.
        """
        try:
            found = await self._client.get(pod.key)
        except NotFoundError as error:
            raise ConflictError("the pod is gone") from error
        except ClusterError:
            return None
        now = read_pod(found)
        if now is None or now.uid != pod.uid:
            raise ConflictError("another pod has its name")
        if now.claim_uid == claim.uid and now.version > pod.version:
            return found
        if now.version <= pod.version:
            return None  # a conflict that the API server reported by mistake, or an outdated answer
        self.see(now)
        raise ConflictError("the pod was changed by others")

    def _check_images(self, pod: PodState, claim: ClaimSpec) -> None:
        if claim.images and not self._pool.allows_images:
            raise ClaimError(
                f"spec.images: WorkerPool {self._pool.name} does not allow images; leave them out, or set "
                "spec.allowImages of the pool"
            )
        if unknown := unknown_containers(pod, claim):
            known = ", ".join(find_str(one, "name") for one in pod.containers)
            raise ClaimError(f"spec.images.{unknown[0]}: expected a container of the pool's pods ({known}); correct it")

    def _doom(self, uid: str) -> None:
        self.doomed.add(uid)
        if (pod := self._pods.get(uid)) is not None:
            self._show(pod)
        self.on_doomed(uid)

    def _show(self, pod: PodState) -> None:
        outdated = pod.phase is Phase.IDLE and pod.template != self._pool.template_hash
        protected = outdated or pod.uid in self.doomed
        self._put(pod.uid, Seen(Member(pod.uid, pod.version, idle=pod.usable(self._pool), protected=protected)))

    def _put(self, uid: str, change: Seen | Lost) -> None:
        self._changes.pop(uid, None)
        self._changes[uid] = change
        self.on_change()


def _is_denied(error: ClusterError) -> bool:
    """Return whether the daemon's token or permission was refused. A refusal of the changed pod by admission does not count."""
    if not isinstance(error, ApiError):
        return False
    return error.code == 401 or (error.code == 403 and "cannot patch resource" in error.message)
