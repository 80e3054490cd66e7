"""Deployments: one ReplicaSet per template, and the rollout from one template to the next.

"Set" means ReplicaSet in this module. Each reconciliation finds or creates the set of the current template, moves replicas
between sets as the strategy allows, deletes sets beyond the history limit, and reports the progress
(:mod:`~wharfinger.control_plane.controllers.workloads.deployment_status`). Each reconciliation takes only the next step of a
rollout, and finds out from the existing sets which step that is. The messages and the order of steps are those of
kube-controller-manager's deployment controller.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from wharfinger.control_plane.api.apps.deployments import ROLLBACK_TO
from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    DEPLOYMENTS,
    REPLICA_SETS,
    annotation,
    condition_of,
    controller_of,
    generation_of,
    is_deleted,
    key_of,
    labels_of,
    name_of,
    number_in,
    owner_reference,
    replicas_of,
    with_fields,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.workloads import rolling
from wharfinger.control_plane.controllers.workloads.deployment_status import (
    complete,
    paused_condition,
    progressing_condition,
    status_of,
)
from wharfinger.control_plane.controllers.workloads.template_hash import template_hash
from wharfinger.control_plane.objects.label_selectors import selects
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str
from wharfinger.formats.redaction.redaction import LAST_APPLIED

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
HASH_LABEL: Final = "pod-template-hash"
_COMPONENT: Final = "deployment-controller"
_NOT_COPIED: Final = frozenset(
    {
        LAST_APPLIED,
        REVISION,
        HISTORY,
        rolling.DESIRED,
        rolling.MAXIMUM,
        ROLLBACK_TO,
    }
)
_HISTORY_CHARACTERS: Final = 2000


class DeploymentController:
    """The controller of Deployments."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("Deployment", self.reconcile, {DEPLOYMENTS: itself, REPLICA_SETS: self._of_set})

    def reconcile(self, key: Key) -> float | None:
        """Take one step in the rollout of one Deployment."""
        deployment = self._state.get(key)
        if deployment is None:
            return None
        sets = self._sets(deployment)
        if is_deleted(deployment):
            return self._update_status(key, self._current_set(deployment, sets), sets, rolls=False)
        deployment = self._with_pause_condition(key, deployment)
        if find(deployment, "spec", "paused") is True or self._was_scaled(deployment, sets):
            new = self._find_or_create(key, deployment, sets, make=False)
            self._scale(key, new)
            if find(deployment, "spec", "paused") is True:
                self._clean_up(key, new)
            return self._update_status(key, new, self._sets(deployment), rolls=False)
        if find_str(deployment, "spec", "strategy", "type") == "Recreate":
            new = self._recreate(key, deployment, sets)
        else:
            new = self._roll(key, deployment, sets)
        return self._update_status(key, new, self._sets(deployment))

    def _of_set(self, change: Change) -> Iterable[Key]:
        if controller_of(change.obj) is not None:
            key = self._state.controller_key(change.obj)
            if key is not None and key.collection == DEPLOYMENTS:
                yield key
        else:
            for one in self._state.objects(DEPLOYMENTS, change.key.namespace):
                if selects(find(one, "spec", "selector"), labels_of(change.obj)):
                    yield key_of(DEPLOYMENTS, one)

    # -- sets

    def _sets(self, deployment: JsonObject) -> list[JsonObject]:
        """Return the ReplicaSets of the Deployment, oldest first. ReplicaSets without an owner that its selector matches are
        adopted.
        """
        owned = list(self._state.owned(REPLICA_SETS, deployment))
        selector = find(deployment, "spec", "selector")
        if not is_deleted(deployment):
            orphans = [
                one
                for one in self._state.objects(REPLICA_SETS, key_of(DEPLOYMENTS, deployment).namespace)
                if controller_of(one) is None and not is_deleted(one) and selects(selector, labels_of(one))
            ]
            owned += [self._state.adopt(key_of(REPLICA_SETS, one), one, deployment) for one in orphans]
        return sorted(owned, key=lambda one: (find_str(one, "metadata", "creationTimestamp"), name_of(one)))

    def _current_set(self, deployment: JsonObject, sets: Sequence[JsonObject]) -> JsonObject | None:
        """Return the ReplicaSet that has the Deployment's current template; None if there is none."""
        wanted = _plain_template(deployment)
        return next((one for one in sets if _plain_template(one) == wanted), None)

    def _find_or_create(
        self, key: Key, deployment: JsonObject, sets: Sequence[JsonObject], *, make: bool = True
    ) -> JsonObject | None:
        """Return the ReplicaSet of a Deployment's current template. First update its revision and annotations.

        If there is no such ReplicaSet, create it; if ``make`` is false, return None instead.
        """
        new = self._current_set(deployment, sets)
        revision = max((_revision(one) for one in sets if one is not new), default=0) + 1
        if new is None:
            return self._create_set(key, deployment, sets, revision) if make else None
        annotated = _annotations_of_set(deployment, new, revision, exists=True)
        wait_s = find(deployment, "spec", "minReadySeconds")
        if annotated != find_object(new, "metadata", "annotations") or wait_s != find(new, "spec", "minReadySeconds"):
            spec = {**find_object(new, "spec"), "minReadySeconds": wait_s}
            spec = {name: value for name, value in spec.items() if value is not None}
            changed = with_fields({**new, "spec": spec}, annotations=annotated)
            new = self._state.update(key_of(REPLICA_SETS, new), changed)
        condition = None
        if condition_of(deployment, "Progressing") is None:
            condition = progressing_condition(
                "True", "FoundNewReplicaSet", f'Found new replica set "{name_of(new)}"', self._state.time()
            )
        self._with_revision(key, annotation(new, REVISION), condition)
        return new

    def _create_set(
        self, key: Key, deployment: JsonObject, sets: Sequence[JsonObject], revision: int
    ) -> JsonObject | None:
        collisions = find(deployment, "status", "collisionCount")
        digest = template_hash(
            find(deployment, "spec", "template"), collisions if isinstance(collisions, int) else None
        )
        new = _new_set(deployment, digest)
        replicas = rolling.new_set_replicas(deployment, sets, 0)
        new = {**new, "spec": find_object(new, "spec") | {"replicas": replicas}}
        new = with_fields(new, annotations=_annotations_of_set(deployment, new, revision, exists=False))
        made = self._state.create(new)
        if made is None:
            if self._state.get(key_of(REPLICA_SETS, new)) is not None:
                count = (collisions if isinstance(collisions, int) else 0) + 1
                status = find_object(deployment, "status") | {"collisionCount": count}
                self._state.set_status(key, deployment, status)
            return None
        if replicas:
            self._record_scaling(deployment, made, 0, replicas)
        condition = progressing_condition(
            "True", "NewReplicaSetCreated", f'Created new replica set "{name_of(made)}"', self._state.time()
        )
        self._with_revision(key, str(revision), condition)
        return made

    def _with_revision(self, key: Key, revision: str, condition: JsonObject | None) -> None:
        """Write the revision to the Deployment, and ``condition`` if it is given and the Deployment has a progress deadline."""
        deployment = self._state.get(key)
        if deployment is None:
            return
        changed = deployment
        if revision and annotation(deployment, REVISION) != revision:
            annotations = find_object(deployment, "metadata", "annotations") | {REVISION: revision}
            changed = with_fields(changed, annotations=annotations)
        if condition is not None and find(deployment, "spec", "progressDeadlineSeconds") is not None:
            others = [one for one in find_list(changed, "status", "conditions") if find(one, "type") != "Progressing"]
            status = find_object(changed, "status") | {"conditions": [*others, condition]}
            changed = {**changed, "status": status}
        if changed != deployment:
            self._state.update(key, changed, "status")

    # -- strategies

    def _roll(self, key: Key, deployment: JsonObject, sets: Sequence[JsonObject]) -> JsonObject | None:
        new = self._find_or_create(key, deployment, sets)
        if new is None:
            return None
        old = [one for one in sets if name_of(one) != name_of(new)]
        wanted = rolling.new_set_replicas(deployment, [*old, new], replicas_of(new))
        if replicas_of(new) > replicas_of(deployment):
            wanted = replicas_of(deployment)
        if wanted != replicas_of(new):
            new = self._scaled(deployment, new, wanted)
        else:
            for scale in rolling.scaled_down(deployment, new, old):
                self._scaled(deployment, scale.one, scale.replicas)
        self._clean_up(key, new)
        return new

    def _recreate(self, key: Key, deployment: JsonObject, sets: Sequence[JsonObject]) -> JsonObject | None:
        new = self._current_set(deployment, sets)
        old = [one for one in sets if new is None or name_of(one) != name_of(new)]
        active = [one for one in old if replicas_of(one)]
        for one in active:
            self._scaled(deployment, one, 0)
        if active or any(find_int(one, "status", "replicas") for one in old):
            return self._find_or_create(key, deployment, sets, make=False)
        new = self._find_or_create(key, deployment, sets)
        if new is not None and replicas_of(new) != replicas_of(deployment):
            new = self._scaled(deployment, new, replicas_of(deployment))
        self._clean_up(key, new)
        return new

    def _was_scaled(self, deployment: JsonObject, sets: Sequence[JsonObject]) -> bool:
        desired = (rolling.desired_of(one) for one in sets if replicas_of(one))
        return any(one is not None and one != replicas_of(deployment) for one in desired)

    def _scale(self, key: Key, new: JsonObject | None) -> None:
        """Distribute the Deployment's number of replicas over its ReplicaSets. This does not advance the rollout."""
        deployment = self._state.get(key)
        if deployment is None:
            return
        sets = self._sets(deployment)
        wanted = replicas_of(deployment)
        active = [one for one in sets if replicas_of(one)]
        if len(active) <= 1:
            latest = active[0] if active else new or (sets[-1] if sets else None)
            if latest is not None:
                self._scaled(deployment, latest, wanted)
            return
        if new is not None and _is_saturated(deployment, new):
            for one in active:
                if name_of(one) != name_of(new):
                    self._scaled(deployment, one, 0)
        elif find_str(deployment, "spec", "strategy", "type", default="RollingUpdate") == "RollingUpdate":
            for scale in rolling.proportional(deployment, active):
                self._scaled(deployment, scale.one, scale.replicas)

    def _scaled(self, deployment: JsonObject, one: JsonObject, replicas: int) -> JsonObject:
        before = replicas_of(one)
        annotations = find_object(one, "metadata", "annotations") | _scale_annotations(deployment)
        changed = with_fields(
            {**one, "spec": find_object(one, "spec") | {"replicas": replicas}}, annotations=annotations
        )
        if changed == one:
            return one
        stored = self._state.update(key_of(REPLICA_SETS, one), changed)
        if before != replicas:
            self._record_scaling(deployment, one, before, replicas)
        return stored

    def _record_scaling(self, deployment: JsonObject, one: JsonObject, before: int, after: int) -> None:
        way = "up" if after > before else "down"
        message = f"Scaled {way} replica set {name_of(one)} from {before} to {after}"
        self._state.record_event(deployment, _COMPONENT, "ScalingReplicaSet", message)

    def _clean_up(self, key: Key, new: JsonObject | None) -> None:
        """Once a rollout is complete or paused, delete the oldest ReplicaSets that exceed ``revisionHistoryLimit``."""
        deployment = self._state.get(key)
        if deployment is None or not (find(deployment, "spec", "paused") is True or complete(deployment)):
            return
        old = [one for one in self._sets(deployment) if new is None or name_of(one) != name_of(new)]
        surplus = len(old) - find_int(deployment, "spec", "revisionHistoryLimit", default=10)
        for one in sorted(old, key=_revision)[: max(surplus, 0)]:
            seen = find_int(one, "status", "observedGeneration") >= generation_of(one)
            if seen and not replicas_of(one) and not find_int(one, "status", "replicas") and not is_deleted(one):
                self._state.delete(key_of(REPLICA_SETS, one), one)

    # -- status

    def _with_pause_condition(self, key: Key, deployment: JsonObject) -> JsonObject:
        conditions = paused_condition(deployment, self._state.time())
        if conditions is None:
            return deployment
        return self._state.set_status(key, deployment, find_object(deployment, "status") | {"conditions": conditions})

    def _update_status(
        self, key: Key, new: JsonObject | None, sets: Sequence[JsonObject], *, rolls: bool = True
    ) -> float | None:
        deployment = self._state.get(key)
        if deployment is None:
            return None
        if new is not None:
            new = self._state.get(key_of(REPLICA_SETS, new))
        status, again_s = status_of(deployment, new, sets, self._state.now(), rolls=rolls)
        self._state.set_status(key, deployment, status)
        return again_s


