"""PodDisruptionBudgets: the number of Pods that each budget allows to be evicted now."""

from collections.abc import Iterable, Sequence
from typing import Final

from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    BUDGETS,
    PODS,
    generation_of,
    is_deleted,
    is_over,
    is_true,
    key_of,
    labels_of,
    replicas_of,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.workloads.rolling import share
from wharfinger.control_plane.objects.label_selectors import selects
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object
from wharfinger.kube.times import transition_time

_ALLOWED: Final = "DisruptionAllowed"


class BudgetController:
    """The controller of PodDisruptionBudgets."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return the controller for the runner: its name, :meth:`reconcile`, and the changes that cause a reconciliation."""
        return Controller("PodDisruptionBudget", self.reconcile, {BUDGETS: itself, PODS: self._of_pod})

    def _of_pod(self, change: Change) -> Iterable[Key]:
        for budget in self._state.objects(BUDGETS, change.key.namespace):
            if _selects(budget, change.obj) or _selects(budget, change.previous):
                yield key_of(BUDGETS, budget)

    def reconcile(self, key: Key) -> float | None:
        """Update the counts of one budget."""
        budget = self._state.get(key)
        if budget is None or is_deleted(budget):
            return None
        pods = [pod for pod in self._state.objects(PODS, key.namespace) if _selects(budget, pod) and not is_over(pod)]
        expected, desired = self._wanted(budget, pods)
        healthy = sum(is_true(pod, "Ready") and not is_deleted(pod) for pod in pods)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status: JsonObject = {
            **find_object(budget, "status"),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": generation_of(budget),
            "conditions": self._conditions(budget, allowed),
        }
        self._state.set_status(key, budget, status)
        return None

    def _wanted(self, budget: JsonObject, pods: Sequence[JsonObject]) -> tuple[int, int]:
        """Return the number of expected Pods, and the number of them that should be healthy."""
        given = find(budget, "spec", "maxUnavailable")
        if given is not None:
            expected = self._expected(pods)
            return expected, max(expected - share(given, expected, up=True), 0)
        given = find(budget, "spec", "minAvailable")
        if isinstance(given, int):
            return len(pods), given
        expected = self._expected(pods)
        return expected, share(given, expected, up=True)

    def _expected(self, pods: Sequence[JsonObject]) -> int:
        """Return the total number of replicas that the controllers of the Pods request."""
        owners: dict[Key, int] = {}
        for pod in pods:
            key = self._state.controller_key(pod)
            owner = None if key is None else self._state.get(key)
            if key is not None and owner is not None:
                owners[key] = replicas_of(owner)
        return sum(owners.values())

    def _conditions(self, budget: JsonObject, allowed: int) -> list[JsonValue]:
        status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
        before = find_list(budget, "status", "conditions")
        condition: JsonObject = {
            "type": _ALLOWED,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": transition_time(before, _ALLOWED, status, self._state.time()),
            "observedGeneration": generation_of(budget),
        }
        return [*(one for one in before if find(one, "type") != _ALLOWED), condition]


def _selects(budget: JsonObject, pod: JsonValue) -> bool:
    selector = find(budget, "spec", "selector")
    return isinstance(pod, dict) and selector is not None and selects(selector, labels_of(pod))
