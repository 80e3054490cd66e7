"""The validation of a Pod's status: conditions, addresses, and container states, which may not leave ``terminated`` without
a restart.
"""

from typing import Final

from wharfinger.control_plane.objects.addresses import legacy_ip_errors
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.objects.names import MAX_INT32, between, parse_ip, subdomain_problems
from wharfinger.control_plane.wire.field_errors import (
    duplicate,
    each,
    forbidden,
    internal_error,
    invalid,
    not_supported,
    required,
    too_long,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.selectors import key_problems

_SYSTEM_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_NOT_NEGATIVE: Final = "must be a non-negative integer"
_BACK: Final = "may not be transitioned to non-terminated state"
_HEALTHS: Final = ("Healthy", "Unhealthy", "Unknown")
_MESSAGE_LENGTH: Final = 1024
_IMAGE_LENGTH: Final = 256
STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_CONTAINERS: Final = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}


def status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of an update of a Pod's status; the caller checks the Pod's annotations."""
    status, before = part(new, "status") or {}, part(old, "status") or {}
    errors = _condition_errors(parts(status, "conditions"))
    nominated, then = text(status, "nominatedNodeName"), text(before, "nominatedNodeName")
    if nominated and nominated != then:
        errors += each("status.nominatedNodeName", nominated, subdomain_problems(nominated))
        if text(old, "spec", "nodeName"):
            why = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", why))
    if number(status, "observedGeneration") < 0:
        errors.append(invalid("status.observedGeneration", number(status, "observedGeneration"), _NOT_NEGATIVE))
    if text(status, "qosClass") != text(before, "qosClass"):
        errors.append(invalid("status.qosClass", text(status, "qosClass"), "field is immutable"))
    spec = part(old, "spec") or {}
    for name in STATUS_LISTS:
        errors += _transition_errors(name, parts(status, name), parts(before, name), spec)
    errors += _claim_errors(new)
    errors += _address_errors(status, before, "podIPs")
    if parts(status, "hostIPs"):
        first = text(parts(status, "hostIPs")[0], "ip")
        if text(status, "hostIP") != first:
            errors.append(invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
        errors += _address_errors(status, before, "hostIPs")
    for name in STATUS_LISTS:
        errors += _user_errors(name, parts(status, name), text(new, "spec", "os", "name"))
    for name in STATUS_LISTS:
        errors += _allocated_errors(name, parts(status, name), new)
    for name in STATUS_LISTS:
        errors += _image_errors(name, parts(status, name))
    return errors


def _condition_errors(conditions: list[JsonObject]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        at, kind = f"status.conditions[{index}]", text(condition, "type")
        if number(condition, "observedGeneration") < 0:
            seen = number(condition, "observedGeneration")
            errors.append(invalid(f"{at}.observedGeneration", seen, _NOT_NEGATIVE))
        if kind not in _SYSTEM_CONDITIONS:
            errors += each(f"{at}.Type", kind, key_problems(kind))
    return errors


def _transition_errors(name: str, now: list[JsonObject], then: list[JsonObject], spec: JsonObject) -> list[FieldError]:
    """Return an error for each container that is no longer reported as terminated although nothing restarts it."""
    if name in _CONTAINERS and _all_may_restart(spec):
        return []
    errors: list[FieldError] = []
    for index, ended in enumerate(then):
        terminated = part(ended, "state", "terminated")
        if terminated is None:
            continue
        called = text(ended, "name")
        states = [item for item in now if text(item, "name") == called and part(item, "state", "terminated") is None]
        if not states:
            continue
        if name not in _CONTAINERS:
            errors += [forbidden(f"status.{name}[{index}].state", _BACK)] * len(states)
            continue
        containers = [item for item in parts(spec, _CONTAINERS[name]) if text(item, "name") == called]
        if not containers or not _restarts(containers[0], spec, number(terminated, "exitCode")):
            errors.append(forbidden(f"status.{name}[{index}].state", _BACK))
    return errors


def _all_may_restart(spec: JsonObject) -> bool:
    containers = parts(spec, "containers") + parts(spec, "initContainers")
    return any(
        text(rule, "action") == "RestartAllContainers"
        for container in containers
        for rule in parts(container, "restartPolicyRules")
    )


def _restarts(container: JsonObject, spec: JsonObject, code: int) -> bool:
    """Return whether a container that ended with an exit code is restarted."""
    for rule in parts(container, "restartPolicyRules"):
        codes = part(rule, "exitCodes") or {}
        values = codes.get("values")
        listed = isinstance(values, list) and code in values
        if text(rule, "action") == "Restart" and listed == (text(codes, "operator") == "In"):
            return True
    policy = text(container, "restartPolicy") or text(spec, "restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _claim_errors(pod: JsonObject) -> list[FieldError]:
    known = {text(claim, "name") for claim in parts(pod, "spec", "resourceClaims")}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(parts(pod, "status", "resourceClaimStatuses")):
        at, name, real = f"status.resourceClaimStatuses[{index}]", text(claim, "name"), claim.get("resourceClaimName")
        if name not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{at}.name", name, why))
        if name in seen:
            errors.append(duplicate(f"{at}.name", name))
        seen.add(name)
        if isinstance(real, str):
            errors += each(f"{at}.resourceClaimName", real, subdomain_problems(real))
    return errors


def _address_errors(status: JsonObject, before: JsonObject, name: str) -> list[FieldError]:
    path = f"status.{name}"
    kept = {text(item, "ip") for item in parts(before, name)}
    addresses = [text(item, "ip") for item in parts(status, name)]
    errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        errors += legacy_ip_errors(f"{path}[{index}]", address, kept)
    if len(addresses) > 1:
        parsed = [parse_ip(address) for address in addresses]
        if None in parsed:
            first = parsed.index(None)
            why = f"failed to check for dual stack with error:invalid IP[{first}]: {addresses[first]}"
            errors.append(internal_error(path, why))
        versions = {found.version for found in parsed if found is not None}
        if len(versions) < 2 or len(addresses) > 2 or None in parsed:
            shown: list[JsonValue] = [{"IP": address} for address in addresses]
            errors.append(invalid(path, shown, "may specify no more than one IP for each IP family"))
    return errors


def _user_errors(name: str, statuses: list[JsonObject], system: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, status in enumerate(statuses):
        linux, at = part(status, "user", "linux"), f"status.{name}[{index}].user.linux"
        if linux is None:
            continue
        if system == "windows":
            errors.append(forbidden(at, "cannot be set for a windows pod"))
            continue
        groups = linux.get("supplementalGroups")
        listed = list(enumerate(groups)) if isinstance(groups, list) else []
        numbers = [("uid", number(linux, "uid")), ("gid", number(linux, "gid"))]
        numbers += [(f"supplementalGroups[{place}]", group) for place, group in listed if isinstance(group, int)]
        errors += [
            invalid(f"{at}.{field}", value, between(0, MAX_INT32))
            for field, value in numbers
            if not 0 <= value <= MAX_INT32
        ]
    return errors


def _allocated_errors(name: str, statuses: list[JsonObject], pod: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, status in enumerate(statuses):
        path = f"status.{name}[{index}].allocatedResourcesStatus"
        allocated = parts(status, "allocatedResourcesStatus")
        if name not in _CONTAINERS:
            errors += [forbidden(path, "must not be specified in container status")] if allocated else []
            continue
        containers = parts(pod, "spec", _CONTAINERS[name])
        own = [item for item in containers if text(item, "name") == text(status, "name")]
        for place, resource in enumerate(allocated):
            at = f"{path}[{place}]"
            errors += _asked_errors(text(resource, "name"), own[0], f"{at}.name") if own else []
            errors += _health_errors(parts(resource, "resources"), f"{at}.resources")
    return errors


def _asked_errors(name: str, container: JsonObject, path: str) -> list[FieldError]:
    if name.startswith("claim:"):
        claims = parts(container, "resources", "claims")
        known = {f"claim:{text(item, 'name')}/{text(item, 'request')}".removesuffix("/") for item in claims}
        why = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
        why += "'claim:<claimName>' if request is empty"
        return [] if name in known else [invalid(path, name, why)]
    requests = part(container, "resources", "requests") or {}
    return [] if name in requests else [invalid(path, name, "must match one of the container's resource requests")]


def _health_errors(resources: list[JsonObject], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        at, health, identity = f"{path}[{index}]", text(resource, "health"), text(resource, "resourceID")
        message = resource.get("message")
        if health not in _HEALTHS:
            errors.append(not_supported(f"{at}.health", health, _HEALTHS))
        if message == "":
            errors.append(required(f"{at}.message", "must be non-empty if specified"))
        elif isinstance(message, str) and len(message.encode()) > _MESSAGE_LENGTH:
            errors.append(too_long(f"{at}.message", _MESSAGE_LENGTH))
        if identity in seen:
            errors.append(duplicate(f"{at}.resourceID", identity))
        seen.add(identity)
    return errors


def _image_errors(name: str, statuses: list[JsonObject]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, status in enumerate(statuses):
        for place, mount in enumerate(parts(status, "volumeMounts")):
            image = part(mount, "volumeStatus", "image")
            if image is None:
                continue
            at = f"status.{name}[{index}].volumeMounts[{place}].volumeStatus.imageVolumeStatus.imageRef"
            if not text(image, "imageRef"):
                errors.append(required(at, "imageRef must not be empty"))
            if len(text(image, "imageRef").encode()) > _IMAGE_LENGTH:
                errors.append(too_long(at, _IMAGE_LENGTH))
    return errors
