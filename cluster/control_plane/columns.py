"""The cells of built-in kinds' tables: what ``kubectl get`` shows (Kubernetes' ``printers/internalversion``).

A cell never fails: objects are stored as clients wrote them, so a value of another type than expected shows as
``<none>``, not as an error of the whole list.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from wharfinger.cluster.control_plane.kinds import Column
from wharfinger.cluster.control_plane.timestamps import age, human_duration, parse_time
from wharfinger.formats.json_value import JsonObject, JsonValue, find

Cell = Callable[[JsonObject, datetime], JsonValue]
NONE: Final = "<none>"
UNSET: Final = "<unset>"


def column(name: str, cell: Cell, *, wide: bool = False, type: str = "string") -> Column:  # noqa: A002 - the API's word
    """A column; ``wide`` ones show with ``-o wide`` only."""
    return Column(name, cell, type=type, priority=1 if wide else 0)


def text(*path: str, default: str = NONE) -> Cell:
    """The string (or number) at a path."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        found = find(obj, *path)
        return found if isinstance(found, str | int | float) and found != "" else default

    return cell


def number(*path: str) -> Cell:
    """The integer at a path, 0 where there is none."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        return _int(obj, *path)

    return cell


def since(*path: str) -> Cell:
    """The age of the timestamp at a path."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:
        found = find(obj, *path)
        return age(found if isinstance(found, str) else "", now)

    return cell


def count(*paths: str) -> Cell:
    """How many entries the top-level lists or objects of these names have together."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        return sum(len(found) for path in paths if isinstance(found := obj.get(path), list | dict))

    return cell


def ratio(done: tuple[str, ...], wanted: tuple[str, ...]) -> Cell:
    """``1/3``."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        return f"{_int(obj, *done)}/{_int(obj, *wanted)}"

    return cell


def _int(obj: JsonValue, *path: str) -> int:
    found = find(obj, *path)
    return found if isinstance(found, int) else 0


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _joined(items: list[JsonObject], key: str) -> str:
    return ",".join(str(item.get(key, "")) for item in items) or NONE


def containers(key: str, *path: str) -> Cell:
    """Names or images of the containers of the pod template at a path."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        return _joined(_objects(find(obj, *path, "spec", "containers")), key)

    return cell


def selector(*path: str) -> Cell:
    """A label selector, or a plain map of labels, in the form of a query."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        return format_selector(find(obj, *path)) or NONE

    return cell


def format_selector(value: JsonValue) -> str:
    """``a=b,tier in (x,y),!z`` of a LabelSelector or of a map of labels; "" where it selects nothing or everything."""
    if not isinstance(value, dict):
        return ""
    labels = value.get("matchLabels", {} if "matchExpressions" in value else value)
    terms = [f"{key}={labels[key]}" for key in sorted(labels)] if isinstance(labels, dict) else []
    for expression in _objects(value.get("matchExpressions")):
        values = expression.get("values")
        among = ",".join(str(item) for item in values) if isinstance(values, list) else ""
        key = expression.get("key")
        terms.append(
            {"In": f"{key} in ({among})", "NotIn": f"{key} notin ({among})", "Exists": f"{key}"}.get(
                str(expression.get("operator")), f"!{key}"
            )
        )
    return ",".join(terms)


