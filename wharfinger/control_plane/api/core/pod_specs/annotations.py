"""The validation of annotations with a meaning for pods: seccomp, AppArmor, mirror pods, deletion costs, deprecated
tolerations.
"""

import json
import re
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.files import descending_errors
from wharfinger.control_plane.api.core.pod_specs.scheduling import toleration_errors
from wharfinger.control_plane.api.core.pod_specs.windows import all_containers
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, text_map
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, quoted
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

MIRROR: Final = "kubernetes.io/config.mirror"
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_LOCAL: Final = "localhost/"
_DEFAULT_PROFILES: Final = ("runtime/default", "docker/default")


def annotation_errors(metadata: JsonValue, spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a pod's annotations, which are at ``path``."""
    annotations = text_map(metadata, "annotations")
    errors: list[FieldError] = []
    if MIRROR in annotations and not text(spec, "nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], why))
    errors += _old_toleration_errors(annotations.get(_TOLERATIONS, ""), path)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        errors.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    if SECCOMP_POD in annotations:
        errors += _seccomp_errors(annotations[SECCOMP_POD], f"{path}.{SECCOMP_POD}")
    for key, profile in sorted(annotations.items()):
        if key.startswith(SECCOMP_CONTAINER):
            errors += _seccomp_errors(profile, f"{path}.{key}")
    names = {text(container, "name") for container, _ in all_containers(spec, "")}
    for key, profile in sorted(annotations.items()):
        if key.startswith(APPARMOR):
            errors += _apparmor_errors(key, profile, names, f"{path}[{key}]")
    return errors


def _is_int32(cost: str) -> bool:
    """Return whether a text is a decimal 32 bit number without a plus sign or leading zeros."""
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,9})", cost):
        return False
    return -(2**31) <= int(cost) < 2**31


def _old_toleration_errors(value: str, path: str) -> list[FieldError]:
    if not value:
        return []
    try:
        tolerations: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return [invalid(path, _TOLERATIONS, f"invalid character {_first(value)} looking for beginning of value")]
    return toleration_errors(tolerations, f"{path}.{_TOLERATIONS}")


def _first(value: str) -> str:
    return "'" + quoted(value[:1])[1:-1] + "'"


def _seccomp_errors(profile: str, path: str) -> list[FieldError]:
    if profile in {*_DEFAULT_PROFILES, "unconfined"}:
        return []
    if profile.startswith(_LOCAL):
        return descending_errors(profile.removeprefix(_LOCAL), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _apparmor_errors(key: str, profile: str, names: set[str], path: str) -> list[FieldError]:
    container = key.removeprefix(APPARMOR)
    errors = [] if container in names else [invalid(path, container, "container not found")]
    if profile and profile not in {"runtime/default", "unconfined"} and not profile.startswith(_LOCAL):
        errors.append(invalid(path, profile, f"invalid AppArmor profile name: {quoted(profile)}"))
    return errors


def agreement_errors(metadata: JsonValue, spec: JsonObject, path: str) -> list[FieldError]:
    """Return an error for each profile that annotations and fields set differently; ``path`` is the path of the spec."""
    annotations = text_map(metadata, "annotations")
    if not annotations:
        return []
    errors: list[FieldError] = []
    profile = part(spec, "securityContext", "seccompProfile")
    if profile is not None and SECCOMP_POD in annotations:
        at = f"{path}.securityContext.seccompProfile"
        errors += _disagreement(annotations[SECCOMP_POD], profile, at, "seccomp", _DEFAULT_PROFILES)
    for container, where in all_containers(spec, path):
        profile, key = part(container, "securityContext", "seccompProfile"), SECCOMP_CONTAINER + text(container, "name")
        if profile is not None and key in annotations:
            at = f"{where}.securityContext.seccompProfile"
            errors += _disagreement(annotations[key], profile, at, "seccomp", _DEFAULT_PROFILES)
    if text(spec, "os", "name") == "windows":
        return errors
    whole = part(spec, "securityContext", "appArmorProfile")
    for container, where in all_containers(spec, path):
        profile, key = (
            part(container, "securityContext", "appArmorProfile") or whole,
            APPARMOR + text(container, "name"),
        )
        if profile is not None and key in annotations:
            at = f"{where}.securityContext.appArmorProfile"
            errors += _disagreement(annotations[key], profile, at, "apparmor", ("runtime/default",))
    return errors


def _disagreement(said: str, profile: JsonObject, path: str, what: str, defaults: tuple[str, ...]) -> list[FieldError]:
    kind = text(profile, "type")
    if kind == "Localhost" and said.startswith(_LOCAL):
        if said.removeprefix(_LOCAL) == profile.get("localhostProfile"):
            return []
        return [forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")]
    known = {"Unconfined": ("unconfined",), "RuntimeDefault": defaults, "Localhost": ()}
    if said in known.get(kind, (said,)):
        return []
    return [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
