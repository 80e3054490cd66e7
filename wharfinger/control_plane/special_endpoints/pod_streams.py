"""Access to the containers of Pods: logs, commands, ports.

There are no kubelets here. A simulated Pod has an empty log, and ``attach`` and ``portforward`` are refused. ``exec`` is also
refused unless the control plane runs commands (``Backend.runs_commands``). For Pods without a node, and for Pods whose node
does not exist, the answers are kube-apiserver's.
"""

import re
from typing import Final

from wharfinger.control_plane.api.core.nodes import SIMULATED_NODE
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.objects.names import parse_ip
from wharfinger.control_plane.special_endpoints.connections import switched_on
from wharfinger.control_plane.special_endpoints.endpoint import Answer, EndpointRequest, PodCommand
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import NEGATIVE, forbidden, invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find_str

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_LISTED: Final = ("initContainers", "containers", "ephemeralContainers")


def log(asked: EndpointRequest) -> Answer:
    """Return the log of a container, which is empty. Raises StatusError."""
    tail, limit, since = (_number(asked, name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    errors: list[FieldError] = []
    if tail is not None and tail < 0:
        errors.append(invalid("tailLines", tail, NEGATIVE))
    if limit is not None and limit < 1:
        errors.append(invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and _given(asked, "sinceTime"):
        errors.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        errors.append(invalid("sinceSeconds", since, "must be greater than 0"))
    if "stream" in asked.query:
        errors.append(forbidden("stream", "may not be specified"))
    if errors:
        raise status.invalid("", "PodLogOptions", asked.name, errors)
    pod = _pod(asked, asked.name)
    _container(asked, pod)
    if text(pod, "spec", "nodeName"):
        _check_node(asked, pod)
    return ""


def stream(asked: EndpointRequest) -> Answer:
    """Return the command of an ``exec`` if this server runs commands; refuse everything else. Raises StatusError."""
    pod = _pod(asked, asked.name)
    if asked.subresource.partition("/")[0] != "portforward":
        _container(asked, pod)
    if not text(pod, "spec", "nodeName"):
        raise status.bad_request(f"pod {asked.name} does not have a host assigned")
    _check_node(asked, pod)
    if asked.subresource == "exec" and asked.backend.runs_commands:
        return _command(asked, pod)
    remedy = "; to run commands, start the control plane with --pod-commands" if asked.subresource == "exec" else ""
    raise status.bad_request(f"there is no kubelet to connect to: this Pod is simulated{remedy}")


def _command(asked: EndpointRequest, pod: JsonObject) -> PodCommand:
    """Return the command of an ``exec``. Raises StatusError."""
    argv = asked.query.get("command", ())
    if not argv or not argv[0]:
        raise status.bad_request("you must specify at least 1 command for the container")
    if switched_on(asked.query, "tty"):
        raise status.bad_request("commands of simulated Pods have no terminal; leave tty out")
    if text(pod, "status", "phase") != "Running" or text(pod, "metadata", "deletionTimestamp"):
        raise status.bad_request(f"the containers of pod {asked.name} are not running")
    return PodCommand(text(pod, "metadata", "uid"), asked.name, tuple(argv), switched_on(asked.query, "stdin"))


def proxy(asked: EndpointRequest) -> Answer:
    """Refuse a request for ``proxy``, because simulated Pods have no reachable addresses. Raises StatusError."""
    names = asked.name.split(":")
    if len(names) > 3 or (len(names) == 3 and names[0] not in {"http", "https", ""}):
        raise status.bad_request(f'invalid pod request "{asked.name}"')
    pod = _pod(asked, names[1] if len(names) == 3 else names[0])
    address = parse_ip(find_str(pod, "status", "podIP"))
    if (
        address is None
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
    ):
        raise status.bad_request("address not allowed")
    message = f"error trying to reach service: dial tcp {address}: connect: no route to host"
    raise status.StatusError(503, "ServiceUnavailable", message)


def _pod(asked: EndpointRequest, name: str) -> JsonObject:
    found = asked.backend.object("", "pods", asked.namespace, name)
    if found is None:
        raise status.not_found(asked.served.kind, name)
    return found


def _given(asked: EndpointRequest, name: str) -> str:
    values = asked.query.get(name, ())
    return values[0] if values else ""


def _number(asked: EndpointRequest, name: str) -> int | None:
    given = _given(asked, name)
    if not given:
        return None
    if not _INTEGER.fullmatch(given):
        raise status.bad_request(f'strconv.ParseInt: parsing "{given}": invalid syntax')
    return int(given)


def _container(asked: EndpointRequest, pod: JsonObject) -> None:
    """Refuse (400) the name of a container that the Pod does not have, and a request without a name if the Pod has several
    containers.
    """
    wanted, name = _given(asked, "container"), text(pod, "metadata", "name")
    names = [text(container, "name") for kind in _LISTED for container in parts(pod, "spec", kind)]
    if wanted and wanted not in names:
        raise status.bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(parts(pod, "spec", "containers")) > 1:
        listed = " ".join(names)
        raise status.bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")


def _check_node(asked: EndpointRequest, pod: JsonObject) -> None:
    node = text(pod, "spec", "nodeName")
    if node != SIMULATED_NODE and asked.backend.object("", "nodes", "", node) is None:
        raise status.not_found(asked.served.kind, node)
