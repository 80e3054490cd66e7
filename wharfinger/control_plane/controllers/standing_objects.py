"""Objects that every kube-apiserver maintains: if such an object is deleted, it is created again after a pause.

These are the Service ``kubernetes`` with its endpoints, the range of Service addresses, flow control's own objects, and the
namespaces that the system needs.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from wharfinger.control_plane.bootstrap import first_objects
from wharfinger.control_plane.controllers.framework.controller import Ages, Controller
from wharfinger.control_plane.controllers.framework.objects import (
    ENDPOINTS,
    FLOW_SCHEMAS,
    NAMESPACES,
    PRIORITY_LEVELS,
    SERVICE_RANGES,
    SERVICES,
    SLICES,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, Key

PAUSES_S: Final[Mapping[Collection, float]] = {
    **dict.fromkeys((SERVICES, ENDPOINTS, SLICES, SERVICE_RANGES), 10.0),
    **dict.fromkeys((FLOW_SCHEMAS, PRIORITY_LEVELS, NAMESPACES), 60.0),
}
"""The seconds until a deleted object of a kind is created again; kube-apiserver checks these objects at the same intervals."""
SYSTEM_NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
MANAGER: Final = "kube-apiserver"


class StandingController:
    """The controller of the objects that every kube-apiserver maintains: it creates each of them again after it was deleted."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._ages = Ages()

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("standing objects", self.reconcile, dict.fromkeys(PAUSES_S, self._deleted))

    def _deleted(self, change: Change) -> Iterable[Key]:
        if change.type is ChangeType.DELETED and _is_standing(change.key):
            yield change.key

    def reconcile(self, key: Key) -> float | None:
        """Create the object again if it was deleted; before that, wait for the pause of its kind."""
        if self._state.get(key) is not None:
            self._ages.forget(key)
            return None
        left_s = PAUSES_S[key.collection] - self._ages.age(key, "gone")
        if left_s > 0:
            return left_s
        self._ages.forget(key)
        if key.collection == NAMESPACES:
            self._state.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.name}}, manager=MANAGER
            )
        else:
            first_objects.restore(self._state.backend, key)
        return None


def _is_standing(key: Key) -> bool:
    return key.name in SYSTEM_NAMESPACES if key.collection == NAMESPACES else first_objects.is_first(key)
