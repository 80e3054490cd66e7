"""The validation of security contexts of pods and containers: users, groups, sysctls, seccomp, AppArmor."""

import re
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.files import descending_errors
from wharfinger.control_plane.api.core.pod_specs.windows import windows_option_errors
from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts, texts
from wharfinger.control_plane.objects.names import MAX_INT32, between
from wharfinger.control_plane.wire.field_errors import duplicate, invalid, not_supported, required, too_long
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_SYSCTL_LENGTH: Final = 253
_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_APPARMOR_LENGTH: Final = 4095


def _id_errors(context: JsonObject, path: str, *names: str) -> list[FieldError]:
    found = [(name, optional_number(context, name)) for name in names]
    return [
        invalid(f"{path}.{name}", number, between(0, MAX_INT32))
        for name, number in found
        if number is not None and not 0 <= number <= MAX_INT32
    ]


def pod_context_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``securityContext`` of the pod spec at ``path``."""
    context, at = part(spec, "securityContext") or {}, f"{path}.securityContext"
    errors = _id_errors(context, at, "fsGroup", "runAsUser", "runAsGroup")
    groups = context.get("supplementalGroups")
    for index, group in enumerate(groups if isinstance(groups, list) else []):
        if isinstance(group, int) and not 0 <= group <= MAX_INT32:
            errors.append(invalid(f"{at}.supplementalGroups[{index}]", group, between(0, MAX_INT32)))
    if flag(spec, "shareProcessNamespace") and flag(spec, "hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{at}.shareProcessNamespace", value=True, why=why))
    errors += _sysctl_errors(spec, parts(context, "sysctls"), f"{at}.sysctls")
    errors += _choice(context, at, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    errors += seccomp_errors(context, at)
    errors += windows_option_errors(context, at)
    errors += apparmor_errors(context, at)
    errors += _choice(context, at, "supplementalGroupsPolicy", ("Merge", "Strict"))
    return errors + _choice(context, at, "seLinuxChangePolicy", ("Recursive",))


def _choice(context: JsonObject, path: str, name: str, known: tuple[str, ...]) -> list[FieldError]:
    value = context.get(name)
    return [not_supported(f"{path}.{name}", value, known)] if isinstance(value, str) and value not in known else []


def _sysctl_errors(spec: JsonObject, sysctls: list[JsonObject], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        at, name = f"{path}[{index}].name", text(sysctl, "name")
        if not name:
            errors.append(required(at))
        elif len(name.encode()) > _SYSCTL_LENGTH or not re.fullmatch(_SYSCTL, name):
            errors.append(
                invalid(at, name, f"must have at most {_SYSCTL_LENGTH} characters and match regex ^{_SYSCTL}$")
            )
        elif name in seen:
            errors.append(duplicate(at, name))
        if flag(spec, "hostNetwork") and name.replace("/", ".").startswith("net."):
            errors.append(invalid(at, name, "may not be specified when 'hostNetwork' is true"))
        elif flag(spec, "hostIPC") and _is_ipc(name.replace("/", ".")):
            errors.append(invalid(at, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return errors


def _is_ipc(name: str) -> bool:
    return name == "kernel.sem" or name.startswith(_IPC_SYSCTLS)


def seccomp_errors(context: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``seccompProfile`` of the security context at ``path``."""
    profile, at = part(context, "seccompProfile"), f"{path}.seccompProfile"
    if profile is None:
        return []
    kind, local = text(profile, "type"), profile.get("localhostProfile")
    errors: list[FieldError] = []
    if not kind:
        errors.append(required(f"{at}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(f"{at}.type", kind, _PROFILES))
    if kind == "Localhost":
        if local is None:
            why = "must be set when seccomp type is Localhost"
            return [*errors, required(f"{at}.localhostProfile", why)]
        return errors + descending_errors(str(local), f"{at}.localhostProfile")
    if local is not None:
        shown = internal_form("core.SeccompProfile", profile)
        errors.append(invalid(f"{at}.localhostProfile", shown, "can only be set when seccomp type is Localhost"))
    return errors


def apparmor_errors(context: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``appArmorProfile`` of the security context at ``path``."""
    profile, at = part(context, "appArmorProfile"), f"{path}.appArmorProfile"
    if profile is None:
        return []
    kind, local, where = text(profile, "type"), profile.get("localhostProfile"), f"{at}.localhostProfile"
    if not kind:
        return [required(f"{at}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [not_supported(f"{at}.type", kind, _PROFILES)]
    if kind != "Localhost":
        return [] if local is None else [invalid(where, local, "can only be set when AppArmor type is Localhost")]
    if not isinstance(local, str):
        return [required(where, "must be set when AppArmor type is Localhost")]
    errors: list[FieldError] = []
    if local.strip() != local:
        errors.append(invalid(where, local, "must not be padded with whitespace"))
    elif not local:
        errors.append(required(where, "must be set when AppArmor type is Localhost"))
    return [*errors, too_long(where, _APPARMOR_LENGTH)] if len(local.encode()) > _APPARMOR_LENGTH else errors


def container_context_errors(container: JsonObject, path: str, *, host_users: bool) -> list[FieldError]:
    """Return the errors of ``securityContext`` of the container at ``path``.

    If ``host_users`` is true, the pod has no user namespace of its own.
    """
    context, at = part(container, "securityContext"), f"{path}.securityContext"
    if context is None:
        return []
    errors = _id_errors(context, at, "runAsUser", "runAsGroup")
    errors += _choice(context, at, "procMount", ("Default", "Unmasked"))
    if host_users and context.get("procMount") == "Unmasked":
        errors.append(invalid(f"{at}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`"))
    errors += seccomp_errors(context, at)
    if context.get("allowPrivilegeEscalation") is False:
        shown = internal_form("core.SecurityContext", context)
        if flag(context, "privileged"):
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(at, shown, why))
        why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        errors += [invalid(at, shown, why)] * texts(context, "capabilities", "add").count("CAP_SYS_ADMIN")
    return errors + windows_option_errors(context, at) + apparmor_errors(context, at)
