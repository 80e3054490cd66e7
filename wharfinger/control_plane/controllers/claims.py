"""The binding of volume claims to volumes, and the finalizers that protect claims and volumes that are in use.

A claim is bound immediately to the volume that it names, or else to a free volume that fits it (class, size, access modes).
If there is no such volume, the claim is bound one second later, as if a provisioner had made a volume, but no PersistentVolume
is created. The annotation ``wharfinger.dev/ready-after`` makes this delay longer, and with ``wharfinger.dev/never-ready`` a
claim without a fitting volume is never bound. When a claim is being deleted, its finalizer is removed once no Pod uses it. When
a volume is being deleted, its finalizer is removed once no claim is bound to it.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from wharfinger.control_plane.controllers.framework.controller import Ages, Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    CLAIMS,
    PODS,
    VOLUMES,
    is_deleted,
    is_over,
    key_of,
    labels_of,
    name_of,
    uid_of,
    with_fields,
)
from wharfinger.control_plane.controllers.framework.simulation_annotations import read_options
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.objects.label_selectors import selects
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.formats.quantity import parse_quantity

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
PROVISION_S: Final = 1.0
"""Seconds until a claim without a fitting volume is bound."""


class ClaimController:
    """The controller of PersistentVolumeClaims."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._ages = Ages()

    def controller(self) -> Controller:
        """Return the controller for the runner: its name, :meth:`reconcile`, and the changes that cause a reconciliation."""
        wakes = {CLAIMS: itself, PODS: self._of_pod, VOLUMES: self._of_volume}
        return Controller("PersistentVolumeClaim", self.reconcile, wakes)

    def _of_pod(self, change: Change) -> Iterable[Key]:
        for volume in find_list(change.obj, "spec", "volumes"):
            name = find_str(volume, "persistentVolumeClaim", "claimName")
            if name and (is_over(change.obj) or self._state.get(change.key) is None):
                yield Key(CLAIMS, change.key.namespace, name)

    def _of_volume(self, _change: Change) -> Iterable[Key]:
        for claim in self._state.objects(CLAIMS):
            if find(claim, "status", "phase") != "Bound":
                yield key_of(CLAIMS, claim)

    def reconcile(self, key: Key) -> float | None:
        """Bind a claim; if the claim is being deleted and no Pod uses it, remove its finalizer."""
        claim = self._state.get(key)
        if claim is None:
            self._ages.forget(key)
            return None
        if is_deleted(claim):
            if not any(_uses(pod, key.name) for pod in self._state.objects(PODS, key.namespace)):
                self._state.remove_finalizer(key, claim, CLAIM_PROTECTION)
            return None
        if find(claim, "status", "phase") == "Bound":
            return None
        volume = self._volume(claim)
        if volume is not None:
            self._bind(key, claim, name_of(volume), find_object(volume, "spec", "capacity"))
            return None
        options = read_options(find_object(claim, "metadata", "annotations"))
        if options.never_ready:
            return None
        left = max(options.ready_after_s, PROVISION_S) - self._ages.age(key, uid_of(claim))
        if left > 0:
            return left
        name = find_str(claim, "spec", "volumeName") or f"pvc-{uid_of(claim)}"
        self._bind(key, claim, name, find_object(claim, "spec", "resources", "requests"))
        return None

    def _volume(self, claim: JsonObject) -> JsonObject | None:
        """Return the volume that a claim names, or else the smallest free volume that fits it."""
        named = find_str(claim, "spec", "volumeName")
        if named:
            return self._state.get(Key(VOLUMES, "", named))
        fitting = [volume for volume in self._state.objects(VOLUMES) if fits(claim, volume)]
        return min(
            fitting, key=lambda one: (_size(find(one, "spec", "capacity", "storage")), name_of(one)), default=None
        )

    def _bind(self, key: Key, claim: JsonObject, volume: str, capacity: JsonObject) -> None:
        annotations: JsonObject = {"pv.kubernetes.io/bind-completed": "yes"}
        spec = find_object(claim, "spec")
        if not find_str(spec, "volumeName"):
            annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
        found = self._state.get(Key(VOLUMES, "", volume))
        if found is not None and not find_str(found, "spec", "claimRef", "uid"):
            self._claim_volume(found, claim)
        annotations = find_object(claim, "metadata", "annotations") | annotations
        bound = with_fields({**claim, "spec": spec | {"volumeName": volume}}, annotations=annotations)
        bound = self._state.update(key, bound)
        status: JsonObject = {"phase": "Bound", "accessModes": find_list(claim, "spec", "accessModes")}
        self._state.set_status(key, bound, find_object(bound, "status") | status | {"capacity": capacity})

    def _claim_volume(self, volume: JsonObject, claim: JsonObject) -> None:
        reference: JsonObject = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": find_str(claim, "metadata", "namespace"),
            "name": name_of(claim),
            "uid": uid_of(claim),
            "resourceVersion": find_str(claim, "metadata", "resourceVersion"),
        }
        annotations = find_object(volume, "metadata", "annotations") | {"pv.kubernetes.io/bound-by-controller": "yes"}
        spec = find_object(volume, "spec") | {"claimRef": reference}
        self._state.update(key_of(VOLUMES, volume), with_fields({**volume, "spec": spec}, annotations=annotations))


