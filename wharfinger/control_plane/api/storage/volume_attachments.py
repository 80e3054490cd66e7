"""The validation of VolumeAttachments (storage.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.api.core.volumes.volume_validation import inline_volume_errors
from wharfinger.control_plane.api.storage.csi_drivers import driver_name_errors
from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, text_map
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import IMMUTABLE, each, forbidden, invalid, required, too_long
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

METADATA_LIMIT: Final = 256 * 1024
MESSAGE_LIMIT: Final = 1024
_ONE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def attachment_errors(attachment: JsonObject) -> list[FieldError]:
    """Return the errors of a VolumeAttachment."""
    spec = part(attachment, "spec") or {}
    errors = driver_name_errors(text(spec, "attacher"), "spec.attacher")
    source, node = part(spec, "source") or {}, text(spec, "nodeName")
    name, inline = source.get("persistentVolumeName"), part(source, "inlineVolumeSpec")
    if name is None and inline is None:
        errors.append(required("spec.source", _ONE))
    elif name is not None and inline is not None:
        errors.append(forbidden("spec.source", _ONE))
    elif inline is not None:
        errors += inline_volume_errors(inline, "spec.source.inlineVolumeSpec")
    elif not name:
        errors.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    errors += each("spec.nodeName", node, subdomain_problems(node)) + _status_errors(attachment)
    if isinstance(name, str):
        errors += each("spec.source.persistentVolumeName", name, subdomain_problems(name))
    return errors


def _status_errors(attachment: JsonObject) -> list[FieldError]:
    metadata = text_map(attachment, "status", "attachmentMetadata")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    errors = [too_long("status.attachmentMetadata", METADATA_LIMIT)] if size > METADATA_LIMIT else []
    for name in ("attachError", "detachError"):
        failure, path = part(attachment, "status", name) or {}, f"status.{name}"
        if len(text(failure, "message").encode()) > MESSAGE_LIMIT:
            errors.append(too_long(f"{path}.message", METADATA_LIMIT))
        code = optional_number(failure, "errorCode")
        if code is not None and code < 0:
            errors.append(invalid(f"{path}.errorCode", code, f"must be between 0 and {2**31 - 1}, inclusive"))
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = attachment_errors(new)
    if find(new, "spec") != find(old, "spec"):
        shown = internal_form("storage.VolumeAttachmentSpec", find(new, "spec"))
        errors.append(invalid("spec", shown, IMMUTABLE))
    return errors


VOLUME_ATTACHMENT_RULES: Final[dict[str, Rules]] = {
    "VolumeAttachment.storage.k8s.io": Rules(create=attachment_errors, update=_update_errors, status=_update_errors),
}
