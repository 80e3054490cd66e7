"""The usage in the status of ResourceQuotas.

The usage is calculated when a quota changes, when an object is deleted, and when a Pod ends. Other writes are charged to quotas
at admission (:mod:`~wharfinger.control_plane.api.core.quotas.admission`).
"""

from collections.abc import Iterable

from wharfinger.control_plane.api.core.quotas.usage import calculated
from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import PODS, QUOTAS, is_deleted, is_over, key_of
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.storage.interface import Change, ChangeType, Key
from wharfinger.formats.json.value import JsonObject, find_object


class QuotaController:
    """The controller of ResourceQuotas."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("ResourceQuota", self.reconcile, {QUOTAS: itself, PODS: self._of_pod}, always=self._of_any)

    def _of_any(self, change: Change) -> Iterable[Key]:
        """Return the quotas of an object's namespace if the object was deleted."""
        if change.type is ChangeType.DELETED and change.key.namespace:
            return self._quotas(change.key.namespace)
        return ()

    def _of_pod(self, change: Change) -> Iterable[Key]:
        if is_over(change.obj) and not is_over(change.previous):
            return self._quotas(change.key.namespace)
        return ()

    def _quotas(self, namespace: str) -> Iterable[Key]:
        return [key_of(QUOTAS, one) for one in self._state.objects(QUOTAS, namespace)]

    def reconcile(self, key: Key) -> float | None:
        """Calculate the usage of one quota, and write it into the quota's status."""
        quota = self._state.get(key)
        if quota is None or is_deleted(quota):
            return None
        kinds = self._state.backend.catalog.kinds()
        resources = [(kind.group, kind.plural) for kind in kinds if kind.namespaced]
        known = find_object(quota, "status", "used")
        hard = find_object(quota, "spec", "hard")
        used = {**known, **calculated(quota, self._state.backend.objects, resources, self._state.now())}
        status: JsonObject = {"hard": hard, "used": {name: value for name, value in used.items() if name in hard}}
        self._state.set_status(key, quota, status)
        return None
