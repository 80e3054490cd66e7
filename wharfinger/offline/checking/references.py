"""References to objects that do not exist, such as the Secret of a volume, the Service of an Ingress, or the role of a
RoleBinding. Pure.

An object that is not in the tree may still exist in the cluster, so these findings are warnings. Optional references are not
checked.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.offline.checking.findings import Finding, Rule, Severity
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.store.identity import group_of, kind_id, shown
from wharfinger.runtime.fixpoint.model import Id

_RBAC: Final = "rbac.authorization.k8s.io"
_POD_SPECS: Final = {
    "Pod": ("spec",),
    "Deployment.apps": ("spec", "template", "spec"),
    "StatefulSet.apps": ("spec", "template", "spec"),
    "DaemonSet.apps": ("spec", "template", "spec"),
    "ReplicaSet.apps": ("spec", "template", "spec"),
    "Job.batch": ("spec", "template", "spec"),
    "CronJob.batch": ("spec", "jobTemplate", "spec", "template", "spec"),
}


def dangling(manifests: Iterable[Manifest], made_in_cluster: Iterable[Id] = ()) -> Iterator[Finding]:
    """Yield a finding for each reference to an object that is not in the tree and that no controller makes in the cluster."""
    found = sorted(manifests, key=lambda each: each.id)
    known = {each.id for each in found} | {*made_in_cluster}
    for manifest in found:
        try:
            named = sorted(set(_references(manifest)))
        except FormatError:
            continue  # a malformed object: the check by the server's rules reports it
        for field, who in named:
            if who not in known:
                message = f"{field} names {shown(who)}, which is not in the tree"
                yield Finding(Rule.REFERENCE, Severity.WARNING, message, manifest.id)


def _references(manifest: Manifest) -> Iterator[tuple[str, Id]]:
    kind, namespace, obj = manifest.id.kind, manifest.id.namespace, manifest.object
    if kind in _POD_SPECS:
        yield from _of_pods(find_object(obj, *_POD_SPECS[kind]), namespace)
    elif kind == "Ingress.networking.k8s.io":
        yield from _of_ingress(obj, namespace)
    elif kind in {f"RoleBinding.{_RBAC}", f"ClusterRoleBinding.{_RBAC}"}:
        role = find_str(obj, "roleRef", "kind")
        where = namespace if role == "Role" else ""
        name = find_str(obj, "roleRef", "name")
        if not name.startswith("system:") and name not in {"admin", "cluster-admin", "edit", "view"}:
            yield "roleRef", Id(kind_id(_RBAC, role), where, name)
        for subject in find_list(obj, "subjects"):
            if find_str(subject, "kind") == "ServiceAccount" and find_str(subject, "name") != "default":
                where = find_str(subject, "namespace", default=namespace)
                yield "subjects", Id("ServiceAccount", where, find_str(subject, "name"))
    elif kind == "HorizontalPodAutoscaler.autoscaling":
        target = find_object(obj, "spec", "scaleTargetRef")
        group = group_of(find_str(target, "apiVersion"))
        yield "spec.scaleTargetRef", Id(kind_id(group, find_str(target, "kind")), namespace, find_str(target, "name"))


def _of_pods(spec: JsonObject, namespace: str) -> Iterator[tuple[str, Id]]:
    account = find_str(spec, "serviceAccountName")
    if account not in {"", "default"}:
        yield "serviceAccountName", Id("ServiceAccount", namespace, account)
    for volume in find_list(spec, "volumes"):
        yield from _named("volumes", "ConfigMap", find(volume, "configMap"), namespace)
        yield from _named("volumes", "Secret", find(volume, "secret"), namespace, key="secretName")
        yield from _named(
            "volumes", "PersistentVolumeClaim", find(volume, "persistentVolumeClaim"), namespace, key="claimName"
        )
    for key in ("containers", "initContainers"):
        for container in find_list(spec, key):
            for source in find_list(container, "envFrom"):
                yield from _named("envFrom", "ConfigMap", find(source, "configMapRef"), namespace)
                yield from _named("envFrom", "Secret", find(source, "secretRef"), namespace)
            for variable in find_list(container, "env"):
                yield from _named("env", "ConfigMap", find(variable, "valueFrom", "configMapKeyRef"), namespace)
                yield from _named("env", "Secret", find(variable, "valueFrom", "secretKeyRef"), namespace)


def _of_ingress(obj: JsonObject, namespace: str) -> Iterator[tuple[str, Id]]:
    yield from _named("defaultBackend", "Service", find(obj, "spec", "defaultBackend", "service"), namespace)
    for rule in find_list(obj, "spec", "rules"):
        for path in find_list(rule, "http", "paths"):
            yield from _named("rules", "Service", find(path, "backend", "service"), namespace)


def _named(
    field: str, kind: str, reference: JsonValue, namespace: str, *, key: str = "name"
) -> Iterator[tuple[str, Id]]:
    if isinstance(reference, dict) and find_str(reference, key) and reference.get("optional") is not True:
        yield field, Id(kind, namespace, find_str(reference, key))