class VolumeController:
    """The controller of PersistentVolumes."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return the controller for the runner: its name, :meth:`reconcile`, and the changes that cause a reconciliation."""
        return Controller("PersistentVolume", self.reconcile, {VOLUMES: itself, CLAIMS: self._of_claim})

    def _of_claim(self, change: Change) -> Iterable[Key]:
        name = find_str(change.obj, "spec", "volumeName")
        if name:
            yield Key(VOLUMES, "", name)

    def reconcile(self, key: Key) -> float | None:
        """Update the phase of a volume; if the volume is being deleted and no claim is bound to it, remove its finalizer."""
        volume = self._state.get(key)
        if volume is None:
            return None
        bound = any(find(claim, "spec", "volumeName") == key.name for claim in self._state.objects(CLAIMS))
        if is_deleted(volume):
            if not bound:
                self._state.remove_finalizer(key, volume, VOLUME_PROTECTION)
            return None
        was = find(volume, "status", "phase") in {"Bound", "Released"}
        phase = "Bound" if bound else "Released" if was else "Available"
        if find(volume, "status", "phase") != phase:
            status = find_object(volume, "status") | {"phase": phase, "lastPhaseTransitionTime": self._state.time()}
            self._state.set_status(key, volume, status)
        return None


def fits(claim: JsonObject, volume: JsonObject) -> bool:
    """Return whether a volume is free and meets the requirements of a claim."""
    if is_deleted(volume) or find(volume, "status", "phase") in {"Bound", "Released"}:
        return False
    reserved = find_object(volume, "spec", "claimRef")
    place = find_str(claim, "metadata", "namespace"), name_of(claim)
    if reserved and place != (find_str(reserved, "namespace"), find_str(reserved, "name")):
        return False
    if find_str(claim, "spec", "storageClassName") != find_str(volume, "spec", "storageClassName"):
        return False
    selector = find(claim, "spec", "selector")
    if selector is not None and not selects(selector, labels_of(volume)):
        return False
    modes = find_list(volume, "spec", "accessModes")
    wanted = _size(find(claim, "spec", "resources", "requests", "storage"))
    has = _size(find(volume, "spec", "capacity", "storage"))
    return has >= wanted and all(mode in modes for mode in find_list(claim, "spec", "accessModes"))


def _size(quantity: JsonValue) -> Fraction:
    return parse_quantity(quantity) or Fraction(0)


def _uses(pod: JsonObject, claim: str) -> bool:
    volumes = find_list(pod, "spec", "volumes")
    return not is_over(pod) and any(find(one, "persistentVolumeClaim", "claimName") == claim for one in volumes)
