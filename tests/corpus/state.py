"""The objects of a control plane, in a form that can be compared with another control plane.

This form lacks everything in which two servers always differ: uids, versions, times, managers, and allocated addresses, ports
and names. It also lacks what controllers write (``status``) or create: a StatefulSet's claims, objects with owners, the default
objects of a namespace, and the APIServices of CRDs. Release records are compared separately.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.objects.ownership import PROTECTED, RELEASE_LABEL, flattened
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.storage.interface import Change
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str

PATIENCE_S: Final = 300

State: TypeAlias = dict[str, JsonObject]
"""Objects by ``Kind.group namespace/name``."""

OUR_MARKS: Final = ((("metadata", "labels"), RELEASE_LABEL),)
"""The marks that our engine puts on the objects of a release, and helm does not (docs/apply.md)."""

_PASSING: Final = (
    ("status",),
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
    ("metadata", "generation"),
    ("metadata", "creationTimestamp"),
    ("metadata", "managedFields"),
    ("metadata", "annotations", "wharfinger.dev/applied-digest"),  # the daemon writes it at a quick change
    ("metadata", "annotations", "deployment.kubernetes.io/revision"),
    ("metadata", "annotations", "pv.kubernetes.io/bind-completed"),
    ("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"),
)
_GIVEN_OUT: Final = {
    "Service": (("spec", "clusterIP"), ("spec", "clusterIPs")),
    "PersistentVolumeClaim": (("spec", "volumeName"), ("metadata", "finalizers")),
    "Pod": (("spec", "nodeName"),),  # the scheduler assigns it some seconds after the Pod was created
}
_ALLOCATED: Final = re.compile(
    r'(?<="nodePort": )\d+|(?<="healthCheckNodePort": )\d+|(?<="kube-api-access-)[a-z0-9]{5}(?=")'
)
"""The ports of Services and the name of a Pod's token volume, which servers draw at random."""
_AUTOMATIC: Final = "kube-aggregator.kubernetes.io/automanaged"
"""The label of the APIServices that the server creates for CRDs."""
_SKIPPED_KINDS: Final = frozenset({"Event", "Lease", "Endpoints", "EndpointSlice", "ControllerRevision"})
_FURNITURE: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})


def everything(backend: Backend) -> dict[str, JsonObject]:
    """Return all stored objects by ``Kind.group namespace/name``."""
    found: dict[str, JsonObject] = {}
    for kind in backend.catalog.kinds():
        for obj in backend.storage.list(kind.collection):
            group_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
            place = f"{find_str(obj, 'metadata', 'namespace')}/{find_str(obj, 'metadata', 'name')}".removeprefix("/")
            found[f"{group_kind} {place}"] = obj
    return found


def state_of(backend: Backend) -> State:
    """Return the objects that a release or a user created, in comparable form."""
    objects = {name: obj for name, obj in everything(backend).items() if not _is_beside_the_point(obj)}
    uids = {find_str(obj, "metadata", "uid"): name for name, obj in objects.items()}
    return {name: _comparable(obj, uids) for name, obj in objects.items()}


def without_marks(state: Mapping[str, JsonObject], marks: tuple[tuple[tuple[str, ...], str], ...] = OUR_MARKS) -> State:
    """Return the state without the marks that only our engine puts on objects."""
    result: State = {}
    for name, obj in state.items():
        copied = obj
        for path, key in marks:
            copied = _without(copied, (*path, key))
        result[name] = copied
    return result


def marked(state: Mapping[str, JsonObject]) -> frozenset[str]:
    """Return the names of the objects that have all marks of our engine (`OUR_MARKS`)."""
    return frozenset(name for name, obj in state.items() if all(find(obj, *path, key) for path, key in OUR_MARKS))


