"""The ServiceAccount plugin: it sets the service account of new Pods, and mounts a token for that account
(``plugin/pkg/admission/serviceaccount``).

A Pod whose account does not exist is refused. The exception is the account ``default``: controllers create it a moment after
its namespace, and kube-apiserver waits for it (ten attempts, up to two seconds). This server does not wait: it treats the
missing account as one with default settings.
"""

from typing import Final

from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.api.core.pod_specs.annotations import MIRROR
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.names import GENERATED

DEFAULT: Final = "default"
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path in containers
_VOLUME_PREFIX: Final = "kube-api-access-"
_SUFFIX_LENGTH: Final = 5
_TOKEN_SECONDS: Final = 3607
"""The lifetime of automatically mounted tokens in seconds; the odd number distinguishes them from requested tokens."""
_ENFORCED: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def give_account(admission: Admission, pod: JsonObject) -> JsonObject:
    """Return a new Pod with its account's name, token volume and pull secrets. Raises StatusError (403)."""
    if admission.operation is not Operation.CREATE or admission.subresource:
        return pod
    spec = dict(part(pod, "spec") or {})
    if MIRROR in text_map(pod, "metadata", "annotations"):
        _check_mirror(admission, spec)
        return pod
    name = text(spec, "serviceAccountName") or DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = _account(admission, name)
    own, others = spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")
    if own is True or (own is None and others is not False):
        _mount_token(spec, admission.view)
    secrets = parts(account, "imagePullSecrets")
    if not spec.get("imagePullSecrets") and secrets:
        spec["imagePullSecrets"] = [
            {"name": text(secret, "name")} if text(secret, "name") else {} for secret in secrets
        ]
    if text_map(account, "metadata", "annotations").get(_ENFORCED) in _TRUE:
        _check_secrets(admission, spec, account)
    return {**pod, "spec": spec}


def _account(admission: Admission, name: str) -> JsonObject:
    found = admission.view.object("", "serviceaccounts", admission.namespace, name)
    if found is None and name != DEFAULT:
        why = f'error looking up service account {admission.namespace}/{name}: serviceaccount "{name}" not found'
        raise status.forbidden(admission.kind, admission.name, why)
    return found or {}


def _mount_token(spec: JsonObject, view: ClusterView) -> None:
    """Mount the token in every container that has no mount at its path. Modifies ``spec``, which must be a copy."""
    volumes = parts(spec, "volumes")
    known = [text(volume, "name") for volume in volumes if text(volume, "name").startswith(_VOLUME_PREFIX)]
    suffix = "".join(GENERATED[view.draw(len(GENERATED))] for _ in range(_SUFFIX_LENGTH))
    name = known[0] if known else _VOLUME_PREFIX + suffix
    mount: JsonObject = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
    needed = False
    for kind in ("initContainers", "containers"):
        containers: list[JsonValue] = []
        for container in parts(spec, kind):
            mounts = parts(container, "volumeMounts")
            if any(text(item, "mountPath") == _TOKEN_PATH for item in mounts):
                containers.append(container)
                continue
            containers.append({**container, "volumeMounts": [*mounts, dict(mount)]})
            needed = True
        if containers:
            spec[kind] = containers
    if needed and not known:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> JsonObject:
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 0o644,
    }


def _check_mirror(admission: Admission, spec: JsonObject) -> None:
    """Refuse a mirror Pod that uses an account or secrets. Raises StatusError (403).

    A mirror Pod represents a static Pod, which a kubelet runs from a file.
    """
    projected = [source for volume in parts(spec, "volumes") for source in parts(volume, "projected", "sources")]
    why = ""
    if text(spec, "serviceAccountName"):
        why = "a mirror pod may not reference service accounts"
    elif any(True for _ in _secret_names(spec)) or any(part(source, "secret") is not None for source in projected):
        why = "a mirror pod may not reference secrets"
    elif any(part(source, "serviceAccountToken") is not None for source in projected):
        why = "a mirror pod may not use ServiceAccountToken volume projections"
    if why:
        raise status.forbidden(admission.kind, admission.name, why)


def _secret_names(spec: JsonObject) -> list[tuple[str, str]]:
    """Return the names of the secrets that a spec uses, each with the description of its use in upstream's errors."""
    found = [
        (secret, f'volume with secret.secretName="{secret}"')
        for volume in parts(spec, "volumes")
        if (secret := text(volume, "secret", "secretName"))
    ]
    for kind, called in (("initContainers", "init container"), ("containers", "container")):
        for container in parts(spec, kind):
            name = f"{called} {text(container, 'name')}"
            for variable in parts(container, "env"):
                if secret := text(variable, "valueFrom", "secretKeyRef", "name"):
                    where = f"{name} with envVar {text(variable, 'name')} referencing"
                    found.append((secret, f'{where} secret.secretName="{secret}"'))
            secrets = [text(source, "secretRef", "name") for source in parts(container, "envFrom")]
            found += [(it, f'{name} with envFrom referencing secret.secretName="{it}"') for it in secrets if it]
    return found


def _check_secrets(admission: Admission, spec: JsonObject, account: JsonObject) -> None:
    """Refuse secrets that the account does not list. Raises StatusError (403).

    Called only if the account's annotation ``kubernetes.io/enforce-mountable-secrets`` is true.
    """
    name = text(account, "metadata", "name")
    listed = {text(secret, "name") for secret in parts(account, "secrets")}
    for secret, where in _secret_names(spec):
        if secret not in listed:
            why = f"{where} is not allowed because service account {name} does not reference that secret"
            raise status.forbidden(admission.kind, admission.name, why)
    pulled = {text(secret, "name") for secret in parts(account, "imagePullSecrets")}
    for index, secret_ in enumerate(parts(spec, "imagePullSecrets")):
        if text(secret_, "name") not in pulled:
            why = f'imagePullSecrets[{index}].name="{text(secret_, "name")}" is not allowed because service account {name} '
            raise status.forbidden(admission.kind, admission.name, f"{why}does not reference that imagePullSecret")