def _plain_template(obj: JsonObject) -> JsonObject:
    """Return the pod template of a Deployment or a ReplicaSet, without the label ``pod-template-hash``, which only ReplicaSets
    have.
    """
    template = find_object(obj, "spec", "template")
    labels = {name: value for name, value in labels_of(template).items() if name != HASH_LABEL}
    return {**template, "metadata": find_object(template, "metadata") | {"labels": labels}}


def _revision(one: JsonObject) -> int:
    return number_in(annotation(one, REVISION)) or 0


def _annotations_of_set(deployment: JsonObject, one: JsonObject, revision: int, *, exists: bool) -> JsonObject:
    """Return a set's annotations: the Deployment's annotations, and the set's revision and earlier revisions.

    The annotations of a new set (``exists`` is false) also state the Deployment's number of replicas, and its maximum with surge.
    """
    given = find_object(deployment, "metadata", "annotations")
    copied = {name: value for name, value in given.items() if name not in _NOT_COPIED}
    annotations = find_object(one, "metadata", "annotations") | copied
    old = annotation(one, REVISION)
    if _revision(one) < revision:
        annotations[REVISION] = str(revision)
        if old:
            history = [item for item in annotation(one, HISTORY).split(",") if item]
            history.append(old)
            while len(",".join(history)) > _HISTORY_CHARACTERS:
                history.pop(0)
            annotations[HISTORY] = ",".join(history)
    return annotations if exists else annotations | _scale_annotations(deployment)


