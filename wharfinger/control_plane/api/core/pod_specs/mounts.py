"""The validation of ``volumeMounts`` (file systems) and ``volumeDevices`` (block devices) of containers."""

from collections.abc import Mapping
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.files import descending_errors, no_backstep_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import flag, parts
from wharfinger.control_plane.wire.field_errors import absent, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
_BLOCK_SOURCES: Final = ("persistentVolumeClaim", "ephemeral")


def mount_errors(container: JsonObject, volumes: Mapping[str, JsonObject], path: str) -> list[FieldError]:
    """Return the errors of ``volumeMounts`` and ``volumeDevices`` of the container at ``path``."""
    mounts, devices = parts(container, "volumeMounts"), parts(container, "volumeDevices")
    mounted = {text(mount, "name"): text(mount, "mountPath") for mount in mounts}
    attached = {text(device, "name"): text(device, "devicePath") for device in devices}
    errors: list[FieldError] = []
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        errors += _mount_errors(mount, f"{path}.volumeMounts[{index}]", volumes, places, attached)
        errors += _option_errors(mount, container, f"{path}.volumeMounts", index)
        places.add(text(mount, "mountPath"))
    return errors + _device_errors(devices, volumes, mounted, f"{path}.volumeDevices")


def _mount_errors(
    mount: JsonObject, at: str, volumes: Mapping[str, JsonObject], places: set[str], devices: Mapping[str, str]
) -> list[FieldError]:
    name, place = text(mount, "name"), text(mount, "mountPath")
    errors = [] if name else [required(f"{at}.name")]
    if name not in volumes:
        errors.append(absent(f"{at}.name", name))
    if not place:
        errors.append(required(f"{at}.mountPath"))
    if place in places:
        errors.append(invalid(f"{at}.mountPath", place, "must be unique"))
    if name in devices:
        errors.append(invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
    if place in devices.values():
        errors.append(invalid(f"{at}.mountPath", place, "must not already exist as a path in volumeDevices"))
    return errors


def _option_errors(mount: JsonObject, container: JsonObject, path: str, index: int) -> list[FieldError]:
    """Return the errors of a mount's options; upstream reports the path of the list, not of the mount."""
    errors: list[FieldError] = []
    inside, expression = text(mount, "subPath"), text(mount, "subPathExpr")
    if inside:
        errors += descending_errors(inside, f"{path}.subPath")
    if expression:
        if inside:
            why = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{path}[{index}].subPathExpr", expression, why))
        errors += descending_errors(expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if isinstance(propagation, str):
        where = f"{path}.mountPropagation"
        if propagation not in _PROPAGATIONS:
            errors.append(not_supported(where, propagation, _PROPAGATIONS))
        if propagation == "Bidirectional" and not flag(container, "securityContext", "privileged"):
            why = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(where, why))
    return errors + _recursive_errors(mount, f"{path}.recursiveReadOnly")


def _recursive_errors(mount: JsonObject, path: str) -> list[FieldError]:
    recursive = mount.get("recursiveReadOnly")
    if not isinstance(recursive, str) or recursive == "Disabled":
        return []
    if recursive not in _RECURSIVE:
        return [not_supported(path, recursive, _RECURSIVE)]
    errors: list[FieldError] = []
    if not flag(mount, "readOnly"):
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in {None, "None"}:
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def _device_errors(
    devices: list[JsonObject], volumes: Mapping[str, JsonObject], mounts: Mapping[str, str], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    names, places = set[str](), set[str]()
    for index, device in enumerate(devices):
        at, name, place = f"{path}[{index}]", text(device, "name"), text(device, "devicePath")
        volume = volumes.get(name)
        if not name:
            errors.append(required(f"{at}.name"))
        if name in names:
            errors.append(invalid(f"{at}.name", name, "must be unique"))
        if volume is None:
            errors.append(absent(f"{at}.name", name))
        elif all(volume.get(kind) is None for kind in _BLOCK_SOURCES):
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{at}.name", name, why))
        if not place:
            errors.append(required(f"{at}.devicePath"))
        if place in places:
            errors.append(invalid(f"{at}.devicePath", place, "must be unique"))
        if place and no_backstep_errors(place, ""):
            errors.append(invalid(f"{at}.devicePath", place, "can not contain backsteps ('..')"))
        else:
            places.add(place)
        if name in mounts:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
        if place in mounts.values():
            errors.append(invalid(f"{at}.devicePath", place, "must not already exist as a path in volumeMounts"))
        names |= {name} if name else set()
    return errors
