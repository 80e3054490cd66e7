"""The validation of Pods: at creation, at each kind of change, and of their status."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.annotations import agreement_errors, annotation_errors
from wharfinger.control_plane.api.core.pod_specs.containers import image_space_errors
from wharfinger.control_plane.api.core.pod_specs.validation import node_errors, pod_spec_errors
from wharfinger.control_plane.api.core.pod_specs.warnings import pod_status_warnings, pod_warnings
from wharfinger.control_plane.api.core.pods.resize_validation import resize_errors
from wharfinger.control_plane.api.core.pods.status_validation import status_errors
from wharfinger.control_plane.api.core.pods.update_validation import (
    annotation_change_errors,
    ephemeral_change_errors,
    is_mirror,
    spec_change_errors,
)
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire.field_errors import NOWHERE, forbidden
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject


def pod_errors(pod: JsonObject) -> list[FieldError]:
    """Return the errors of a Pod, except the errors of its metadata."""
    spec = part(pod, "spec") or {}
    errors = annotation_errors(pod.get("metadata"), spec, "metadata.annotations")
    errors += pod_spec_errors(spec, "spec", template=False, metadata=pod.get("metadata"))
    if not text(spec, "serviceAccountName"):
        for index, volume in enumerate(parts(spec, "volumes")):
            for place, source in enumerate(parts(volume, "projected", "sources")):
                if part(source, "serviceAccountToken") is not None:
                    at = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                    errors.append(forbidden(at, "must not be specified when serviceAccountName is not set"))
    for name in ("containers", "initContainers"):
        for index, container in enumerate(parts(spec, name)):
            errors += image_space_errors(container, f"spec.{name}[{index}]")
    return errors


def _created(pod: JsonObject) -> list[FieldError]:
    spec = part(pod, "spec") or {}
    errors = pod_errors(pod)
    if parts(spec, "ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if text(spec, "nodeName") and parts(spec, "schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors + agreement_errors(pod.get("metadata"), spec, "spec")


def _updated(new: JsonObject, old: JsonObject) -> list[FieldError]:
    spec = new.get("spec")
    if spec is old.get("spec") and isinstance(spec, dict) and not is_mirror(new) and not node_errors(spec, "spec"):
        # This is the stored spec, already validated except for a node name from a binding, which is checked above.
        return annotation_errors(new.get("metadata"), spec, "metadata.annotations") + annotation_change_errors(new, old)
    return pod_errors(new) + annotation_change_errors(new, old) + spec_change_errors(new, old)


def _ephemeral(new: JsonObject, old: JsonObject) -> list[FieldError]:
    if is_mirror(old):
        return [forbidden(NOWHERE, "static pods do not support ephemeral containers")]
    return pod_errors(new) + annotation_change_errors(new, old) + ephemeral_change_errors(new, old)


def _resized(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors, alone = resize_errors(new, old)
    return errors if alone else pod_errors(new) + errors


def _status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return annotation_change_errors(new, old) + status_errors(new, old)


POD_RULES: Final[dict[str, Rules]] = {
    "Pod": Rules(
        create=_created,
        update=_updated,
        status=_status,
        warnings=pod_warnings,
        status_warnings=pod_status_warnings,
        subresources={"ephemeralcontainers": _ephemeral, "resize": _resized},
    ),
}
