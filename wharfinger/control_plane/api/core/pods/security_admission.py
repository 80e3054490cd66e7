"""The PodSecurity plugin: the labels of a namespace define which pod security standards apply there, and how they
are enforced.

Pods that violate the level in ``pod-security.kubernetes.io/enforce`` are refused. Pods and pod templates that violate the
level in ``…/warn`` (or, without this label, the level in ``enforce``) cause warnings to the client. ``…/audit`` has no
effect, because there is no audit log.
"""

import re
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.api.core.pods.security_standards import Violation, violations
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import invalid, quoted
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

_PREFIX: Final = "pod-security.kubernetes.io/"
_LEVELS: Final = ("privileged", "baseline", "restricted")
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,5})")
_NEWEST: Final = 1_000_000
_CHECKED_PODS: Final = 3000
_UNCHECKED: Final = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
TEMPLATES: Final = {
    "PodTemplate": ("template",),
    "ReplicationController": ("spec", "template"),
    "ReplicaSet.apps": ("spec", "template"),
    "Deployment.apps": ("spec", "template"),
    "StatefulSet.apps": ("spec", "template"),
    "DaemonSet.apps": ("spec", "template"),
    "Job.batch": ("spec", "template"),
    "CronJob.batch": ("spec", "jobTemplate", "spec", "template"),
}
"""The path of the pod template in each kind that has one."""


@dataclass(frozen=True, slots=True)
class _Standard:
    level: str = "privileged"
    version: int = _NEWEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.version == _NEWEST else f'v1.{self.version}'}"


@dataclass(frozen=True, slots=True)
class _Policy:
    enforce: _Standard
    warn: _Standard
    errors: tuple[FieldError, ...] = ()


def _policy(labels: dict[str, str]) -> _Policy:
    """Return the policy in the labels of a namespace.

    An unknown level in ``enforce`` counts as ``restricted``. Unknown levels cause no warnings about Pods.
    """
    errors: list[FieldError] = []
    found: dict[str, _Standard] = {}
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(_PREFIX + mode), labels.get(f"{_PREFIX}{mode}-version")
        if level is not None and level not in _LEVELS:
            errors.append(_label_error(mode, level, f"must be one of {', '.join(_LEVELS)}"))
            level = "restricted" if mode == "enforce" else "privileged"
        match = None if version is None else _VERSION.fullmatch(version)
        if version not in {None, "latest"} and match is None:
            errors.append(_label_error(f"{mode}-version", version or "", 'must be "latest" or "v1.x"'))
        found[mode] = _Standard(level or "privileged", _NEWEST if match is None else int(match[1]))
    enforce, warn = found["enforce"], found["warn"]
    understood = labels.get(f"{_PREFIX}enforce") in _LEVELS
    stricter = _LEVELS.index(enforce.level) > _LEVELS.index(warn.level)
    if f"{_PREFIX}warn" not in labels and understood and stricter:
        version_ = warn.version if f"{_PREFIX}warn-version" in labels else enforce.version
        warn = _Standard(enforce.level, version_)
    return _Policy(enforce, warn, tuple(errors))


def _label_error(name: str, value: str, why: str) -> FieldError:
    return invalid(f"metadata.labels[{_PREFIX}{name}]", value, why)


def check_security(admission: Admission) -> None:
    """Check a Pod, a pod template or the labels of a Namespace; refuse it or add warnings. Raises StatusError (403, 422)."""
    if admission.obj is None:
        return
    if admission.kind.group_kind == "Namespace":
        _check_namespace(admission, admission.obj)
        return
    is_pod = admission.kind.group_kind == "Pod"
    if admission.subresource and (not is_pod or admission.subresource in _UNCHECKED):
        return
    labels = text_map(admission.view.object("", "namespaces", "", admission.namespace), "metadata", "labels")
    if not any(label.startswith(_PREFIX) for label in labels):
        return
    policy = _policy(labels)
    if is_pod and admission.old is not None and not _is_significant(admission.obj, admission.old):
        return
    pod = admission.obj if is_pod else part(admission.obj, *TEMPLATES[admission.kind.group_kind])
    if pod is None:
        return
    if is_pod and (found := _violations(pod, policy.enforce)):
        why = f"violates PodSecurity {quoted(str(policy.enforce))}: {', '.join(map(str, found))}"
        raise status.forbidden(admission.kind, admission.name, why)
    if found := _violations(pod, policy.warn):
        listed = ", ".join(map(str, found))
        admission.warnings.append(f"would violate PodSecurity {quoted(str(policy.warn))}: {listed}")


def _violations(pod: JsonObject, standard: _Standard) -> list[Violation]:
    metadata, spec = part(pod, "metadata") or {}, part(pod, "spec") or {}
    return violations(metadata, spec, standard.level, standard.version)


def _is_significant(new: JsonObject, old: JsonObject) -> bool:
    """Return whether a change of a Pod must be checked. Only changed images and new ephemeral containers need a check."""

    def images(pod: JsonObject, name: str) -> list[str]:
        return [text(container, "image") for container in parts(pod, "spec", name)]

    if any(images(new, name) != images(old, name) for name in ("containers", "initContainers")):
        return True
    known = {text(item, "name"): text(item, "image") for item in parts(old, "spec", "ephemeralContainers")}
    return any(
        known.get(text(item, "name")) != text(item, "image") for item in parts(new, "spec", "ephemeralContainers")
    )


def _check_namespace(admission: Admission, namespace: JsonObject) -> None:
    if admission.subresource:
        return
    labels = text_map(namespace, "metadata", "labels")
    old = text_map(admission.old, "metadata", "labels")
    if not any(label.startswith(_PREFIX) for label in {*labels, *old}):
        return
    policy, before = _policy(labels), _policy(old)
    if policy.errors and (admission.operation is Operation.CREATE or policy.errors != before.errors):
        raise status.invalid("", "Namespace", admission.name, policy.errors)
    standard, then = policy.enforce, before.enforce
    if admission.operation is Operation.CREATE or standard == then or standard.level == "privileged":
        return
    if standard.version == then.version and _LEVELS.index(standard.level) <= _LEVELS.index(then.level):
        return
    admission.warnings.extend(_existing_warnings(admission, standard))


def _existing_warnings(admission: Admission, standard: _Standard) -> list[str]:
    """Return the warnings about existing Pods that the new level would refuse."""
    pods = list(admission.view.objects("", "pods", admission.name))
    found: dict[str, list[str]] = {}
    for pod in pods[:_CHECKED_PODS]:
        if reasons := ", ".join(violation.reason for violation in _violations(pod, standard)):
            found.setdefault(reasons, []).append(text(pod, "metadata", "name"))
    warnings: list[str] = []
    if len(pods) > _CHECKED_PODS:
        why = f"only checked against the first {_CHECKED_PODS} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level {why}")
    if found:
        where = f"existing pods in namespace {quoted(admission.name)} violate the new PodSecurity enforce level"
        warnings.append(f"{where} {quoted(str(standard))}")
    return warnings + sorted(f"{min(names)}{_others(len(names))}: {reasons}" for reasons, names in found.items())


def _others(count: int) -> str:
    if count == 1:
        return ""
    return f" (and {count - 1} other pod{'s' * (count > 2)})"
