"""The ComponentStatuses (deprecated since Kubernetes v1.19). All components are always reported as healthy."""

from typing import Final

from wharfinger.control_plane.special_endpoints.endpoint import Answer, EndpointRequest, EndpointTable
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject

_COMPONENTS: Final = ("controller-manager", "scheduler", "etcd-0")


def _component(name: str) -> JsonObject:
    healthy: JsonObject = {"type": "Healthy", "status": "True", "message": "ok"}
    return {"metadata": {"name": name}, "conditions": [healthy]}


def component_statuses(asked: EndpointRequest) -> Answer:
    """Return the status of one component by name, or of all components. Raises StatusError (404)."""
    if not asked.name:
        items = [_component(name) for name in _COMPONENTS]
        return {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": [*items]}
    if asked.name not in _COMPONENTS:
        details: JsonObject = {"name": asked.name, "kind": "componentstatus"}
        raise status.StatusError(404, "NotFound", f'componentstatus "{asked.name}" not found', details)
    return {"kind": "ComponentStatus", "apiVersion": "v1", **_component(asked.name)}


COMPONENT_ENDPOINTS: Final[EndpointTable] = {"ComponentStatus": component_statuses}
