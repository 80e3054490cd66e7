"""The validation of Windows pods: security options, host processes, and fields for Linux, which such pods may not set."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

_OPTIONS: Final = "securityContext.windowsOptions"
_NETBIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_FORBIDDEN_CHARACTERS: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_NOT_IN_PODS: Final = (
    ("securityContext", "appArmorProfile"), ("securityContext", "seLinuxOptions"), ("", "hostUsers"), ("", "hostPID"),
    ("", "hostIPC"), ("securityContext", "seccompProfile"), ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"), ("securityContext", "sysctls"), ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"), ("securityContext", "runAsGroup"), ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"), ("securityContext", "seLinuxChangePolicy"),
)  # fmt: skip
_NOT_IN_CONTAINERS: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
_ONLY_WHEN_TRUE: Final = frozenset({"hostPID", "hostIPC"})
CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def all_containers(spec: JsonObject, path: str) -> Iterable[tuple[JsonObject, str]]:
    """Yield every container of a spec with its path: init containers first, ephemeral ones last."""
    for name in CONTAINER_LISTS:
        for index, container in enumerate(parts(spec, name)):
            yield container, f"{path}.{name}[{index}]"


def windows_option_errors(context: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``windowsOptions`` of the security context at ``path``."""
    options, at = part(context, "windowsOptions"), f"{path}.windowsOptions"
    if options is None:
        return []
    errors: list[FieldError] = []
    name, spec, user = (options.get(key) for key in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"))
    if isinstance(name, str):
        errors += each(f"{at}.gmsaCredentialSpecName", name, subdomain_problems(name))
    if spec == "":
        errors.append(invalid(f"{at}.gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string"))
    elif isinstance(spec, str) and len(spec.encode()) > 64 * 1024:
        errors.append(invalid(f"{at}.gmsaCredentialSpec", spec, "gmsaCredentialSpec size must be under 64 KiB"))
    if isinstance(user, str):
        errors += each(f"{at}.runAsUserName", user, [f"runAsUserName{what}" for what in _user_problems(user)])
    return errors


def _user_problems(name: str) -> list[str]:
    if not name:
        return [" cannot be an empty string"]
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        return [" cannot contain control characters"]
    parts_ = name.split("\\")
    if len(parts_) > 2:
        return [" cannot contain more than one backslash"]
    problems: list[str] = []
    user, domain = parts_[-1], parts_[0]
    if len(parts_) == 2:
        if len(domain.encode()) >= 256:
            problems.append("'s Domain length must be under 256 characters")
        if not _NETBIOS.fullmatch(domain) and not _DOMAIN.fullmatch(domain):
            problems.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("'s User cannot be empty")
    elif len(user.encode()) > 104:
        problems.append("'s User length must not be longer than 104 characters")
    if re.fullmatch(r"[. ]+", user):
        problems.append("'s User cannot contain only periods or spaces")
    if _FORBIDDEN_CHARACTERS.search(user):
        problems.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


def host_process_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``hostProcess``: it must be true for all containers or for none, and requires ``hostNetwork``."""
    errors: list[FieldError] = []
    pod = _host_process(spec)
    count = found = 0
    for container, at in all_containers(spec, path):
        found += 1
        own = _host_process(container)
        if pod is not None and own is not None and pod != own:
            why = f"pod hostProcess value must be identical if both are specified, was {str(pod).lower()}"
            errors.append(invalid(f"{at}.{_OPTIONS}.hostProcess", own, why))
        count += bool(pod if own is None else own)
    if not count:
        return errors
    if count != found:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(invalid(path, "", why))
    if not flag(spec, "hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", value=False, why=why))
    return errors


def _host_process(holder: JsonObject) -> bool | None:
    found = (part(holder, "securityContext", "windowsOptions") or {}).get("hostProcess")
    return found if isinstance(found, bool) else None


def system_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the field ``os``, and an error for each field that is not allowed on this operating system."""
    system = part(spec, "os")
    if system is None:
        return []
    name = text(system, "name")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in {"linux", "windows"}:
        return [not_supported(f"{path}.os", name, ("linux", "windows"))]
    return _linux_errors(spec, path) if name == "linux" else _windows_errors(spec, path)


def _linux_errors(spec: JsonObject, path: str) -> list[FieldError]:
    holders = [(spec, path), *all_containers(spec, path)]
    return [
        forbidden(f"{at}.{_OPTIONS}", "windows options cannot be set for a linux pod")
        for holder, at in holders
        if part(holder, "securityContext", "windowsOptions") is not None
    ]


def _windows_errors(spec: JsonObject, path: str) -> list[FieldError]:
    refused: Callable[[str], FieldError] = lambda where: forbidden(where, "cannot be set for a windows pod")  # noqa: E731
    errors: list[FieldError] = []
    for holder, name in _NOT_IN_PODS:
        value = (part(spec, holder) or {}).get(name) if holder else spec.get(name)
        empty: tuple[JsonValue, ...] = (None,)
        if name in _ONLY_WHEN_TRUE:
            empty = (None, False)
        elif name == "sysctls":
            empty = (None, [])
        if value not in empty:
            errors.append(refused(f"{path}.{holder}.{name}" if holder else f"{path}.{name}"))
    for container, at in all_containers(spec, path):
        context = part(container, "securityContext") or {}
        errors += [
            refused(f"{at}.securityContext.{name}") for name in _NOT_IN_CONTAINERS if context.get(name) is not None
        ]
    return errors