def _scale_annotations(deployment: JsonObject) -> JsonObject:
    wanted = replicas_of(deployment)
    return {rolling.DESIRED: str(wanted), rolling.MAXIMUM: str(wanted + rolling.bounds(deployment)[0])}


def _new_set(deployment: JsonObject, digest: str) -> JsonObject:
    template = find_object(deployment, "spec", "template")
    labels = labels_of(template) | {HASH_LABEL: digest}
    selector = find_object(deployment, "spec", "selector")
    spec: JsonObject = {
        "selector": selector | {"matchLabels": find_object(selector, "matchLabels") | {HASH_LABEL: digest}},
        "template": template | {"metadata": find_object(template, "metadata") | {"labels": labels}},
    }
    wait_s = find(deployment, "spec", "minReadySeconds")
    if wait_s:
        spec["minReadySeconds"] = wait_s
    owners: list[JsonValue] = [owner_reference(deployment)]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)[: 252 - len(digest)]}-{digest}",
            "namespace": find_str(deployment, "metadata", "namespace"),
            "labels": labels,
            "ownerReferences": owners,
        },
        "spec": spec,
    }


def _is_saturated(deployment: JsonObject, new: JsonObject) -> bool:
    wanted = replicas_of(deployment)
    desired = rolling.desired_of(new)
    return replicas_of(new) == wanted == desired == find_int(new, "status", "availableReplicas")
