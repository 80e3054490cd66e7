"""The controllers of workloads, jobs and claims: what each looks at, and the pure function that decides."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.control_plane.controllers import workloads
from wharfinger.cluster.control_plane.controllers.claims import reconcile_claim, reconcile_volume
from wharfinger.cluster.control_plane.controllers.garbage import is_deleted
from wharfinger.cluster.control_plane.controllers.jobs import reconcile_job
from wharfinger.cluster.control_plane.controllers.object_cache import Change, ObjectCache
from wharfinger.cluster.control_plane.controllers.worker import Ages, Clock
from wharfinger.cluster.control_plane.controllers.writes import Plan, perform
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, find, find_list, find_str

DEPLOYMENT: Final = "Deployment.apps"
REPLICA_SET: Final = "ReplicaSet.apps"
STATEFUL_SET: Final = "StatefulSet.apps"
DAEMON_SET: Final = "DaemonSet.apps"
JOB: Final = "Job.batch"
CLAIM: Final = "PersistentVolumeClaim"
VOLUME: Final = "PersistentVolume"

Decide: TypeAlias = Callable[[ObjectKey, JsonObject, float], Plan]


class Simulator:
    """A controller of one kind, as the parts differ: what else wakes it, what its age counts from, what decides."""

    def __init__(
        self,
        client: ClusterClient,
        cache: ObjectCache,
        kind: str,
        decide: Decide,
        *,
        state: Callable[[JsonObject], str],
        woken_by: Callable[[Change], Iterable[ObjectKey]] = lambda _change: (),
        deleted_too: bool = False,
    ) -> None:
        self.name = kind
        self._client = client
        self._cache = cache
        self._decide = decide
        self._state = state
        self._woken_by = woken_by
        self._deleted_too = deleted_too
        self._ages = Ages()

    def affected(self, change: Change) -> Iterable[ObjectKey]:
        """The object itself, and those the change wakes."""
        if change.key.resource.group_kind == self.name:
            yield change.key
        yield from self._woken_by(change)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Decide by what is known, and write."""
        obj = self._cache.get(key)
        if obj is None:
            self._ages.forget(key)
            return None
        if is_deleted(obj) and not self._deleted_too:
            return None
        plan = self._decide(key, obj, self._ages.age(key, self._state(obj)))
        for write in plan.writes:
            await perform(self._client, write)
        return plan.again_s


def simulators(client: ClusterClient, cache: ObjectCache, now: Clock) -> list[Simulator]:
    """The controllers of all simulated kinds."""

    def deployment(key: ObjectKey, obj: JsonObject, age_s: float) -> Plan:
        uid = find_str(obj, "metadata", "uid")
        sets = [one for _, one in cache.dependents(uid) if workloads.is_controlled_by(one, uid) and not is_deleted(one)]
        return workloads.reconcile_deployment(key, obj, sets, age_s, now())

    def stateful_set(key: ObjectKey, obj: JsonObject, age_s: float) -> Plan:
        claims = frozenset(claim.name for claim, _ in cache.of_kind(CLAIM, key.namespace))
        return workloads.reconcile_stateful_set(key, obj, claims, age_s)

    def daemon_set(key: ObjectKey, obj: JsonObject, age_s: float) -> Plan:
        return workloads.reconcile_daemon_set(key, obj, sum(1 for _ in cache.of_kind("Node")), age_s)

    def claim(key: ObjectKey, obj: JsonObject, age_s: float) -> Plan:
        return reconcile_claim(key, obj, (pod for _, pod in cache.of_kind("Pod", key.namespace)), age_s)

    def volume(key: ObjectKey, obj: JsonObject, _age_s: float) -> Plan:
        return reconcile_volume(key, obj, (one for _, one in cache.of_kind(CLAIM)))

    def replica_set(key: ObjectKey, obj: JsonObject, age_s: float) -> Plan:
        return workloads.reconcile_replica_set(key, obj, age_s)

    def job(key: ObjectKey, obj: JsonObject, age_s: float) -> Plan:
        return reconcile_job(key, obj, age_s, now())

    def suspension(obj: JsonObject) -> str:
        return f"{find_str(obj, 'metadata', 'uid')} {find(obj, 'spec', 'suspend')}"

    return [
        Simulator(client, cache, DEPLOYMENT, deployment, state=_template, woken_by=_owners_of(cache, REPLICA_SET)),
        Simulator(client, cache, REPLICA_SET, replica_set, state=_uid),
        Simulator(client, cache, STATEFUL_SET, stateful_set, state=_generation),
        Simulator(client, cache, DAEMON_SET, daemon_set, state=_generation),
        Simulator(client, cache, JOB, job, state=suspension),
        Simulator(client, cache, CLAIM, claim, state=_uid, woken_by=_claims_of(cache), deleted_too=True),
        Simulator(client, cache, VOLUME, volume, state=_uid, woken_by=_volumes_of(cache), deleted_too=True),
    ]


def _uid(obj: JsonObject) -> str:
    return find_str(obj, "metadata", "uid")


def _generation(obj: JsonObject) -> str:
    return f"{_uid(obj)} {find(obj, 'metadata', 'generation')}"


def _template(obj: JsonObject) -> str:
    return f"{_uid(obj)} {workloads.template_hash(find(obj, 'spec', 'template'))}"


def _owners_of(cache: ObjectCache, group_kind: str) -> Callable[[Change], Iterable[ObjectKey]]:
    """Wakes the owners of objects of a kind."""

    def woken(change: Change) -> Iterable[ObjectKey]:
        if change.key.resource.group_kind == group_kind:
            for owner in find_list(change.known, "metadata", "ownerReferences"):
                key = cache.key_of_uid(find_str(owner, "uid"))
                if key is not None and key.resource.group_kind == DEPLOYMENT:
                    yield key

    return woken


def _claims_of(cache: ObjectCache) -> Callable[[Change], Iterable[ObjectKey]]:
    """Wakes the claims that a Pod held, when it ends or goes."""

    def woken(change: Change) -> Iterable[ObjectKey]:
        if change.key.resource.group_kind == "Pod":
            for volume in find_list(change.known, "spec", "volumes"):
                name = find_str(volume, "persistentVolumeClaim", "claimName")
                yield from (key for key, _ in cache.of_kind(CLAIM, change.key.namespace) if key.name == name)

    return woken


def _volumes_of(cache: ObjectCache) -> Callable[[Change], Iterable[ObjectKey]]:
    """Wakes the volume that a claim names."""

    def woken(change: Change) -> Iterable[ObjectKey]:
        if change.key.resource.group_kind == CLAIM:
            name = find_str(change.known, "spec", "volumeName")
            yield from (key for key, _ in cache.of_kind(VOLUME) if name and key.name == name)

    return woken
