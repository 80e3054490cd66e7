"""The warnings for clients about accepted pods and pod templates (``pkg/api/pod/warnings.go``)."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.annotations import APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from wharfinger.control_plane.api.core.pod_specs.claim_specs import claim_spec_warnings
from wharfinger.control_plane.api.core.pod_specs.path_conflicts import MOST_WARNINGS, path_warnings
from wharfinger.control_plane.api.core.pod_specs.scheduling import PREFERRED, REQUIRED
from wharfinger.control_plane.api.core.pod_specs.windows import all_containers
from wharfinger.control_plane.objects.addresses import ip_warnings
from wharfinger.control_plane.objects.amounts import number, optional_number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, repeated, text_map, texts
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import canonical_quantity, is_whole
from wharfinger.kube.selectors import value_problems

NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""The warnings about volume sources, in the order of kube-apiserver."""
_SPELLED: Final = {"storageos": "storageOS"}
_NO_POD: Final = "a null labelSelector results in matching no pod"
_BYTES: Final = ("memory", "ephemeral-storage")


def pod_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a new Pod; an update has none."""
    if old is not None:
        return []
    name, warnings = text(new, "metadata", "name"), list[str]()
    if problems := dns_label_problems(name):
        why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        warnings.append(f"metadata.name: {why}: [{' '.join(problems)}]")
    return _synced_warnings(new) + warnings + _spec_warnings(new, "", template=False)


def _synced_warnings(pod: JsonObject) -> list[str]:
    """Return the warnings about AppArmor annotations that the server copied to fields, or could not copy."""
    annotations = text_map(pod, "metadata", "annotations")
    if not any(key.startswith(APPARMOR) for key in annotations) or text(pod, "spec", "os", "name") == "windows":
        return []
    warnings: list[str] = []
    whole = part(pod, "spec", "securityContext", "appArmorProfile")
    for container, _ in all_containers(part(pod, "spec") or {}, "spec"):
        key = APPARMOR + text(container, "name")
        if key not in annotations:
            continue
        own, meant = part(container, "securityContext", "appArmorProfile"), apparmor_field(annotations[key])
        written = own is not None and own == meant and own != whole and not _gave_profile(pod, text(container, "name"))
        if written or (own is None and meant is None):
            why = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            warnings.append(f"metadata.annotations[{key}]: {why}")
    return warnings


def _gave_profile(pod: JsonObject, container: str) -> bool:
    """Return whether a client set the AppArmor profile of a container, which is the case if a field manager owns the field."""
    path = (
        "fieldsV1",
        "f:spec",
        "f:containers",
        f'k:{{"name":"{container}"}}',
        "f:securityContext",
        "f:appArmorProfile",
    )
    return any(find(entry, *path) is not None for entry in parts(pod, "metadata", "managedFields"))


def pod_template_warnings(template: JsonObject, path: str) -> list[str]:
    """Return the warnings about the pod template at ``path``, such as ``spec.template``."""
    return _spec_warnings(template, f"{path}.", template=True)


def pod_status_warnings(new: JsonObject, _old: JsonObject | None) -> list[str]:
    """Return the warnings about a written Pod status: addresses in a non-standard form."""
    return [
        warning
        for name in ("podIPs", "hostIPs")
        for index, item in enumerate(parts(new, "status", name))
        for warning in ip_warnings(f"status.{name}[{index}].ip", text(item, "ip"))
    ]


def _spec_warnings(pod: JsonObject, prefix: str, *, template: bool) -> list[str]:
    spec, annotations = part(pod, "spec") or {}, text_map(pod, "metadata", "annotations")
    at = f"{prefix}spec"
    warnings = _node_warnings(spec, at)
    known = f"{prefix}metadata.annotations"
    warnings += [f"{known}[{key}]: {why}" for key, why in _ANNOTATIONS.items() if key in annotations]
    warnings += _volume_warnings(spec, at)
    warnings += path_warnings(parts(spec, "volumes"))
    warnings += _list_warnings(spec, at)
    warnings += _byte_warnings(spec.get("overhead"), f"{at}.overhead")
    if part(spec, "securityContext", "seccompProfile") is None and SECCOMP_POD in annotations:
        warnings.append(f'{known}[{SECCOMP_POD}]: non-functional in v1.27+; use the "seccompProfile" field instead')
    for container, where in all_containers(spec, at):
        warnings += _annotated_warnings(container, spec, annotations, known, template=template)
        for kind in ("memory", "ephemeral-storage"):
            for side in ("limits", "requests"):
                held: JsonObject = (
                    {kind: value} if (value := (part(container, "resources", side) or {}).get(kind)) else {}
                )
                warnings += _byte_warnings(held, f"{where}.resources.{side}")
        warnings += _variable_warnings(container, where)
    warnings += _port_warnings(spec, at)
    grace = optional_number(spec, "terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        warnings.append(f"{at}.terminationGracePeriodSeconds: {why}")
    warnings += _selector_warnings(spec, at)
    for index, server in enumerate(texts(spec, "dnsConfig", "nameservers")):
        warnings += ip_warnings(f"{at}.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(parts(spec, "hostAliases")):
        warnings += ip_warnings(f"{at}.hostAliases[{index}].ip", text(alias, "ip"))
    return warnings


def _node_warnings(spec: JsonObject, at: str) -> list[str]:
    """Return the warnings about node labels, and about topology spread constraints without a label selector."""
    selector = sorted(text_map(spec, "nodeSelector"))
    warnings = [f"{at}.nodeSelector[{key}]: {NODE_LABELS[key]}" for key in selector if key in NODE_LABELS]
    nodes = f"{at}.affinity.nodeAffinity"
    for index, term in enumerate(parts(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")):
        warnings += node_term_warnings(term, f"{nodes}.{REQUIRED}.nodeSelectorTerms[{index}]", check_values=False)
    for index, term in enumerate(parts(spec, "affinity", "nodeAffinity", PREFERRED)):
        path = f"{nodes}.{PREFERRED}[{index}].preference"
        warnings += node_term_warnings(part(term, "preference") or {}, path, check_values=True)
    for index, constraint in enumerate(parts(spec, "topologySpreadConstraints")):
        path, key = f"{at}.topologySpreadConstraints[{index}]", text(constraint, "topologyKey")
        if key in NODE_LABELS:
            warnings.append(f"{path}.topologyKey: {key} is {NODE_LABELS[key]}")
        if constraint.get("labelSelector") is None:
            warnings.append(f"{path}.labelSelector: {_NO_POD}")
    return warnings


def node_term_warnings(term: JsonObject, path: str, *, check_values: bool) -> list[str]:
    """Return the warnings about one term of a node selector."""
    warnings: list[str] = []
    for index, expression in enumerate(parts(term, "matchExpressions")):
        where, key = f"{path}.matchExpressions[{index}]", text(expression, "key")
        if key in NODE_LABELS:
            warnings.append(f"{where}.key: {key} is {NODE_LABELS[key]}")
        for place, value in enumerate(texts(expression, "values") if check_values else []):
            warnings += [f"{where}.values[{place}]: {value} is invalid, {why}" for why in value_problems(value)]
    return warnings


def _volume_warnings(spec: JsonObject, at: str) -> list[str]:
    warnings: list[str] = []
    for index, volume in enumerate(parts(spec, "volumes")):
        for kind, why in _VOLUMES.items():
            path = f"{at}.volumes[{index}].{_SPELLED.get(kind, kind)}"
            if part(volume, kind) is None:
                continue
            if why:
                warnings.append(f"{path}: {why}")
            elif (claim := part(volume, kind, "volumeClaimTemplate")) is not None:
                warnings += claim_spec_warnings(part(claim, "spec") or {}, f"{path}.volumeClaimTemplate.spec")
    return warnings


def _list_warnings(spec: JsonObject, at: str) -> list[str]:
    """Return the warnings about duplicate entries in lists, and about entries without a name."""
    warnings: list[str] = []
    for field, member in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        values = [text(item, member) for item in parts(spec, field)]
        warnings += [
            f"{at}.{field}[{index}].{member}: duplicate {member} {quoted(values[index])}"
            for index in sorted(repeated(values))
        ]
    unnamed = [index for index, item in enumerate(parts(spec, "imagePullSecrets")) if not text(item, "name")]
    return warnings + [f'{at}.imagePullSecrets[{index}].name: invalid empty name ""' for index in unnamed]


def _byte_warnings(resources: JsonValue, path: str) -> list[str]:
    held = part(resources) or {}
    return [
        f'{path}[{name}]: fractional byte value "{canonical_quantity(held[name])}" is invalid, must be an integer'
        for name in _BYTES
        if held.get(name) is not None and not is_whole(held[name])
    ]


def _annotated_warnings(
    container: JsonObject, spec: JsonObject, annotations: dict[str, str], known: str, *, template: bool
) -> list[str]:
    warnings: list[str] = []
    seccomp, apparmor = (prefix + text(container, "name") for prefix in (SECCOMP_CONTAINER, APPARMOR))
    if part(container, "securityContext", "seccompProfile") is None and seccomp in annotations:
        warnings.append(f'{known}[{seccomp}]: non-functional in v1.27+; use the "seccompProfile" field instead')
    if part(container, "securityContext", "appArmorProfile") is None and apparmor in annotations and template:
        whole = part(spec, "securityContext", "appArmorProfile")
        if whole is None or whole != apparmor_field(annotations[apparmor]):
            warnings.append(f'{known}[{apparmor}]: deprecated since v1.30; use the "appArmorProfile" field instead')
    return warnings


def apparmor_field(annotation: str) -> JsonObject | None:
    """Return the ``appArmorProfile`` that corresponds to the value of a deprecated annotation; None for an unknown value."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    if annotation.startswith("localhost/"):
        local = annotation.removeprefix("localhost/")
        return {"type": "Localhost", "localhostProfile": local} if local else None
    return None


