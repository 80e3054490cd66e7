"""The validation of the volumes of a pod spec: each has one source and a unique name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.projections import downward_errors, projected_errors
from wharfinger.control_plane.api.core.pod_specs.volume_sources import SOURCES
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import (
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    quoted,
    required,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.selectors import key_problems, value_problems

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_ORDER: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi", "glusterfs",
    "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc", "flexVolume", "configMap",
    "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
"""The order in which kube-apiserver checks the sources. It validates the first source that is set, and refuses all others."""
_SECOND_NAMES: Final[Mapping[str, str]] = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""The names that kube-apiserver uses in the error about a second source, if they differ from the API's names for these
sources.
"""
_JUDGED_NAMES: Final[Mapping[str, str]] = {"gcePersistentDisk": "persistentDisk"}
_ISCSI_LENGTH: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
_TEMPLATE_FIELDS: Final = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip
_SHOWN_FIELDS: Final = {"uid": "uID"}
"""The fields whose name in kube-apiserver's errors differs from their name in the API."""


@dataclass(frozen=True, slots=True)
class VolumeRules:
    """The inputs of the validation of volumes: the pod's name ("" in a template), whether the spec belongs to a Pod, and the
    function that validates the spec of a PersistentVolumeClaim.
    """

    pod_name: str
    is_pod: bool
    claim_spec: Callable[[JsonObject, str], list[FieldError]]


def volume_errors(spec: JsonObject, path: str, rules: VolumeRules) -> tuple[dict[str, JsonObject], list[FieldError]]:
    """Return the volumes whose own fields are valid, by name, and all errors."""
    errors: list[FieldError] = []
    found: dict[str, JsonObject] = {}
    volumes = parts(spec, "volumes")
    made = {
        f"{rules.pod_name}-{text(item, 'name')}"
        for item in volumes
        if rules.pod_name and part(item, "ephemeral") is not None
    }
    for index, volume in enumerate(volumes):
        at, name = f"{path}.volumes[{index}]", text(volume, "name")
        wrong = _source_errors(volume, at, name, rules)
        wrong += each(f"{at}.name", name, dns_label_problems(name)) if name else [required(f"{at}.name")]
        if name in found:
            wrong.append(duplicate(f"{at}.name", name))
        if not wrong:
            found[name] = volume
        errors += wrong
        claim = text(volume, "persistentVolumeClaim", "claimName")
        if claim and claim in made:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{at}.persistentVolumeClaim.claimName", claim, why))
    return found, errors


def _source_errors(volume: JsonObject, path: str, name: str, rules: VolumeRules) -> list[FieldError]:
    errors: list[FieldError] = []
    judged = ""
    for kind in _ORDER:
        source = part(volume, kind)
        if source is None:
            continue
        if judged:
            where = f"{path}.{_SECOND_NAMES.get(kind, kind)}"
            errors.append(forbidden(where, "may not specify more than 1 volume type"))
        else:
            judged = kind
            errors += _judged(kind, source, f"{path}.{_JUDGED_NAMES.get(kind, kind)}", rules)
            if kind == "ephemeral" and rules.pod_name and name:
                errors += _claim_name_errors(f"{rules.pod_name}-{name}", f"{path}.name", name)
        long = len(f"{name}:{text(source, 'targetPortal')}".encode()) > 64
        if kind == "iscsi" and isinstance(source.get("initiatorName"), str) and long:
            errors.append(invalid(f"{path}.name", name, _ISCSI_LENGTH))
    return errors if judged else [*errors, required(path, "must specify a volume type")]


def _judged(kind: str, source: JsonObject, path: str, rules: VolumeRules) -> list[FieldError]:
    match kind:
        case "downwardAPI":
            return downward_errors(source, path)
        case "projected":
            return projected_errors(source, path)
        case "ephemeral":
            return _ephemeral_errors(source, path, rules)
        case "image":
            return _image_errors(source, path, is_pod=rules.is_pod)
        case _:
            return SOURCES[kind](source, path)


def _claim_name_errors(claim: str, path: str, name: str) -> list[FieldError]:
    return [invalid(path, name, f"PVC name {quoted(claim)}: {problem}") for problem in subdomain_problems(claim)]


def _ephemeral_errors(source: JsonObject, path: str, rules: VolumeRules) -> list[FieldError]:
    template, at = part(source, "volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        return [required(at)]
    errors = template_metadata_errors(part(template, "metadata") or {}, f"{at}.metadata")
    return errors + rules.claim_spec(part(template, "spec") or {}, f"{at}.spec")


def template_metadata_errors(metadata: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the metadata of a template, which may contain only labels and annotations."""
    errors: list[FieldError] = []
    for key in sorted(text_map(metadata, "annotations")):
        errors += each(f"{path}.annotations", key, key_problems(key.lower()))
    for key, value in sorted(text_map(metadata, "labels").items()):
        errors += each(f"{path}.labels", key, key_problems(key))
        errors += each(f"{path}.labels", value, value_problems(value))
    given = (field for field in _TEMPLATE_FIELDS if metadata.get(field))
    return errors + [forbidden(f"{path}.{_SHOWN_FIELDS.get(field, field)}", "cannot be set") for field in given]


def _image_errors(source: JsonObject, path: str, *, is_pod: bool) -> list[FieldError]:
    errors = [required(f"{path}.reference")] if is_pod and not text(source, "reference") else []
    return errors + pull_policy_errors(text(source, "pullPolicy"), f"{path}.pullPolicy")


def pull_policy_errors(policy: str, path: str) -> list[FieldError]:
    """Return the errors of an ``imagePullPolicy``."""
    if not policy:
        return [required(path)]
    return [] if policy in PULL_POLICIES else [not_supported(path, policy, PULL_POLICIES)]
