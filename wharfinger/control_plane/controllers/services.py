"""Services with a selector: the addresses of the Pods behind them, and the address of a load balancer.

The controller creates an Endpoints object for each such Service, and one EndpointSlice per address family. A Service of type
``LoadBalancer`` gets an address from 198.51.100.0/24 (reserved for documentation) after three seconds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.api.discovery.endpoint_slices import MANAGED_BY, SERVICE_NAME
from wharfinger.control_plane.controllers.framework.controller import Ages, Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    ENDPOINTS,
    PODS,
    SERVICES,
    SLICES,
    is_deleted,
    is_over,
    is_true,
    key_of,
    labels_of,
    name_of,
    owner_reference,
    uid_of,
    with_fields,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.kubelet.pods import BARE_S
from wharfinger.control_plane.objects.label_selectors import selects
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str

HEADLESS: Final = "service.kubernetes.io/headless"
TRIGGERED: Final = "endpoints.kubernetes.io/last-change-trigger-time"
MIRRORED: Final = "endpoints.kubernetes.io/managed-by"
_OURS: Final = "endpointslice-controller.k8s.io"
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Backend:
    """A Pod behind a Service, with the target ports of the Service in this Pod."""

    pod: JsonObject
    ports: tuple[tuple[str, int, str, str], ...]
    """For each port: its name in the Service, its number in the Pod, its protocol, and its application protocol."""

    @property
    def ready(self) -> bool:
        """True if the Pod is ready for traffic."""
        return is_true(self.pod, "Ready") and not is_deleted(self.pod)


class ServiceController:
    """The controller of Services."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._ages = Ages()
        self._balancers = 0

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        wakes = {SERVICES: itself, PODS: self._of_pod, ENDPOINTS: self._of_endpoints, SLICES: self._of_slice}
        return Controller("Service", self.reconcile, wakes)

    def _of_pod(self, change: Change) -> Iterable[Key]:
        for service in self._state.objects(SERVICES, change.key.namespace):
            selector = find_object(service, "spec", "selector")
            if not selector:
                continue
            before, after = labels_of(change.previous), labels_of(change.obj)
            if selector.items() <= after.items() or selector.items() <= before.items():
                yield key_of(SERVICES, service)

    def _of_endpoints(self, change: Change) -> Iterable[Key]:
        yield Key(SERVICES, change.key.namespace, change.key.name)

    def _of_slice(self, change: Change) -> Iterable[Key]:
        name = find_str(labels_of(change.obj), SERVICE_NAME)
        if name:
            yield Key(SERVICES, change.key.namespace, name)

    def reconcile(self, key: Key) -> float | None:
        """Write the endpoints of a Service, and assign the address of its load balancer. Return the seconds until the next call
        is due, None if only a change requires one.
        """
        service = self._state.get(key)
        if service is None:
            self._ages.forget(key)
            self._forget_endpoints(key)
            return None
        if is_deleted(service):
            return None
        if find_str(service, "spec", "type") != "ExternalName" and find_object(service, "spec", "selector"):
            backends = self._backends(service)
            self._write_endpoints(service, backends)
            self._write_slices(service, backends)
        return self._assign_address(key, service)

    def _forget_endpoints(self, key: Key) -> None:
        """Delete the Endpoints of a deleted Service by name, because they have no owner."""
        where = Key(ENDPOINTS, key.namespace, key.name)
        endpoints = self._state.get(where)
        if endpoints is not None and MIRRORED in labels_of(endpoints):
            self._state.delete(where, endpoints)

    def _backends(self, service: JsonObject) -> list[Backend]:
        selector: JsonObject = {"matchLabels": find_object(service, "spec", "selector")}
        found: list[Backend] = []
        for pod in self._state.objects(PODS, find_str(service, "metadata", "namespace")):
            if selects(selector, labels_of(pod)) and find_str(pod, "status", "podIP") and not is_over(pod):
                ports = tuple(_target_port(port, pod) for port in find_list(service, "spec", "ports"))
                found.append(Backend(pod, tuple(port for port in ports if port is not None)))
        return found[:_MOST]

    def _write_endpoints(self, service: JsonObject, backends: Sequence[Backend]) -> None:
        labels = {**labels_of(service), MIRRORED: "endpoint-controller"}
        if find(service, "spec", "clusterIP") == "None":
            labels[HEADLESS] = ""
        subsets = _subsets(service, backends)
        where = key_of(ENDPOINTS, service)
        found = self._state.get(where)
        if found is None:
            metadata: JsonObject = {
                "name": name_of(service),
                "namespace": where.namespace,
                "labels": labels,
                "annotations": {TRIGGERED: find_str(service, "metadata", "creationTimestamp")},
            }
            made: JsonObject = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
            self._state.create(made | ({"subsets": subsets} if subsets else {}))
        elif (find_list(found, "subsets"), labels_of(found)) != (subsets, labels):
            annotations = find_object(found, "metadata", "annotations") | {TRIGGERED: self._state.time()}
            plain = {name: value for name, value in found.items() if name != "subsets"}
            new = with_fields(plain | ({"subsets": subsets} if subsets else {}), labels=labels, annotations=annotations)
            self._state.update(where, new)

    def _write_slices(self, service: JsonObject, backends: Sequence[Backend]) -> None:
        have = {find_str(one, "addressType"): one for one in self._state.owned(SLICES, service)}
        for family in find_list(service, "spec", "ipFamilies") or ["IPv4"]:
            if not isinstance(family, str):
                continue
            endpoints: list[JsonValue] = [_endpoint(one) for one in backends] if family == "IPv4" else []
            ports = _slice_ports(backends) if endpoints else []
            labels: JsonObject = {**labels_of(service), SERVICE_NAME: name_of(service), MANAGED_BY: _OURS}
            if find(service, "spec", "clusterIP") == "None":
                labels[HEADLESS] = ""
            found = have.get(family)
            if found is None:
                metadata: JsonObject = {
                    "generateName": f"{name_of(service)}-",
                    "namespace": find_str(service, "metadata", "namespace"),
                    "labels": labels,
                    "annotations": {TRIGGERED: find_str(service, "metadata", "creationTimestamp")},
                    "ownerReferences": [owner_reference(service)],
                }
                kind: JsonObject = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"}
                content: JsonObject = {"endpoints": endpoints or None, "ports": ports or None, "addressType": family}
                self._state.create({**kind, "metadata": metadata, **content})
            elif (find_list(found, "endpoints"), labels_of(found)) != (endpoints, labels):
                annotations = find_object(found, "metadata", "annotations") | {TRIGGERED: self._state.time()}
                content = {"endpoints": endpoints or None, "ports": ports or None}
                new = with_fields({**found, **content}, labels=labels, annotations=annotations)
                self._state.update(key_of(SLICES, found), new)

    def _assign_address(self, key: Key, service: JsonObject) -> float | None:
        if find_str(service, "spec", "type") != "LoadBalancer" or find_str(service, "spec", "loadBalancerClass"):
            return None
        if find_list(service, "status", "loadBalancer", "ingress"):
            return None
        left = BARE_S - self._ages.age(key, uid_of(service))
        if left > 0:
            return left
        self._balancers += 1
        address = f"198.51.100.{self._balancers % 254 + 1}"
        balancer: JsonObject = {"ingress": [{"ip": address, "ipMode": "VIP"}]}
        self._state.set_status(key, service, find_object(service, "status") | {"loadBalancer": balancer})
        self._state.record_event(service, "service-controller", "EnsuredLoadBalancer", "Ensured load balancer")
        return None


