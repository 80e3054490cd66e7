"""The validation of in-place resizes (``pods/resize``): only CPU and memory of containers and of the Pod may change."""

from typing import Final

from wharfinger.control_plane.api.core.pods.update_validation import is_mirror, quality_change_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.internal_types import internal_form, same_form
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire.field_errors import NOWHERE, forbidden
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

_MUTABLE: Final = ("cpu", "memory")
_ONLY: Final = "only cpu and memory resources are mutable"


def resize_errors(new: JsonObject, old: JsonObject) -> tuple[list[FieldError], bool]:
    """Return the errors of a resize; the second value is True if the caller must skip the validation of the whole Pod."""
    if is_mirror(old):
        return [forbidden(NOWHERE, "static pods cannot be resized")], True
    if text(old, "spec", "os", "name") == "windows":
        return [forbidden(NOWHERE, "windows pods cannot be resized")], True
    errors = quality_change_errors(new, old)
    running = [item for item in parts(old, "status", "containerStatuses") if part(item, "state", "running") is not None]
    if running and running[0].get("resources") is None:
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    errors += _pod_level_errors(part(new, "spec", "resources"), part(old, "spec", "resources"))
    order = _order_errors(new, old)
    if order:
        return errors + order, False
    return errors + _container_errors(new, old), False


def _pod_level_errors(new: JsonObject | None, old: JsonObject | None) -> list[FieldError]:
    if not any(held and (held.get("requests") or held.get("limits")) for held in (new, old)):
        return []
    if old is not None and new is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors: list[FieldError] = []
    for kind, called in (("requests", "requests"), ("limits", "limits")) if old is not None else ():
        if _removed(new, old, kind):
            errors.append(forbidden(f"spec.resources.{kind}", f"pod-level resource {called} cannot be removed"))
    if _rest(new) != _rest(old):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    return errors


def _rest(resources: JsonObject | None) -> JsonObject:
    """Return the parts of ``resources`` that may not change: everything except CPU and memory."""
    found: JsonObject = {"claims": (resources or {}).get("claims") or None}
    for kind in ("limits", "requests"):
        held = part(resources, kind) or {}
        found[kind] = {name: value for name, value in held.items() if name not in _MUTABLE}
    return found


def _removed(new: JsonObject | None, old: JsonObject | None, kind: str) -> bool:
    return not set(part(old, kind) or {}) <= set(part(new, kind) or {})


def _order_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("containers", "initContainers"):
        now, then = parts(new, "spec", name), parts(old, "spec", name)
        if len(now) != len(then):
            errors.append(forbidden(f"spec.{name}", f"{name} may not be added or removed on resize"))
            continue
        errors += [
            forbidden(f"spec.{name}[{index}].name", f"{name} may not be renamed or reordered on resize")
            for index, pair in enumerate(zip(now, then, strict=True))
            if text(pair[0], "name") != text(pair[1], "name")
        ]
    return errors


def _container_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("initContainers", "containers"):
        for index, pair in enumerate(zip(parts(new, "spec", name), parts(old, "spec", name), strict=True)):
            for kind in ("requests", "limits"):
                if _removed(part(pair[0], "resources"), part(pair[1], "resources"), kind):
                    at = f"spec.{name}[{index}].resources.{kind}"
                    errors.append(forbidden(at, f"resource {kind} cannot be removed"))
    for now, then in zip(parts(new, "spec", "containers"), parts(old, "spec", "containers"), strict=True):
        if _masked(now, claims=False) != _masked(then):
            errors.append(forbidden("spec", _ONLY))
    for index, pair in enumerate(
        zip(parts(new, "spec", "initContainers"), parts(old, "spec", "initContainers"), strict=True)
    ):
        errors += _initial_errors(pair[0], pair[1], f"spec.initContainers[{index}]")
    return errors


def _initial_errors(now: JsonObject, then: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if _masked(now, claims=False) != _masked(then):
        why = "only cpu and memory resources for init or sidecar containers are mutable"
        errors.append(forbidden(path, why))
    changed = not same_form("core.Container", now, then)
    if changed and now.get("restartPolicy") != "Always":
        why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        policies = [text(policy, "restartPolicy") for policy in parts(now, "resizePolicy")]
        errors += [forbidden(path, why)] * policies.count("RestartContainer")
    return errors


def _masked(container: JsonObject, *, claims: bool = True) -> JsonObject:
    """Return a container without the resources that may change.

    ``claims`` is false for the new container: upstream drops its claims before the comparison, so a container with claims
    cannot be resized.
    """
    rest = _rest(part(container, "resources"))
    if not claims:
        rest["claims"] = None
    return {**internal_form("core.Container", container), "Resources": rest}