def difference(ours: Mapping[str, JsonObject], theirs: Mapping[str, JsonObject]) -> list[str]:
    """Return a line for each object that only one side has, and for each field that differs."""
    said = [f"only ours: {name}" for name in sorted(ours.keys() - theirs.keys())]
    said += [f"only theirs: {name}" for name in sorted(theirs.keys() - ours.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        said += [f"{name}: {line}" for line in _compared(ours[name], theirs[name], "")]
    return said


async def wait_settled(backend: Backend) -> None:
    """Wait until no object is being deleted any more. After five minutes, fail with the names of these objects."""
    changed = trio.Event()

    def notice(_: Change) -> None:
        changed.set()

    backend.observe(notice)
    with trio.move_on_after(PATIENCE_S):
        while _going(backend):
            await changed.wait()
            changed = trio.Event()
    assert _going(backend) == [], "still being deleted"


def _going(backend: Backend) -> list[str]:
    return [name for name, obj in everything(backend).items() if find_str(obj, "metadata", "deletionTimestamp")]


def records_of(backend: Backend, release: str) -> list[JsonObject]:
    """Return the Secrets with a release's records, the oldest first."""
    found = [
        obj
        for name, obj in everything(backend).items()
        if name.startswith("Secret ") and find_str(obj, "type") == "helm.sh/release.v1"
    ]
    mine = [obj for obj in found if find_str(obj, "metadata", "labels", "name") == release]
    return sorted(mine, key=lambda obj: int(find_str(obj, "metadata", "labels", "version")))


def _is_beside_the_point(obj: JsonObject) -> bool:
    managers = {find_str(entry, "manager") for entry in find_list(obj, "metadata", "managedFields")}
    kind, name = find_str(obj, "kind"), find_str(obj, "metadata", "name")
    return (
        kind in _SKIPPED_KINDS
        or (kind, name) in _FURNITURE
        or find_str(obj, "type").startswith(("helm.sh/", "wharfinger.dev/"))
        or bool(find_list(obj, "metadata", "ownerReferences"))
        or managers == {"kube-controller-manager"}
        or (kind == "APIService" and bool(find_str(obj, "metadata", "labels", _AUTOMATIC)))
    )


def comparable(obj: JsonObject) -> JsonObject:
    """Return an object in the form of :func:`state_of`, except that it retains references to UIDs."""
    return _comparable(obj, {})


def _comparable(obj: JsonObject, uids: Mapping[str, str]) -> JsonObject:
    for path in (*_PASSING, *_GIVEN_OUT.get(find_str(obj, "kind"), ())):
        obj = _without(obj, path)
    text = _ALLOCATED.sub("0", json.dumps(obj))
    for uid, name in uids.items():
        if uid:
            text = text.replace(uid, f"uid of {name}")
    value: JsonValue = json.loads(text)
    return as_object(value, "object")


def _without(obj: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """Return a copy without the field at a path, and without maps that are then empty."""
    name, rest = path[0], path[1:]
    if name not in obj:
        return obj
    others = {key: value for key, value in obj.items() if key != name}
    if not rest:
        return others
    inner = _without(find_object(obj, name), rest)
    return {**others, name: inner} if inner else others


def _compared(ours: JsonValue, theirs: JsonValue, path: str) -> list[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        said: list[str] = []
        for key in sorted(ours.keys() | theirs.keys()):
            at = f"{path}.{key}"
            if key not in theirs:
                said.append(f"{at} only ours: {_shown(ours[key])}")
            elif key not in ours:
                said.append(f"{at} only theirs: {_shown(theirs[key])}")
            else:
                said += _compared(ours[key], theirs[key], at)
        return said
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [line for at, (one, other) in pairs for line in _compared(one, other, f"{path}[{at}]")]
    return [] if ours == theirs else [f"{path}: ours {_shown(ours)}, theirs {_shown(theirs)}"]


def _shown(value: JsonValue) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


Predicate: TypeAlias = Callable[[str, JsonObject], bool]


def chosen(state: Mapping[str, JsonObject], predicate: Predicate) -> State:
    """Return the objects of a state for which ``predicate`` is true."""
    return {name: obj for name, obj in state.items() if predicate(name, obj)}


def managers_of(backend: Backend) -> State:
    """Return the managers of the objects in :func:`state_of` with their fields, without versions and times."""
    found: State = {}
    for name, obj in everything(backend).items():
        if _is_beside_the_point(obj):
            continue
        entries: JsonObject = {}
        for entry in find_list(obj, "metadata", "managedFields"):
            words = [find_str(entry, part) for part in ("manager", "operation", "subresource")]
            entries[" ".join(words).strip()] = find(entry, "fieldsV1")
        found[name] = entries
    return found


def without(state: State, names: set[str]) -> State:
    """Return a state without the objects of these names."""
    return chosen(state, lambda name, _: name not in names)


def names_of(objects: Iterable[JsonObject], namespace: str = "shop") -> set[str]:
    """Return the names that objects may have in a state. An object without a namespace gets two names: one with the release's
    namespace, and one without a namespace."""
    found: set[str] = set()
    for obj in flattened(objects):
        group, _, _ = find_str(obj, "apiVersion").rpartition("/")
        kind, name = find_str(obj, "kind"), find_str(obj, "metadata", "name")
        group_kind = f"{kind}.{group}" if group else kind
        place = find_str(obj, "metadata", "namespace") or namespace
        found |= {f"{group_kind} {name}", f"{group_kind} {place}/{name}"}
    return found


def is_protected(obj: JsonObject) -> bool:
    """Return whether an object is retained unless its deletion is requested."""
    group, _, _ = find_str(obj, "apiVersion").rpartition("/")
    kind = find_str(obj, "kind")
    return (f"{kind}.{group}" if group else kind) in PROTECTED
