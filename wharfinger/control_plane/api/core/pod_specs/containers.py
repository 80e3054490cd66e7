"""The validation of the containers of a pod spec: regular, init and ephemeral containers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.environment import environment_errors
from wharfinger.control_plane.api.core.pod_specs.mounts import mount_errors
from wharfinger.control_plane.api.core.pod_specs.probes import PROBES, lifecycle_errors, probe_errors
from wharfinger.control_plane.api.core.pod_specs.resources import resource_errors
from wharfinger.control_plane.api.core.pod_specs.security import container_context_errors
from wharfinger.control_plane.api.core.pod_specs.volumes import pull_policy_errors
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.objects.names import dns_label_problems, port_name_problems, port_problems
from wharfinger.control_plane.wire.field_errors import (
    absent,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RULE_ACTIONS: Final = ("Restart", "RestartAllContainers")
_RULE_LIMIT: Final = 20
_VALUE_LIMIT: Final = 255
_RESIZED: Final = ("cpu", "memory")
_RESIZES: Final = ("NotRequired", "RestartContainer")
_NEEDS_SIDECAR: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_EPHEMERAL_FIELDS: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
"""The fields that an ephemeral container may not set, in the order of the fields in the Go struct."""
_UNSET: Final[dict[str, tuple[JsonValue, ...]]] = {"resources": (None, {})}
"""The values that count as unset, by field. A field that is not listed here is unset only if it is absent or null."""


@dataclass(frozen=True, slots=True)
class ContainerRules:
    """The validation of the containers of one pod spec, with the facts about the spec that the validation needs."""

    volumes: Mapping[str, JsonObject]
    claims: Collection[str]
    grace: int | None
    restart_policy: str
    host_users: bool

    def regular(self, containers: list[JsonObject], path: str) -> list[FieldError]:
        """Return the errors of ``containers``."""
        if not containers:
            return [required(path)]
        errors: list[FieldError] = []
        names: set[str] = set()
        for index, container in enumerate(containers):
            at, name = f"{path}[{index}]", text(container, "name")
            errors += self.common(container, at)
            if name in names:
                errors.append(duplicate(f"{at}.name", name))
            names.add(name)
            errors += lifecycle_errors(container, at, self.grace)
            errors += probe_errors(container, at, self.grace)
            errors += _restart_errors(container, at)
        return errors + _host_port_errors(containers, path)

    def initial(self, containers: list[JsonObject], regular: list[JsonObject], path: str) -> list[FieldError]:
        """Return the errors of ``initContainers``."""
        errors: list[FieldError] = []
        names = {text(container, "name") for container in regular}
        for index, container in enumerate(containers):
            at, name = f"{path}[{index}]", text(container, "name")
            errors += self.common(container, at)
            errors += _restart_errors(container, at, initial=True)
            if name in names:
                errors.append(duplicate(f"{at}.name", name))
            names |= {name} if name else set()
            errors += _host_port_errors([container], path)
            if container.get("restartPolicy") == "Always":
                errors += lifecycle_errors(container, at, self.grace) + probe_errors(container, at, self.grace)
                continue
            refused = [field for field in ("lifecycle", *PROBES) if container.get(field) is not None]
            errors += [forbidden(f"{at}.{field}", _NEEDS_SIDECAR) for field in refused]
            errors += _init_resize_errors(container, at)
        return errors

    def ephemeral(self, containers: list[JsonObject], others: list[JsonObject], path: str) -> list[FieldError]:
        """Return the errors of ``ephemeralContainers``; ``others`` are all other containers."""
        errors: list[FieldError] = []
        known = {text(container, "name") for container in others}
        names = set(known)
        for index, container in enumerate(containers):
            at, name, target = f"{path}[{index}]", text(container, "name"), text(container, "targetContainerName")
            errors += self.common(container, at) + image_space_errors(container, at)
            if name in names:
                errors.append(duplicate(f"{at}.name", name))
            names.add(name)
            if target and target not in known:
                errors.append(absent(f"{at}.targetContainerName", target))
            refused = [field for field in _EPHEMERAL_FIELDS if container.get(field) not in _UNSET.get(field, (None,))]
            errors += [forbidden(f"{at}.{field}", _NOT_EPHEMERAL) for field in refused]
            for place, mount in enumerate(parts(container, "volumeMounts")):
                set_ = [field for field in ("subPath", "subPathExpr") if text(mount, field)]
                errors += [forbidden(f"{at}.volumeMounts[{place}].{field}", _NOT_EPHEMERAL) for field in set_]
        return errors

    def common(self, container: JsonObject, path: str) -> list[FieldError]:
        """Return the errors of the fields that all kinds of containers have."""
        name, policy = text(container, "name"), text(container, "terminationMessagePolicy")
        errors = each(f"{path}.name", name, dns_label_problems(name)) if name else [required(f"{path}.name")]
        if not text(container, "image"):
            errors.append(required(f"{path}.image"))
        where = f"{path}.terminationMessagePolicy"
        if not policy:
            errors.append(required(where))
        elif policy not in _MESSAGE_POLICIES:
            errors.append(not_supported(where, policy, _MESSAGE_POLICIES))
        errors += _port_errors(parts(container, "ports"), f"{path}.ports")
        errors += environment_errors(container, path)
        errors += mount_errors(container, self.volumes, path)
        errors += pull_policy_errors(text(container, "imagePullPolicy"), f"{path}.imagePullPolicy")
        errors += resource_errors(container.get("resources"), f"{path}.resources", self.claims)
        errors += self._resize_errors(parts(container, "resizePolicy"), f"{path}.resizePolicy")
        return errors + container_context_errors(container, path, host_users=self.host_users)

    def _resize_errors(self, policies: list[JsonObject], path: str) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, policy in enumerate(policies):
            name, restart = text(policy, "resourceName"), text(policy, "restartPolicy")
            if name in seen:
                errors.append(duplicate(f"{path}[{index}]", name))
            seen.add(name)
            for value, known in ((name, _RESIZED), (restart, _RESIZES)):
                if not value:
                    errors.append(required(path))
                elif value not in known:
                    errors.append(not_supported(path, value, known))
            if self.restart_policy == "Never" and restart != "NotRequired":
                errors.append(invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
        return errors


def image_space_errors(container: JsonObject, path: str) -> list[FieldError]:
    """Return an error for white space around the name of an image. It is allowed in pod templates, but not in pods."""
    image = text(container, "image")
    why = "must not have leading or trailing whitespace"
    return [] if image.strip() == image else [invalid(f"{path}.image", image, why)]


def _port_errors(ports: list[JsonObject], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        at, name, protocol = f"{path}[{index}]", text(port, "name"), text(port, "protocol")
        if name and (problems := port_name_problems(name)):
            errors += each(f"{at}.name", name, problems)
        elif name and name in names:
            errors.append(duplicate(f"{at}.name", name))
        elif name:
            names.add(name)
        inside, outside = number(port, "containerPort"), number(port, "hostPort")
        if inside:
            errors += [invalid(f"{at}.containerPort", inside, problem) for problem in port_problems(inside)]
        else:
            errors.append(required(f"{at}.containerPort"))
        if outside:
            errors += [invalid(f"{at}.hostPort", outside, problem) for problem in port_problems(outside)]
        if not protocol:
            errors.append(required(f"{at}.protocol"))
        elif protocol not in _PROTOCOLS:
            errors.append(not_supported(f"{at}.protocol", protocol, _PROTOCOLS))
    return errors


def _host_port_errors(containers: list[JsonObject], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(parts(container, "ports")):
            if not number(port, "hostPort"):
                continue
            key = f"{text(port, 'protocol')}/{text(port, 'hostIP')}/{number(port, 'hostPort')}"
            if key in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{place}].hostPort", key))
            taken.add(key)
    return errors


def _restart_errors(container: JsonObject, path: str, *, initial: bool = False) -> list[FieldError]:
    """Return the errors of a container's ``restartPolicy`` and ``restartPolicyRules``."""
    policy, rules = container.get("restartPolicy"), parts(container, "restartPolicyRules")
    errors: list[FieldError] = []
    if policy is None:
        if not rules:
            return []
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
        if initial:
            return errors
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > _RULE_LIMIT:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), _RULE_LIMIT))
    for index, rule in enumerate(rules):
        at, action, codes = f"{path}.restartPolicyRules[{index}]", text(rule, "action"), rule.get("exitCodes")
        if action not in _RULE_ACTIONS:
            errors.append(not_supported(f"{at}.action", action, _RULE_ACTIONS))
        if not isinstance(codes, dict):
            errors.append(required(f"{at}.exitCodes", "must be specified"))
            continue
        if text(codes, "operator") not in {"In", "NotIn"}:
            errors.append(not_supported(f"{at}.exitCodes.operator", text(codes, "operator"), ("In", "NotIn")))
        values = codes.get("values")
        if isinstance(values, list) and len(values) > _VALUE_LIMIT:
            errors.append(too_many(f"{at}.exitCodes.values", len(values), _VALUE_LIMIT))
    return errors


def _init_resize_errors(container: JsonObject, path: str) -> list[FieldError]:
    why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", why)
        for index, policy in enumerate(parts(container, "resizePolicy"))
        if policy.get("restartPolicy") == "RestartContainer"
    ]
