"""The admission plugins for storage: protection of volumes in use, default class of claims, expansion of claims."""

from typing import Final

from wharfinger.control_plane.api.common.admission import Admission, Operation, Plugin
from wharfinger.control_plane.api.common.default_class import STORAGE_MARKS, default_class
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import flag, part, texts
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import amount

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_PROTECTION: Final = {
    "PersistentVolume": "kubernetes.io/pv-protection",
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
    "VolumeAttributesClass.storage.k8s.io": "kubernetes.io/vac-protection",
}


def protect(admission: Admission, obj: JsonObject) -> JsonObject:
    """Return the object with the finalizer that protects it while it is in use."""
    finalizer = _PROTECTION[admission.kind.group_kind]
    finalizers: list[JsonValue] = [*texts(obj, "metadata", "finalizers")]
    if admission.subresource or finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**(part(obj, "metadata") or {}), "finalizers": [*finalizers, finalizer]}}


def fill_class(admission: Admission, claim: JsonObject) -> JsonObject:
    """Set the class of a claim without a class to the default class, or to the newest default class if there are several."""
    if admission.subresource or _class_of(claim) is not None:
        return claim
    name = default_class(admission.view.objects("storage.k8s.io", "storageclasses"), STORAGE_MARKS)
    return {**claim, "spec": {**(part(claim, "spec") or {}), "storageClassName": name}} if name else claim


def _class_of(claim: JsonObject | None) -> str | None:
    annotation = find(claim, "metadata", "annotations", CLASS_ANNOTATION)
    name = annotation if annotation is not None else find(claim, "spec", "storageClassName")
    return name if isinstance(name, str) else None


def check_growth(admission: Admission) -> None:
    """Raise StatusError (403) if a PersistentVolumeClaim requests more storage, but is not bound, or its class forbids this."""
    if admission.subresource:
        return
    new, old = (find(claim, "spec", "resources", "requests", "storage") for claim in (admission.obj, admission.old))
    if amount(new) <= amount(old):
        return
    if text(admission.old, "status", "phase") != "Bound":
        raise status.forbidden(admission.kind, admission.name, "Only bound persistent volume claims can be expanded")
    name = _class_of(admission.obj)
    known = admission.view.object("storage.k8s.io", "storageclasses", "", name) if name else None
    if name != _class_of(admission.old) or not flag(known, "allowVolumeExpansion"):
        why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
        raise status.forbidden(admission.kind, admission.name, why)


STORAGE_PLUGINS: Final = (
    Plugin(
        "DefaultStorageClass",
        frozenset({Operation.CREATE}),
        frozenset({"PersistentVolumeClaim"}),
        mutate=fill_class,
    ),
    Plugin("StorageObjectInUseProtection", frozenset({Operation.CREATE}), frozenset(_PROTECTION), mutate=protect),
    Plugin(
        "PersistentVolumeClaimResize",
        frozenset({Operation.UPDATE}),
        frozenset({"PersistentVolumeClaim"}),
        check=check_growth,
    ),
)
