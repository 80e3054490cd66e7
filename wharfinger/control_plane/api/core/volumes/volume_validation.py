"""The validation of PersistentVolumes: one source, a capacity, and immutable fields."""

import posixpath
from collections.abc import Mapping
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.claim_specs import VOLUME_MODES, access_mode_errors
from wharfinger.control_plane.api.core.pod_specs.files import missing, no_backstep_errors
from wharfinger.control_plane.api.core.pod_specs.volume_sources import SOURCES as POD_SOURCES
from wharfinger.control_plane.api.core.pod_specs.volume_sources import Check, driver_errors
from wharfinger.control_plane.api.core.volumes.node_affinity import (
    affinity_change_errors,
    affinity_errors,
    affinity_warnings,
)
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.internal_types import internal_difference
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, texts
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import (
    NOT_POSITIVE,
    each,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    sorted_map,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.quantities import amount, canonical_quantity, whole

_POLICIES: Final = ("Delete", "Recycle", "Retain")
_ONE: Final = "may not specify more than 1 volume type"
_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _local(source: JsonObject, path: str) -> list[FieldError]:
    where = text(source, "path")
    return no_backstep_errors(where, f"{path}.path") if where else [required(f"{path}.path")]


def _csi(source: JsonObject, path: str) -> list[FieldError]:
    errors = driver_errors(text(source, "driver"), f"{path}.driver") + missing(source, path, "volumeHandle")
    for name in _SECRETS:
        reference = part(source, name)
        if reference is not None:
            errors += _secret_errors(reference, f"{path}.{name}")
    return errors


def _secret_errors(reference: JsonObject, path: str) -> list[FieldError]:
    name, namespace = text(reference, "name"), text(reference, "namespace")
    errors = each(f"{path}.name", name, subdomain_problems(name)) if name else [required(f"{path}.name")]
    if not namespace:
        return [*errors, required(f"{path}.namespace")]
    return errors + each(f"{path}.namespace", namespace, dns_label_problems(namespace))


def _with_secret_namespace(check: Check) -> Check:
    """Return a check that extends ``check``: if the source refers to a secret, it must also name the secret's namespace."""

    def checked(source: JsonObject, path: str) -> list[FieldError]:
        reference = part(source, "secretRef")
        return check(source, path) + ([] if reference is None else missing(reference, f"{path}.secretRef", "namespace"))

    return checked


def _glusterfs(source: JsonObject, path: str) -> list[FieldError]:
    errors = missing(source, path, "endpoints", "path")
    namespace = source.get("endpointsNamespace")
    if not isinstance(namespace, str):
        return errors
    if not namespace:
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        return [*errors, invalid(f"{path}.endpointsNamespace", namespace, why)]
    return errors + each(f"{path}.endpointsNamespace", namespace, dns_label_problems(namespace))


def _azure_file(source: JsonObject, path: str) -> list[FieldError]:
    errors = missing(source, path, "secretName", "shareName")
    return [*errors, required(f"{path}.secretNamespace")] if source.get("secretNamespace") == "" else errors


def _iscsi(source: JsonObject, path: str) -> list[FieldError]:
    errors = POD_SOURCES["iscsi"](source, path)
    starting = "must be valid format starting with iqn, eui, or naa"
    errors = [
        FieldError(error.field, error.reason, error.message.replace(starting, "must be valid format"))
        for error in errors
    ]
    reference = part(source, "secretRef")
    return errors + ([] if reference is None else missing(reference, f"{path}.secretRef", "name"))


SOURCES: Final[Mapping[str, tuple[str, Check]]] = {
    "hostPath": ("hostPath", POD_SOURCES["hostPath"]),
    "gcePersistentDisk": ("persistentDisk", POD_SOURCES["gcePersistentDisk"]),
    "awsElasticBlockStore": ("awsElasticBlockStore", POD_SOURCES["awsElasticBlockStore"]),
    "glusterfs": ("glusterfs", _glusterfs),
    "flocker": ("flocker", POD_SOURCES["flocker"]),
    "nfs": ("nfs", POD_SOURCES["nfs"]),
    "rbd": ("rbd", POD_SOURCES["rbd"]),
    "quobyte": ("quobyte", POD_SOURCES["quobyte"]),
    "cephfs": ("cephfs", POD_SOURCES["cephfs"]),
    "iscsi": ("iscsi", _iscsi),
    "cinder": ("cinder", _with_secret_namespace(POD_SOURCES["cinder"])),
    "fc": ("fc", POD_SOURCES["fc"]),
    "flexVolume": ("flexVolume", POD_SOURCES["flexVolume"]),
    "azureFile": ("azureFile", _azure_file),
    "vsphereVolume": ("vsphereVolume", POD_SOURCES["vsphereVolume"]),
    "photonPersistentDisk": ("photonPersistentDisk", POD_SOURCES["photonPersistentDisk"]),
    "portworxVolume": ("portworxVolume", POD_SOURCES["portworxVolume"]),
    "azureDisk": ("azureDisk", POD_SOURCES["azureDisk"]),
    "scaleIO": ("scaleIO", POD_SOURCES["scaleIO"]),
    "local": ("local", _local),
    "storageos": ("storageos", _with_secret_namespace(POD_SOURCES["storageos"])),
    "csi": ("csi", _csi),
}
"""For each member of ``spec``: its name in errors, and the function that checks it. The order is that of kube-apiserver."""
_MOUNTABLE: Final = frozenset(SOURCES) - {
    "hostPath", "flocker", "fc", "flexVolume", "portworxVolume", "scaleIO", "local", "storageos", "csi"
}  # fmt: skip
_NOT_SOURCES: Final = frozenset(
    {
        "Capacity", "AccessModes", "ClaimRef", "PersistentVolumeReclaimPolicy", "StorageClassName", "MountOptions",
        "VolumeMode", "NodeAffinity", "VolumeAttributesClassName",
    }
)  # fmt: skip
MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _volume_errors(volume: JsonObject) -> list[FieldError]:
    return _spec_errors(volume) + _mount_errors(volume)


def _mount_errors(volume: JsonObject) -> list[FieldError]:
    if find(volume, "metadata", "annotations", MOUNT_OPTIONS) is None or _MOUNTABLE & set(part(volume, "spec") or {}):
        return []
    why = "may not specify mount options for this volume type"
    return [forbidden(f"metadata.annotations.{MOUNT_OPTIONS}", why)]


def _spec_errors(volume: JsonObject) -> list[FieldError]:
    spec = part(volume, "spec") or {}
    modes = texts(spec, "accessModes")
    errors = access_mode_errors(modes, "spec.accessModes") if modes else [required("spec.accessModes")]
    errors += _capacity_errors(spec)
    policy = text(spec, "persistentVolumeReclaimPolicy")
    if policy and policy not in _POLICIES:
        errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _POLICIES))
    affinity = part(spec, "nodeAffinity")
    errors += affinity_errors(affinity, "spec.nodeAffinity") if affinity is not None else []
    errors += _source_errors(spec, text(volume, "metadata", "name"), bound_to_nodes=affinity is not None)
    path = find(spec, "hostPath", "path")
    if isinstance(path, str) and policy == "Recycle" and posixpath.normpath(path or ".").lstrip("/") == "" and path:
        why = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", why))
    return errors + _class_errors(spec)


