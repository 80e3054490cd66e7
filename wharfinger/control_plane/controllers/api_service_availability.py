"""The status of APIServices that refer to a Service: here they are never available, and the status states the reason.

The reason is a missing Service, port or endpoint. If all of these exist, a real cluster sends a request to the server behind
the Service. Here no server runs behind a Service, so the reason is then a refused connection.
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.control_plane.api.discovery.endpoint_slices import SERVICE_NAME
from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import API_SERVICES, SERVICES, SLICES, key_of, labels_of
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.objects.amounts import number
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object, find_str
from wharfinger.kube.times import transition_time

MANAGER: Final = "kube-apiserver"
_TYPE: Final = "Available"


class AvailabilityController:
    """The controller of APIServices that refer to a Service."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return the controller for the runner: its name, :meth:`reconcile`, and the changes that cause a reconciliation."""
        wakes = {API_SERVICES: itself, SERVICES: self._of_service, SLICES: self._of_slice}
        return Controller("APIService", self.reconcile, wakes)

    def _of_service(self, change: Change) -> Iterable[Key]:
        return self._served_by(change.key.namespace, change.key.name)

    def _of_slice(self, change: Change) -> Iterable[Key]:
        named = {find_str(obj, "metadata", "labels", SERVICE_NAME) for obj in (change.obj, change.previous)}
        return [key for name in sorted(named - {""}) for key in self._served_by(change.key.namespace, name)]

    def _served_by(self, namespace: str, name: str) -> list[Key]:
        return [
            key_of(API_SERVICES, one)
            for one in self._state.objects(API_SERVICES)
            if (find_str(one, "spec", "service", "namespace"), find_str(one, "spec", "service", "name"))
            == (namespace, name)
        ]

    def reconcile(self, key: Key) -> float | None:
        """Set the condition ``Available`` of an APIService that refers to a Service to False, with the reason."""
        one = self._state.get(key)
        wanted = None if one is None else part(one, "spec", "service")
        if one is None or wanted is None:
            return None
        reason, message = self._problem(one, wanted)
        conditions = parts(one, "status", "conditions")
        known = next((item for item in conditions if item.get("type") == _TYPE), {})
        condition: JsonObject = {
            "type": _TYPE,
            "status": "False",
            "lastTransitionTime": transition_time(conditions, _TYPE, "False", self._state.time()),
            "reason": reason,
            "message": message,
        }
        changed: list[JsonValue] = [condition if item is known else item for item in conditions]
        status = {**find_object(one, "status"), "conditions": changed if known else [*changed, condition]}
        self._state.set_status(key, one, status, manager=MANAGER)
        return None

    def _problem(self, one: JsonObject, wanted: JsonObject) -> tuple[str, str]:
        """Return the reason and the message of the condition, which state why the APIService is not available."""
        namespace, name, number_of_port = (
            find_str(wanted, "namespace"),
            find_str(wanted, "name"),
            number(wanted, "port"),
        )
        service = self._state.get(Key(SERVICES, namespace, name))
        called = f'service/{name} in "{namespace}"'
        if service is None:
            return "ServiceNotFound", f"{called} is not present"
        if find_str(service, "spec", "type") == "ClusterIP":
            ports = [port for port in parts(service, "spec", "ports") if port.get("port") == number_of_port]
            if not ports:
                return "ServicePortError", f"{called} is not listening on port {number_of_port}"
            slices = [
                item for item in self._state.objects(SLICES, namespace) if labels_of(item).get(SERVICE_NAME) == name
            ]
            if not slices:
                return "EndpointsNotFound", f"cannot find endpointslices for {called}"
            port_name = find_str(ports[0], "name")
            if not any(_has_ready_endpoint(item, port_name) for item in slices):
                why = f'endpointslices for {called} have no addresses with port name "{port_name}"'
                return "MissingEndpoints", why
        host = f"{find_str(service, 'spec', 'clusterIP')}:{number_of_port}"
        url = f"https://{host}/apis/{find_str(one, 'spec', 'group')}/{find_str(one, 'spec', 'version')}"
        why = f'failing or missing response from {url}: Get "{url}": dial tcp {host}: connect: connection refused'
        return "FailedDiscoveryCheck", why


def _has_ready_endpoint(item: JsonObject, port_name: str) -> bool:
    """Return whether an EndpointSlice has a ready endpoint for a port."""
    if all(find_str(port, "name") != port_name for port in parts(item, "ports")):
        return False
    endpoints = parts(item, "endpoints")
    return any(
        texts(one, "addresses") and find_object(one, "conditions").get("ready") is not False for one in endpoints
    )
