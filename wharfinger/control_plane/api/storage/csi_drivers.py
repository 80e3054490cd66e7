"""The validation of CSIDrivers, and of CSINodes, which list the drivers on a node (storage.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.objects.amounts import not_negative, optional_number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts, repeated, texts
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import (
    duplicate,
    each,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.selectors import key_problems

POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
MODES: Final = ("Persistent", "Ephemeral")
NAME_LIMIT: Final = 63
NODE_ID_LIMIT: Final = 256
SHORTEST_TOKEN: Final = 600
LONGEST_TOKEN: Final = 2**32
SHORTEST_PERIOD: Final = 10
_BOOLEANS: Final = {"attachRequired": "attachedRequired", "podInfoOnMount": "", "storageCapacity": ""}
"""The required Boolean fields, each with its name in kube-apiserver's errors; "" means that the name there is the same."""
_TOKENS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging "
    "of tokens in volume attributes"
)


def driver_name_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of a driver's name: a domain of at most 63 characters, in upper or lower case."""
    if not name:
        return [required(field)]
    errors = [too_long(field, NAME_LIMIT)] if len(name) > NAME_LIMIT else []
    return errors + each(field, name, subdomain_problems(name.lower()))


def driver_errors(driver: JsonObject) -> list[FieldError]:
    """Return the errors of the spec of a CSIDriver."""
    spec = part(driver, "spec") or {}
    errors = [required(f"spec.{shown or name}") for name, shown in _BOOLEANS.items() if spec.get(name) is None]
    policy, period = spec.get("fsGroupPolicy"), optional_number(spec, "nodeAllocatableUpdatePeriodSeconds")
    if policy is not None and policy not in POLICIES:
        errors.append(not_supported("spec.fsGroupPolicy", policy, POLICIES))
    tokens = parts(spec, "tokenRequests")
    errors += _token_errors(tokens)
    errors += [
        not_supported("spec.volumeLifecycleModes", mode, MODES)
        for mode in texts(spec, "volumeLifecycleModes")
        if mode not in MODES
    ]
    if spec.get("seLinuxMount") is None:
        errors.append(required("spec.seLinuxMount"))
    if period is not None and period < SHORTEST_PERIOD:
        why = "must be greater than or equal to 10 seconds"
        errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, why))
    secret = spec.get("serviceAccountTokenInSecrets")
    if secret is not None and not tokens:
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid("spec.serviceAccountTokenInSecrets", secret, why))
    return errors


def _token_errors(requests: list[JsonObject]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", text(request, "audience")
        if audience in seen:
            errors.append(duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        seconds = optional_number(request, "expirationSeconds")
        if seconds is not None and seconds < SHORTEST_TOKEN:
            why = "may not specify a duration less than 10 minutes"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, why))
        if seconds is not None and seconds > LONGEST_TOKEN:
            why = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, why))
    return errors


def _driver_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = driver_errors(new)
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        errors += immutable(f"spec.{shown}", find(new, "spec", name), find(old, "spec", name))
    return errors


def _driver_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    tokens = parts(new, "spec", "tokenRequests")
    if not tokens or tokens == parts(old, "spec", "tokenRequests"):
        return []
    return [_TOKENS] if find(new, "spec", "serviceAccountTokenInSecrets") is None else []


def csi_node_errors(node: JsonObject) -> list[FieldError]:
    """Return the errors of the spec of a CSINode."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, driver in enumerate(parts(node, "spec", "drivers")):
        path, name = f"spec.drivers[{index}]", text(driver, "name")
        errors += driver_name_errors(name, f"{path}.name")
        errors += _node_id_errors(text(driver, "nodeID"), f"{path}.nodeID")
        errors += not_negative(find(driver, "allocatable", "count"), f"{path}.allocatable.count")
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        errors += _topology_errors(texts(driver, "topologyKeys"), path)
    return errors


def _node_id_errors(identity: str, field: str) -> list[FieldError]:
    if not identity:
        return [required(field)]
    if len(identity.encode()) > NODE_ID_LIMIT:
        return [invalid(field, identity, f"must be {NODE_ID_LIMIT} characters or less")]
    return []


def _topology_errors(keys: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    twice = repeated(keys)
    for index, key in enumerate(keys):
        errors += [] if key else [required(path)]
        errors += [duplicate(path, key)] if index in twice else []
        errors += each(path, key, key_problems(key))
    return errors


def _node_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed CSINode: existing drivers are immutable except for their volume limits."""
    errors = csi_node_errors(new)
    for before in parts(old, "spec", "drivers"):
        for driver in parts(new, "spec", "drivers"):
            if text(driver, "name") == text(before, "name"):
                errors += immutable("spec.drivers", _shown_driver(driver), _shown_driver(before))
    return errors


def _shown_driver(driver: JsonObject) -> JsonObject:
    shown: JsonObject = {"Name": text(driver, "name"), "NodeID": text(driver, "nodeID")}
    return {**shown, "TopologyKeys": driver.get("topologyKeys"), "Allocatable": None}


CSI_DRIVER_RULES: Final[dict[str, Rules]] = {
    "CSIDriver.storage.k8s.io": Rules(create=driver_errors, update=_driver_update_errors, warnings=_driver_warnings),
    "CSINode.storage.k8s.io": Rules(create=csi_node_errors, update=_node_update_errors),
}