def _variable_warnings(container: JsonObject, path: str) -> list[str]:
    """Return the warnings about environment variables whose second definition does not include the value of the first."""
    warnings: list[str] = []
    seen: set[str] = set()
    for index, variable in enumerate(parts(container, "env")):
        name, value = text(variable, "name"), text(variable, "value")
        own = f"$({name})"
        if name in seen and (part(variable, "valueFrom") is not None or value == own or own not in value):
            why = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            warnings.append(f"{path}.env[{index}]: {why}")
        seen.add(name)
    return warnings


def _port_warnings(spec: JsonObject, at: str) -> list[str]:
    warnings: list[str] = []
    before = _Ports()
    for container, where in all_containers(spec, at):
        for index, port in enumerate(parts(container, "ports")):
            path = f"{where}.ports[{index}]"
            if text(port, "hostIP") and not number(port, "hostPort"):
                warnings.append(f"{path}: hostIP set without hostPort: {_shown_port(port)}")
            if len(warnings) < MOST_WARNINGS:
                warnings += [f"{path}: {why} port definition with {other}" for other, why in before.clashes(port)]
                before.add(path, port)
    names: dict[str, str] = {}
    for container, where in all_containers(spec, at):
        for index, port in enumerate(parts(container, "ports")):
            path, name = f"{where}.ports[{index}]", text(port, "name")
            if name and name in names:
                first = names[name]
                why = f"services and probes that select ports by name will use {first}"
                warnings.append(f"{path}: duplicate port name {quoted(name)} with {first}, {why}")
            elif name:
                names[name] = path
    return warnings