def job_status(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``Complete``, ``Failed``, ``Suspended`` or ``Running``."""
    holding = {item.get("type") for item in _objects(find(obj, "status", "conditions")) if item.get("status") == "True"}
    if find(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next(
        (state for state in ("Complete", "Failed", "Suspended", "FailureTarget") if state in holding), "Running"
    )


def job_completions(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``1/1``."""
    wanted = find(obj, "spec", "completions")
    if isinstance(wanted, int):
        return f"{_int(obj, 'status', 'succeeded')}/{wanted}"
    parallelism = _int(obj, "spec", "parallelism")
    of = f"1 of {parallelism}" if parallelism > 1 else "1"
    return f"{_int(obj, 'status', 'succeeded')}/{of}"


def job_duration(obj: JsonObject, now: datetime) -> JsonValue:
    """From start to completion, or until now."""
    started, done = find(obj, "status", "startTime"), find(obj, "status", "completionTime")
    start = parse_time(started) if isinstance(started, str) else None
    end = parse_time(done) if isinstance(done, str) else now
    return human_duration(end - start) if start is not None and end is not None else ""


def pod_ready(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``1/1``: containers that are ready."""
    ready = sum(1 for item in _objects(find(obj, "status", "containerStatuses")) if item.get("ready") is True)
    return f"{ready}/{len(_objects(find(obj, 'spec', 'containers')))}"


def pod_status(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """The phase, or the reason a container waits or ended."""
    if find(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    for item in _objects(find(obj, "status", "containerStatuses")):
        for state in ("waiting", "terminated"):
            reason = find(item, "state", state, "reason")
            if isinstance(reason, str) and reason:
                return reason
    found = find(obj, "status", "reason") or find(obj, "status", "phase")
    return found if isinstance(found, str) else "Unknown"


def pod_restarts(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Restarts of all containers."""
    return sum(_int(item, "restartCount") for item in _objects(find(obj, "status", "containerStatuses")))


def service_ports(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``80/TCP,443:30443/TCP``."""
    shown = []
    for port in _objects(find(obj, "spec", "ports")):
        node = port.get("nodePort")
        shown.append(f"{port.get('port')}{f':{node}' if node else ''}/{port.get('protocol', 'TCP')}")
    return ",".join(shown) or NONE


def service_external(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """External addresses, or what stands for them by type."""
    listed = find(obj, "spec", "externalIPs")
    ips = ",".join(str(item) for item in listed) if isinstance(listed, list) else ""
    kind = find(obj, "spec", "type")
    if kind == "ExternalName":
        return str(find(obj, "spec", "externalName") or NONE)
    if kind == "LoadBalancer":
        given = [
            str(item.get("ip") or item.get("hostname"))
            for item in _objects(find(obj, "status", "loadBalancer", "ingress"))
        ]
        return ",".join(given) or ips or "<pending>"
    return ips or NONE


def ingress_hosts(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Hosts of the rules, ``*`` where none is named."""
    return ",".join(str(rule.get("host") or "*") for rule in _objects(find(obj, "spec", "rules"))) or "*"


def ingress_address(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Addresses of the load balancer."""
    return ",".join(
        str(item.get("ip") or item.get("hostname")) for item in _objects(find(obj, "status", "loadBalancer", "ingress"))
    )


def ingress_ports(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``80`` or ``80, 443``."""
    return "80, 443" if find(obj, "spec", "tls") else "80"


def role_ref(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``Role/name``."""
    return f"{find(obj, 'roleRef', 'kind')}/{find(obj, 'roleRef', 'name')}"


def access_modes(*path: str) -> Cell:
    """``RWO,RWX``."""
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        modes = find(obj, *path)
        return ",".join(short.get(str(mode), str(mode)) for mode in modes) if isinstance(modes, list) else ""

    return cell


def event_object(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``pod/web-1``."""
    return f"{str(find(obj, 'involvedObject', 'kind') or '').lower()}/{find(obj, 'involvedObject', 'name') or ''}"


def event_last_seen(obj: JsonObject, now: datetime) -> JsonValue:
    """The age of the last occurrence."""
    for path in (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",), ("firstTimestamp",)):
        found = find(obj, *path)
        if isinstance(found, str) and found:
            return age(found, now)
    return age(str(find(obj, "metadata", "creationTimestamp") or ""), now)


def node_status(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``Ready`` or ``NotReady``, and whether scheduling is off."""
    ready = any(
        item.get("type") == "Ready" and item.get("status") == "True"
        for item in _objects(find(obj, "status", "conditions"))
    )
    return ("Ready" if ready else "NotReady") + (",SchedulingDisabled" if find(obj, "spec", "unschedulable") else "")


def node_roles(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Names after ``node-role.kubernetes.io/``."""
    labels = find(obj, "metadata", "labels")
    prefix = "node-role.kubernetes.io/"
    roles = [key.removeprefix(prefix) for key in labels if key.startswith(prefix)] if isinstance(labels, dict) else []
    return ",".join(sorted(roles)) or NONE


def cron_suspended(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``True`` or ``False``."""
    return str(bool(find(obj, "spec", "suspend")))


def cron_active(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """How many jobs run."""
    return len(_objects(find(obj, "status", "active")))


def cron_last(obj: JsonObject, now: datetime) -> JsonValue:
    """The age of the last schedule, ``<none>`` before the first."""
    found = find(obj, "status", "lastScheduleTime")
    return age(found, now) if isinstance(found, str) else NONE


def scale_target(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """``Deployment/web``."""
    return f"{find(obj, 'spec', 'scaleTargetRef', 'kind')}/{find(obj, 'spec', 'scaleTargetRef', 'name')}"
