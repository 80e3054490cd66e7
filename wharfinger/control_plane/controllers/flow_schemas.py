"""The status of FlowSchemas: whether the priority level that they name exists. FlowSchemas have no other effect here."""

from collections.abc import Iterable
from typing import Final

from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import FLOW_SCHEMAS, PRIORITY_LEVELS, key_of, name_of
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.json.value import JsonObject, find_str

MANAGER: Final = "api-priority-and-fairness-config-consumer-v1"
_TYPE: Final = "Dangling"


class FlowSchemaController:
    """The controller of FlowSchemas; in a real cluster the kube-apiserver itself applies their status."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("FlowSchema", self.reconcile, {FLOW_SCHEMAS: itself, PRIORITY_LEVELS: self._of_level})

    def _of_level(self, change: Change) -> Iterable[Key]:
        for schema in self._state.objects(FLOW_SCHEMAS):
            if _level_of(schema) == change.key.name:
                yield key_of(FLOW_SCHEMAS, schema)

    def reconcile(self, key: Key) -> float | None:
        """Set the condition ``Dangling`` of one FlowSchema, which says whether its priority level is missing."""
        schema = self._state.get(key)
        if schema is None:
            return None
        name = _level_of(schema)
        reference = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}" '
        if self._state.get(Key(PRIORITY_LEVELS, "", name)) is not None:
            wanted = {"status": "False", "reason": "Found", "message": f"{reference}and it exists"}
        else:
            wanted = {"status": "True", "reason": "NotFound", "message": f"{reference}but there is no such object"}
        known = next((item for item in parts(schema, "status", "conditions") if item.get("type") == _TYPE), {})
        if any(known.get(field) != value for field, value in wanted.items()):
            condition: JsonObject = {"type": _TYPE, "lastTransitionTime": self._state.time(), **wanted}
            intent: JsonObject = {
                "apiVersion": find_str(schema, "apiVersion"),
                "kind": "FlowSchema",
                "metadata": {"name": name_of(schema)},
                "status": {"conditions": [condition]},
            }
            self._state.apply_status(key, intent, manager=MANAGER)
        return None


def _level_of(schema: JsonObject) -> str:
    return find_str(schema, "spec", "priorityLevelConfiguration", "name")