def _shown_port(port: JsonObject) -> str:
    return (
        f"{{Name:{text(port, 'name')} HostPort:{number(port, 'hostPort')} ContainerPort:{number(port, 'containerPort')} "
        f"Protocol:{text(port, 'protocol')} HostIP:{text(port, 'hostIP')}}}"
    )


class _Ports:
    """The ports of a pod, indexed by the properties that make ports clash, so that only clashing ports are compared."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._by: dict[tuple[object, ...], list[int]] = {}

    def clashes(self, port: JsonObject) -> list[tuple[str, str]]:
        """Return the paths of the ports that clash with this one, in order, and the kind of each clash."""
        inner, host, ip = _port_of(port)
        same = self._by.get((*inner, host, ip), [])
        found = dict.fromkeys(self._by.get(inner if not host else (*inner, 0), []), "overlapping")
        if host:
            found |= dict.fromkeys(self._by.get((*inner, host, not ip), []), "dangerously ambiguous")
        found |= dict.fromkeys(same, "duplicate")
        return [(self._paths[index], found[index]) for index in sorted(found)]

    def add(self, path: str, port: JsonObject) -> None:
        inner, host, ip = _port_of(port)
        for key in (inner, (*inner, host, ip), (*inner, host, bool(ip)) if host else (*inner, 0)):
            self._by.setdefault(key, []).append(len(self._paths))
        self._paths.append(path)


def _port_of(port: JsonObject) -> tuple[tuple[int, str], int, str]:
    return (number(port, "containerPort"), text(port, "protocol")), number(port, "hostPort"), text(port, "hostIP")


def _selector_warnings(spec: JsonObject, at: str) -> list[str]:
    warnings: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        path = f"{at}.affinity.{kind}"
        for index, term in enumerate(parts(spec, "affinity", kind, REQUIRED)):
            if term.get("labelSelector") is None:
                warnings.append(f"{path}.{REQUIRED}[{index}].labelSelector: {_NO_POD}")
        for index, term in enumerate(parts(spec, "affinity", kind, PREFERRED)):
            if (part(term, "podAffinityTerm") or {}).get("labelSelector") is None:
                warnings.append(f"{path}.{PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_POD}")
    return warnings
