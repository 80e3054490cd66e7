"""The validation of downward API references (``fieldRef``, ``resourceFieldRef``), and of references to keys of ConfigMaps,
Secrets and files.
"""

from collections.abc import Collection
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.files import no_backstep_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.names import (
    config_key_problems,
    dns_label_problems,
    environment_name_problems,
    subdomain_problems,
)
from wharfinger.control_plane.wire.field_errors import each, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.quantities import amount, canonical_quantity
from wharfinger.kube.selectors import key_problems

ENVIRONMENT_FIELDS: Final = frozenset(
    {
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
    }
)  # fmt: skip
VOLUME_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_FIELDS: Final = (ENVIRONMENT_FIELDS | VOLUME_FIELDS) | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS: Final = {
    "cpu": (("1m", "1"), "1m and 1", "cpu"),
    "memory": (_BYTES, ", ".join(_BYTES), "memory"),
    "ephemeral-storage": (_BYTES, ", ".join(_BYTES), "local ephemeral storage"),
    "hugepages": (_BYTES, ", ".join(_BYTES), "hugepages"),
}


def field_reference_errors(reference: JsonObject, known: Collection[str], path: str) -> list[FieldError]:
    """Return the errors of a ``fieldRef``; ``known`` are the fields to which it may refer."""
    version, label = text(reference, "apiVersion"), text(reference, "fieldPath")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not label:
        return [required(f"{path}.fieldPath")]
    where, subscript = _subscripted(label)
    why = ""
    if version != "v1":
        why = f"unsupported pod version: {version}"
    elif subscript is not None and where not in {"metadata.annotations", "metadata.labels"}:
        why = f"field label does not support subscript: {label}"
    elif subscript is None and where not in _FIELDS and where != "spec.host":
        why = f"field label not supported: {label}"
    if why:
        return [invalid(f"{path}.fieldPath", label, f"error converting fieldPath: {why}")]
    if subscript is not None:
        key = subscript.lower() if where == "metadata.annotations" else subscript
        return each(path, key, key_problems(key))
    where = "spec.nodeName" if where == "spec.host" else where
    return [] if where in known else [not_supported(f"{path}.fieldPath", where, sorted(known))]


def _subscripted(label: str) -> tuple[str, str | None]:
    """Return the parts of ``metadata.labels['a']``: the text before the brackets, and the key in them."""
    before, bracket, rest = label.removesuffix("']").partition("['")
    return (before, rest) if label.endswith("']") and bracket and before else (label, None)


def resource_reference_errors(reference: JsonObject, path: str, *, volume: bool) -> list[FieldError]:
    """Return the errors of a ``resourceFieldRef``; in a volume, it must name its container."""
    resource = text(reference, "resource")
    errors: list[FieldError] = []
    if volume and not text(reference, "containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, _RESOURCES))
    return errors + _divisor_errors(reference, resource, path)


def _divisor_errors(reference: JsonObject, resource: str, path: str) -> list[FieldError]:
    divisor = reference.get("divisor")
    kind = "hugepages" if resource.startswith(_PAGES) else resource.partition(".")[2]
    if not amount(divisor) or kind not in _DIVISORS or (resource not in _RESOURCES and kind != "hugepages"):
        return []
    known, listed, called = _DIVISORS[kind]
    if canonical_quantity(divisor) in known:
        return []
    return [
        invalid(f"{path}.divisor", resource, f"only divisor's values {listed} are supported with the {called} resource")
    ]


def key_reference_errors(reference: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a ``configMapKeyRef`` or ``secretKeyRef``."""
    name, key = text(reference, "name"), text(reference, "key")
    errors = each(f"{path}.name", name, subdomain_problems(name))
    if not key:
        return [*errors, required(f"{path}.key")]
    return errors + each(f"{path}.key", key, config_key_problems(key))


def file_reference_errors(reference: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a ``fileKeyRef``."""
    key, volume, file = text(reference, "key"), text(reference, "volumeName"), text(reference, "path")
    errors = each(f"{path}.key", key, environment_name_problems(key)) if key else [required(f"{path}.key")]
    if volume:
        errors += each(f"{path}.volumeName", volume, dns_label_problems(volume))
    else:
        errors.append(required(f"{path}.volumeName"))
    return errors + (no_backstep_errors(file, f"{path}.path") if file else [required(f"{path}.path")])
