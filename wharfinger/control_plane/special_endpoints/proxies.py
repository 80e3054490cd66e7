"""The subresource ``proxy`` of Services and Nodes: nothing listens behind them here, so the backend is always unavailable."""

from typing import Final

from wharfinger.control_plane.special_endpoints.endpoint import Answer, EndpointRequest, EndpointTable
from wharfinger.control_plane.wire import status


def _found(asked: EndpointRequest) -> str:
    """Return the name of the requested object, which has to exist. Raises StatusError (404)."""
    name = asked.name
    if asked.served.kind.kind == "Service":  # scheme:name:port
        parts = name.split(":")
        name = parts[1] if len(parts) == 3 else parts[0]
    if asked.backend.get(asked.served, asked.namespace, name) is None:
        raise status.not_found(asked.served.kind, name)
    return name


def service_proxy(asked: EndpointRequest) -> Answer:
    """Refuse the request, because no endpoint of the Service is ready.

    Raises StatusError: 404 if the Service does not exist, otherwise 503.
    """
    _found(asked)
    raise status.StatusError(503, "ServiceUnavailable", f'no endpoints available for service "{asked.name}"')


def node_proxy(asked: EndpointRequest) -> Answer:
    """Refuse the request, because no kubelet answers.

    Raises StatusError: 404 if the Node does not exist, otherwise 503.
    """
    name = _found(asked)
    raise status.StatusError(503, "ServiceUnavailable", f"error trying to reach service: {name} has no kubelet")


PROXY_ENDPOINTS: Final[EndpointTable] = {"Service/proxy": service_proxy, "Node/proxy": node_proxy}