def inline_volume_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a volume's spec inside another object, at ``path``: it must use CSI, and name no claim."""
    nowhere = "may not be specified in the context of inline volumes"
    errors = [forbidden(f"{path}.{name}", nowhere) for name in ("claimRef", "capacity") if spec.get(name)]
    if part(spec, "csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    modes = texts(spec, "accessModes")
    errors += access_mode_errors(modes, f"{path}.accessModes") if modes else [required(f"{path}.accessModes")]
    if text(spec, "persistentVolumeReclaimPolicy") not in {"", "Retain"}:
        why = "may only be Retain in the context of inline volumes"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", why))
    if part(spec, "nodeAffinity") is not None:
        errors.append(forbidden(f"{path}.nodeAffinity", nowhere))
    own = _source_errors(spec, "", bound_to_nodes=False) + _class_errors(spec)
    return errors + [FieldError(path + error.field.removeprefix("spec"), error.reason, error.message) for error in own]


def _capacity_errors(spec: JsonObject) -> list[FieldError]:
    field, capacity = "spec.capacity", part(spec, "capacity") or {}
    errors = [] if capacity else [required(field)]
    if set(capacity) != {"storage"}:
        errors.append(not_supported(field, sorted_map(capacity) if capacity else spec.get("capacity"), ["storage"]))
    for name, value in capacity.items():
        if whole(value) < 0:
            errors.append(invalid(f"{field}[{name}]", whole(value), "must be a valid resource quantity"))
        if amount(value) <= 0:
            errors.append(invalid(f"{field}[{name}]", canonical_quantity(value), NOT_POSITIVE))
    return errors


def _source_errors(spec: JsonObject, name: str, *, bound_to_nodes: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for member, (called, check) in SOURCES.items():
        source = part(spec, member)
        if source is None:
            continue
        if count and member != "flexVolume":
            errors.append(forbidden(f"spec.{'cephFS' if member == 'cephfs' else member}", _ONE))
            continue
        count += 1
        errors += check(source, f"spec.{called}")
        if member == "iscsi":
            errors += _portal_errors(source, name)
        if member == "local" and not bound_to_nodes:
            errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return errors if count else [*errors, required("spec", "must specify a volume type")]


def _portal_errors(source: JsonObject, name: str) -> list[FieldError]:
    portal = text(source, "targetPortal")
    if source.get("initiatorName") is None or len(f"{name}:{portal}".encode()) <= 64:
        return []
    why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."
    return [invalid("spec.iscsi.targetportal", portal, why)]


def _class_errors(spec: JsonObject) -> list[FieldError]:
    name, mode, attributes = (
        text(spec, "storageClassName"),
        spec.get("volumeMode"),
        spec.get("volumeAttributesClassName"),
    )
    errors = each("spec.storageClassName", name, subdomain_problems(name)) if name else []
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported("spec.volumeMode", mode, VOLUME_MODES))
    if isinstance(attributes, str):
        field = "spec.volumeAttributesClassName"
        if attributes:
            errors += each(field, attributes, subdomain_problems(attributes))
        else:
            errors.append(required(field, "an empty string is disallowed"))
        if part(spec, "csi") is None:
            errors.append(required("spec.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    own = core_meta_errors(new, namespaced=False) + _spec_errors(new)
    errors = own + _mount_errors(new) + own
    spec, before = part(new, "spec") or {}, part(old, "spec") or {}
    sources = ({name: item[name] for name in SOURCES if name in item} for item in (spec, before))
    after, source = (dict(item) for item in sources)
    csi, known = part(after, "csi"), part(source, "csi")
    if csi is not None and known is not None and "controllerExpandSecretRef" not in known:
        after["csi"] = {name: value for name, value in csi.items() if name != "controllerExpandSecretRef"}
    if after != source:
        difference = internal_difference("core.PersistentVolumeSpec", source, after, but=_NOT_SOURCES)
        why = f"spec.persistentvolumesource is immutable after creation\n{difference}"
        errors.append(forbidden("spec.persistentvolumesource", why))
    errors += immutable("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    affinity = part(before, "nodeAffinity")
    if affinity is not None:
        errors += affinity_change_errors(part(spec, "nodeAffinity"), affinity)
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        errors.append(forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden"))
    return errors


_GONE: Final = {
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
_OLD_ANNOTATIONS: Final = {
    _CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
}


def _warnings(volume: JsonObject, _old: JsonObject | None) -> list[str]:
    spec = part(volume, "spec") or {}
    annotations = part(volume, "metadata", "annotations") or {}
    said = [f"metadata.annotations[{name}]: {what}" for name, what in _OLD_ANNOTATIONS.items() if name in annotations]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        said.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach "
            "is to use dynamic provisioning."
        )
    said += affinity_warnings(part(spec, "nodeAffinity"), "spec.nodeAffinity")
    return said + [f"spec.{what}" for name, what in _GONE.items() if name in spec]


VOLUME_RULES: Final = Rules(create=_volume_errors, update=_update_errors, warnings=_warnings)