def _target_port(port: JsonValue, pod: JsonObject) -> tuple[str, int, str, str] | None:
    """Return the name, the number in the Pod, the protocol and the application protocol of a Service's port. Return None if
    ``targetPort`` is a name, and the Pod has no port of this name.
    """
    target = find(port, "targetPort")
    protocol = find_str(port, "protocol", default="TCP")
    name, application = find_str(port, "name"), find_str(port, "appProtocol")
    if isinstance(target, int):
        return name, target, protocol, application
    for container in find_list(pod, "spec", "containers"):
        for one in find_list(container, "ports"):
            number = find(one, "containerPort")
            if find(one, "name") == target and isinstance(number, int):
                return name, number, protocol, application
    return None


def _pod_reference(pod: JsonObject) -> JsonObject:
    return {
        "kind": "Pod",
        "namespace": find_str(pod, "metadata", "namespace"),
        "name": name_of(pod),
        "uid": uid_of(pod),
    }


def _subsets(service: JsonObject, backends: Sequence[Backend]) -> list[JsonValue]:
    """Return the subsets of the Endpoints: the addresses grouped by their ports."""
    unready_too = find(service, "spec", "publishNotReadyAddresses") is True
    groups: dict[tuple[tuple[str, int, str, str], ...], list[Backend]] = {}
    for one in backends:
        if one.ports or find(service, "spec", "clusterIP") == "None":
            groups.setdefault(one.ports, []).append(one)
    subsets: list[JsonValue] = []
    for ports, members in groups.items():
        subset: JsonObject = {}
        for name, among in (
            ("addresses", [one for one in members if one.ready or unready_too]),
            ("notReadyAddresses", [one for one in members if not one.ready and not unready_too]),
        ):
            if among:
                subset[name] = [_address(one.pod) for one in among]
        if ports:
            subset["ports"] = [_port(port) for port in ports]
        subsets.append(subset)
    return subsets


def _address(pod: JsonObject) -> JsonObject:
    address: JsonObject = {"ip": find_str(pod, "status", "podIP"), "targetRef": _pod_reference(pod)}
    if find_str(pod, "spec", "hostname"):
        address["hostname"] = find_str(pod, "spec", "hostname")
    node = find_str(pod, "spec", "nodeName")
    return address | ({"nodeName": node} if node else {})


def _port(port: tuple[str, int, str, str]) -> JsonObject:
    name, number, protocol, application = port
    shown: JsonObject = {"port": number, "protocol": protocol}
    return shown | ({"name": name} if name else {}) | ({"appProtocol": application} if application else {})


def _endpoint(backend: Backend) -> JsonObject:
    pod = backend.pod
    endpoint: JsonObject = {
        "addresses": [find_str(pod, "status", "podIP")],
        "conditions": {
            "ready": backend.ready,
            "serving": is_true(pod, "Ready"),
            "terminating": is_deleted(pod),
        },
        "targetRef": _pod_reference(pod),
    }
    for name, value in (
        ("hostname", find_str(pod, "spec", "hostname")),
        ("nodeName", find_str(pod, "spec", "nodeName")),
    ):
        if value:
            endpoint[name] = value
    return endpoint


def _slice_ports(backends: Sequence[Backend]) -> list[JsonValue]:
    first = next((one for one in backends if one.ports), None)
    if first is None:
        return []
    return [{"name": "", **_port(port)} for port in first.ports]
