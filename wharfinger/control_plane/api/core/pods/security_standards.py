"""The pod security standards ``baseline`` and ``restricted`` (KEP-2579), as one function for each check.

Each check returns the reason (``host namespaces``) and the details (``hostNetwork=true``), or None if the pod passes. The
standards have changed over time, so each check gets the minor version of Kubernetes whose standards apply.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from wharfinger.control_plane.api.core.pod_specs.annotations import APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from wharfinger.control_plane.api.core.pod_specs.windows import CONTAINER_LISTS
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts, text_map, texts
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.formats.json.value import JsonObject


class Violation(NamedTuple):
    """The violation that a check found: reason and details."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check: TypeAlias = Callable[[JsonObject, JsonObject, int], Violation | None]
"""A check: (metadata, spec, minor version) → the violation, or None."""

_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS: Final = (
    (0, ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies")),
    (0, ("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start")),
    (27, ("net.ipv4.ip_local_reserved_ports",)),
    (29, ("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl")),
    (29, ("net.ipv4.tcp_keepalive_probes",)),
    (32, ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")),
)
"""Safe sysctls, with the minor version from which they are safe."""
_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"
)  # fmt: skip
_SECCOMP: Final = frozenset({"Localhost", "RuntimeDefault"})


def _containers(spec: JsonObject) -> list[JsonObject]:
    return [container for name in CONTAINER_LISTS for container in parts(spec, name)]


def _context(holder: JsonObject) -> JsonObject:
    return part(holder, "securityContext") or {}


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _named(containers: list[str]) -> str:
    return f"{'container' if len(containers) == 1 else 'containers'} {_quoted(containers)}"


def _setters(*, pod: bool, containers: list[str]) -> str:
    return " and ".join(["pod"] * pod + ([_named(containers)] if containers else []))


def _names(spec: JsonObject, wrong: Callable[[JsonObject], bool]) -> list[str]:
    return [text(container, "name") for container in _containers(spec) if wrong(container)]


def _has_own_users(spec: JsonObject) -> bool:
    return spec.get("hostUsers") is False


def _is_windows(spec: JsonObject, version: int) -> bool:
    return version >= 25 and text(spec, "os", "name") == "windows"


def _apparmor(metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    bad: set[str] = set()

    def wrong(holder: JsonObject) -> bool:
        profile = part(_context(holder), "appArmorProfile")
        if profile is None or text(profile, "type") in _SECCOMP:
            return False
        bad.add(text(profile, "type"))
        return True

    pod, containers = wrong(spec), _names(spec, wrong)
    said = [
        f"{key}={quoted(value)}"
        for key, value in sorted(text_map(metadata, "annotations").items())
        if key.startswith(APPARMOR) and value not in {"", "runtime/default"} and not value.startswith("localhost/")
    ]
    setters = [_setters(pod=pod, containers=containers)] if pod or containers else []
    setters += [] if not said else ["annotation" if len(said) == 1 else "annotations"]
    values = [*sorted(bad), *said]
    if not setters:
        return None
    reason = "forbidden AppArmor profile" if len(values) == 1 else "forbidden AppArmor profiles"
    return Violation(reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(values)}")


def _capabilities(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    bad: set[str] = set()

    def wrong(container: JsonObject) -> bool:
        added = set(texts(_context(container), "capabilities", "add")) - _CAPABILITIES
        bad.update(added)
        return bool(added)

    if not (containers := _names(spec, wrong)):
        return None
    detail = f"{_named(containers)} must not include {_quoted(sorted(bad))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def _host_namespaces(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if flag(spec, name)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_paths(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    volumes = [text(volume, "name") for volume in parts(spec, "volumes") if part(volume, "hostPath") is not None]
    called = "volume" if len(volumes) == 1 else "volumes"
    return Violation("hostPath volumes", f"{called} {_quoted(volumes)}") if volumes else None


def _host_ports(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    ports: set[str] = set()

    def wrong(container: JsonObject) -> bool:
        used = {str(number(port, "hostPort")) for port in parts(container, "ports")} - {"0"}
        ports.update(used)
        return bool(used)

    if not (containers := _names(spec, wrong)):
        return None
    verb, called = "uses" if len(containers) == 1 else "use", "hostPort" if len(ports) == 1 else "hostPorts"
    return Violation("hostPort", f"{_named(containers)} {verb} {called} {', '.join(sorted(ports))}")


def _hosts(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    if version < 34:
        return None
    hosts: set[str] = set()
    asked = (
        ("livenessProbe",), ("readinessProbe",), ("startupProbe",), ("lifecycle", "postStart"), ("lifecycle", "preStop")
    )  # fmt: skip

    def wrong(container: JsonObject) -> bool:
        kinds = ("httpGet", "tcpSocket")
        used = {text(container, *path, kind, "host") for path in asked for kind in kinds} - {""}
        hosts.update(used)
        return bool(used)

    if not (containers := sorted(set(_names(spec, wrong)))):
        return None
    verb = "uses" if len(containers) == 1 else "use"
    called = "probe or lifecycle host" if len(hosts) == 1 else "probe or lifecycle hosts"
    return Violation("probe or lifecycle host", f"{_named(containers)} {verb} {called} {_quoted(sorted(hosts))}")


def _privileged(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    if not (containers := _names(spec, lambda container: flag(_context(container), "privileged"))):
        return None
    return Violation("privileged", f"{_named(containers)} must not set securityContext.privileged=true")


def _any_proc_mount(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    kinds = {text(_context(container), "procMount") for container in _containers(spec)} - {"", "Default"}
    containers = _names(spec, lambda container: text(_context(container), "procMount") in kinds)
    if not containers:
        return None
    return Violation(
        "procMount", f"{_named(containers)} must not set securityContext.procMount to {_quoted(sorted(kinds))}"
    )


def _proc_mount(metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    return None if version >= 35 and _has_own_users(spec) else _any_proc_mount(metadata, spec, version)


def _selinux(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    known = _SELINUX_TYPES | ({"container_engine_t"} if version >= 31 else set())
    types, said = set[str](), set[str]()

    def wrong(holder: JsonObject) -> bool:
        options = part(_context(holder), "seLinuxOptions")
        if options is None:
            return False
        bad = {text(options, "type")} - known
        types.update(bad)
        given = {name for name in ("user", "role") if text(options, name)}
        said.update(given)
        return bool(bad or given)

    pod, containers = wrong(spec), _names(spec, wrong)
    if not pod and not containers:
        return None
    found = [f"{'type' if len(types) == 1 else 'types'} {_quoted(sorted(types))}"] if types else []
    found += [f"{name} may not be set" for name in ("user", "role") if name in said]
    setters = _setters(pod=pod, containers=containers)
    return Violation("seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(found)}")


def _bad_seccomp(spec: JsonObject) -> Violation | None:
    values: set[str] = set()

    def wrong(holder: JsonObject) -> bool:
        profile = part(_context(holder), "seccompProfile")
        if profile is None or text(profile, "type") in _SECCOMP:
            return False
        values.add(text(profile, "type"))
        return True

    pod, containers = wrong(spec), _names(spec, wrong)
    if not pod and not containers:
        return None
    setters = _setters(pod=pod, containers=containers)
    what = f"must not set securityContext.seccompProfile.type to {_quoted(sorted(values))}"
    return Violation("seccompProfile", f"{setters} {what}")


def _seccomp(metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    if version >= 19:
        return _bad_seccomp(spec)
    annotations = text_map(metadata, "annotations")
    keys = {SECCOMP_POD, *(SECCOMP_CONTAINER + text(container, "name") for container in _containers(spec))}
    bad = sorted(
        f"{key}={quoted(annotations[key])}"
        for key in keys & annotations.keys()
        if annotations[key] not in {"runtime/default", "docker/default"}
        and not annotations[key].startswith("localhost/")
    )
    called = "annotation" if len(bad) == 1 else "annotations"
    return Violation("seccompProfile", f"forbidden {called} {', '.join(bad)}") if bad else None


def _sysctls(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    known = {name for since, names in _SYSCTLS if version >= since for name in names}
    names = [text(sysctl, "name") for sysctl in parts(_context(spec), "sysctls")]
    bad = [name for name in names if name not in known]
    return Violation("forbidden sysctls", ", ".join(bad)) if bad else None


def _host_process(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    def wrong(holder: JsonObject) -> bool:
        return flag(_context(holder), "windowsOptions", "hostProcess")

    pod, containers = wrong(spec), _names(spec, wrong)
    if not pod and not containers:
        return None
    setters = _setters(pod=pod, containers=containers)
    return Violation("hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true")


def _escalation(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    if version < 8 or _is_windows(spec, version):
        return None
    containers = _names(spec, lambda item: _context(item).get("allowPrivilegeEscalation") is not False)
    if not containers:
        return None
    detail = f"{_named(containers)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def _dropped_capabilities(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    if version < 22 or _is_windows(spec, version):
        return None
    keeping = _names(spec, lambda item: "ALL" not in texts(_context(item), "capabilities", "drop"))
    bad: set[str] = set()

    def adds(container: JsonObject) -> bool:
        added = set(texts(_context(container), "capabilities", "add")) - {"NET_BIND_SERVICE"}
        bad.update(added)
        return bool(added)

    adding = _names(spec, adds)
    found = [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        found.append(f"{_named(adding)} must not include {_quoted(sorted(bad))} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(found)) if found else None


def _restricted_proc_mount(metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    return _any_proc_mount(metadata, spec, version) if version >= 35 else None


def _volume_types(_metadata: JsonObject, spec: JsonObject, _version: int) -> Violation | None:
    bad = [volume for volume in parts(spec, "volumes") if not any(volume.get(kind) is not None for kind in _VOLUMES)]
    if not bad:
        return None
    kinds = sorted({next((name for name in volume if name != "name"), "unknown") for volume in bad})
    names = [text(volume, "name") for volume in bad]
    one = len(names) == 1
    called = "restricted volume type" if len(kinds) == 1 else "restricted volume types"
    detail = f"{'volume' if one else 'volumes'} {_quoted(names)} {'uses' if one else 'use'} {called} {_quoted(kinds)}"
    return Violation("restricted volume types", detail)


def _non_root(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    if version >= 35 and _has_own_users(spec):
        return None
    whole = _context(spec).get("runAsNonRoot")
    refusing = _names(spec, lambda item: _context(item).get("runAsNonRoot") is False)
    if whole is False or refusing:
        setters = _setters(pod=whole is False, containers=refusing)
        return Violation("runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false")
    silent = [] if whole is True else _names(spec, lambda item: _context(item).get("runAsNonRoot") is None)
    if not silent:
        return None
    return Violation("runAsNonRoot != true", f"pod or {_named(silent)} must set securityContext.runAsNonRoot=true")


def _root_user(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    if version < 23 or (version >= 35 and _has_own_users(spec)):
        return None

    def wrong(holder: JsonObject) -> bool:
        user = _context(holder).get("runAsUser")
        return user == 0 and user is not False

    pod, containers = wrong(spec), _names(spec, wrong)
    if not pod and not containers:
        return None
    return Violation("runAsUser=0", f"{_setters(pod=pod, containers=containers)} must not set runAsUser=0")


def _needed_seccomp(_metadata: JsonObject, spec: JsonObject, version: int) -> Violation | None:
    if version < 19:
        return None
    if _is_windows(spec, version):
        return None
    if (found := _bad_seccomp(spec)) is not None:
        return found
    if part(_context(spec), "seccompProfile") is not None:
        return None
    silent = _names(spec, lambda item: part(_context(item), "seccompProfile") is None)
    if not silent:
        return None
    what = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {_named(silent)} {what}")


BASELINE: Final[tuple[tuple[str, Check], ...]] = (
    ("appArmorProfile", _apparmor),
    ("capabilities_baseline", _capabilities),
    ("hostNamespaces", _host_namespaces),
    ("hostPathVolumes", _host_paths),
    ("hostPorts", _host_ports),
    ("hostProbesAndHostLifecycle", _hosts),
    ("privileged", _privileged),
    ("procMount", _proc_mount),
    ("seLinuxOptions", _selinux),
    ("seccompProfile_baseline", _seccomp),
    ("sysctls", _sysctls),
    ("windowsHostProcess", _host_process),
)
RESTRICTED: Final[tuple[tuple[str, Check, str, int], ...]] = (
    ("allowPrivilegeEscalation", _escalation, "", 0),
    ("capabilities_restricted", _dropped_capabilities, "capabilities_baseline", 22),
    ("procMount_restricted", _restricted_proc_mount, "procMount", 35),
    ("restrictedVolumes", _volume_types, "hostPathVolumes", 0),
    ("runAsNonRoot", _non_root, "", 0),
    ("runAsUser", _root_user, "", 0),
    ("seccompProfile_restricted", _needed_seccomp, "seccompProfile_baseline", 19),
)
"""The checks that only ``restricted`` has. Each entry contains the name, the check, the name of the baseline check that it
replaces ("" if none), and the first minor version in which it replaces that check."""
LATEST: Final = 36


def violations(metadata: JsonObject, spec: JsonObject, level: str, version: int) -> list[Violation]:
    """Return a Pod's violations of a level, by the standards of a minor version of Kubernetes."""
    if level == "privileged":
        return []
    version = min(version, LATEST)
    checks: list[Check] = []
    if level == "restricted":
        replaced = {name for _, _, name, since in RESTRICTED if version >= since}
        checks += [check for name, check in BASELINE if name not in replaced]
        checks += [check for _, check, _, _ in RESTRICTED]
    else:
        checks += [check for _, check in BASELINE]
    found = (check(metadata, spec, version) for check in checks)
    return [violation for violation in found if violation is not None]
