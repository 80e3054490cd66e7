"""WorkerPools and WorkerClaims as the daemon reads them, and the labels and annotations of their pods. Pure.

An API server validates both kinds of objects against their CRDs. The functions here check the fields again, because an older CRD
may permit other content. A :class:`PoolSpecError` names the field.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    checksum,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)
from wharfinger.kube.names import is_key_part, is_qualified_name
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of
from wharfinger.kube.times import parse_time

GROUP: Final = "wharfinger.dev"
WORKER_POOL: Final = ResourceType(GROUP, "v1alpha1", "WorkerPool", "workerpools", namespaced=True)
WORKER_CLAIM: Final = ResourceType(GROUP, "v1alpha1", "WorkerClaim", "workerclaims", namespaced=True)
POD: Final = ResourceType("", "v1", "Pod", "pods", namespaced=True)

POOL_LABEL: Final = "wharfinger.dev/pool"
"""The label with the name of the WorkerPool to which a pod belongs."""
PHASE_LABEL: Final = "wharfinger.dev/pool-phase"
"""The label with the state of a pod of a pool: ``idle``, ``claimed`` or ``retiring``."""
TEMPLATE_LABEL: Final = "wharfinger.dev/pool-template"
"""The label with a hash of the template from which a pod was made."""
CLAIM_LABEL: Final = "wharfinger.dev/claim"
"""A label of claimed pods: the name of their WorkerClaim."""
CLAIM_UID: Final = "wharfinger.dev/claim-uid"
"""An annotation of claimed pods: the uid of their WorkerClaim."""
OWNER: Final = "wharfinger.dev/claim-owner"
"""An annotation of a claimed pod. Its value is ``spec.owner`` of the pod's WorkerClaim."""

DEFAULT_SIZE: Final = 1
DEFAULT_MAX: Final = 100
MOST_PODS: Final = 1000
DEFAULT_IDLE_S: Final = 300
DEFAULT_START_S: Final = 300
_HASH_CHARS: Final = 10


class PoolSpecError(Exception):
    """A WorkerPool or a WorkerClaim has an invalid specification. Retries do not help until the specification is changed."""


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """The specification of a WorkerPool.

    ``size`` idle pods are kept while the pool is used, and ``min`` once no claim has come for ``idle_s`` seconds; ``max`` bounds
    all pods, claimed ones included. A pod that is not ready ``start_s`` seconds after it was made is replaced.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    size: int
    min: int
    max: int
    idle_s: float
    start_s: float
    allows_images: bool
    template: JsonObject = field(hash=False)
    template_hash: str

    @property
    def key(self) -> ObjectKey:
        """The key of the WorkerPool."""
        return ObjectKey(WORKER_POOL, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The specification of a WorkerClaim: the fields to set on its pod, and the time at which it expires (None: never)."""

    namespace: str
    name: str
    uid: str
    pool: str
    owner: str = ""
    expires: datetime | None = None
    labels: JsonObject = field(default_factory=dict, hash=False)
    annotations: JsonObject = field(default_factory=dict, hash=False)
    images: JsonObject = field(default_factory=dict, hash=False)


def read_pool(obj: JsonObject) -> PoolSpec:
    """Read a WorkerPool. Raises PoolSpecError."""
    try:
        size = _count(obj, "size", DEFAULT_SIZE, least=0)
        template = find_object(obj, "spec", "template")
        if not find_list(template, "spec", "containers"):
            raise PoolSpecError("spec.template.spec.containers: expected at least one container, found none; add one")
        found = PoolSpec(
            namespace=namespace_of(obj),
            name=name_of(obj),
            uid=find_str(obj, "metadata", "uid"),
            generation=find_int(obj, "metadata", "generation"),
            size=size,
            min=_count(obj, "min", size, least=0),
            max=_count(obj, "max", DEFAULT_MAX, least=1),
            idle_s=_count(obj, "idleSeconds", DEFAULT_IDLE_S, least=1, most=86_400),
            start_s=_count(obj, "startSeconds", DEFAULT_START_S, least=1, most=86_400),
            allows_images=find(obj, "spec", "allowImages") is True,
            template=template,
            template_hash=checksum(template)[-_HASH_CHARS:],
        )
        _check_keys(find_object(template, "metadata", "labels"), "spec.template.metadata.labels")
        _check_keys(find_object(template, "metadata", "annotations"), "spec.template.metadata.annotations")
    except FormatError as error:
        raise PoolSpecError(f"{error}; correct the WorkerPool's spec") from error
    if not found.min <= found.size <= found.max:
        raise PoolSpecError(
            f"spec: expected min <= size <= max, found min {found.min}, size {found.size}, max {found.max}; correct them"
        )
    return found


def read_claim(obj: JsonObject) -> ClaimSpec:
    """Read a WorkerClaim. Raises PoolSpecError."""
    try:
        pool = find_str(obj, "spec", "pool")
        if not pool:
            raise PoolSpecError("spec.pool: expected the name of a WorkerPool, found nothing; name one")
        found = ClaimSpec(
            namespace=namespace_of(obj),
            name=name_of(obj),
            uid=find_str(obj, "metadata", "uid"),
            pool=pool,
            owner=find_str(obj, "spec", "owner"),
            expires=_expires(obj),
            labels=find_object(obj, "spec", "labels"),
            annotations=find_object(obj, "spec", "annotations"),
            images=find_object(obj, "spec", "images"),
        )
    except FormatError as error:
        raise PoolSpecError(f"{error}; delete the WorkerClaim and create a correct one") from error
    _check_keys(found.labels, "spec.labels")
    _check_keys(found.annotations, "spec.annotations")
    for key, value in found.labels.items():
        if value != "" and not is_key_part(str(value)):
            raise PoolSpecError(
                f"spec.labels.{key}: expected the value of a label, found {str(value)!r:.80}; correct it"
            )
    return found


def _expires(obj: JsonObject) -> datetime | None:
    seconds = find_int(obj, "spec", "timeoutSeconds")
    if seconds < 0:
        raise PoolSpecError(f"spec.timeoutSeconds: expected a number of seconds, found {seconds}; correct it")
    created = parse_time(find_str(obj, "metadata", "creationTimestamp"))
    return created + timedelta(seconds=seconds) if seconds and created is not None else None


def _count(obj: JsonObject, name: str, default: int, *, least: int, most: int = MOST_PODS) -> int:
    found = find_int(obj, "spec", name, default=default)
    if not least <= found <= most:
        raise PoolSpecError(f"spec.{name}: expected a number from {least} to {most}, found {found}; correct it")
    return found


def _check_keys(texts: JsonObject, where: str) -> None:
    """Raise PoolSpecError if a key is not a qualified name or is written by the daemon, or if a value is not a string."""
    for key, value in texts.items():
        if not is_qualified_name(key):
            raise PoolSpecError(f"{where}: expected a name such as example.com/name, found {key!r:.80}; correct it")
        if not isinstance(value, str):
            raise PoolSpecError(f"{where}.{key}: expected a text, found {value!r:.80}; quote it")
        if key.partition("/")[0] == GROUP and key in _WRITTEN:
            raise PoolSpecError(f"{where}.{key}: Wharfinger sets this key itself; leave it out")


_WRITTEN: Final = frozenset({POOL_LABEL, PHASE_LABEL, TEMPLATE_LABEL, CLAIM_LABEL, CLAIM_UID, OWNER})


def owner_reference(resource: ResourceType, name: str, uid: str) -> JsonValue:
    """Return the owner reference with which an object becomes the controller of a pod."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid, "controller": True}
