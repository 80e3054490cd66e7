"""A user's replicas and resources of workloads, which replace those of a rendered chart (``spec.resourceRequests``).

A chart seldom has a setting for every number. Overrides are written into the rendered objects before they are applied and
before the release record is written, so that the record matches the cluster::

    - kind: Deployment            # StatefulSet, DaemonSet, Job, CronJob
      name: web
      replicas: 3                 # of a Deployment or a StatefulSet
      containers:                 # init containers, too
        - name: app
          resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}

Each named number and quantity is replaced, or added if it is missing; nothing else in the object changes. An override without a
matching workload is not an error, because with other settings a chart may render other workloads; the override is reported by
name. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, checksum, find, type_name
from wharfinger.formats.quantity import parse_quantity
from wharfinger.kube.names import is_label, is_qualified_name, is_subdomain
from wharfinger.packages.files.strict_fields import at, closed_object, items, number, text
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.packages.rendering.rewriting import rewritten

FIELD: Final = "spec.resourceRequests"
MAX_WORKLOADS: Final = 100
MAX_CONTAINERS: Final = 50
MAX_QUANTITIES: Final = 20
MAX_REPLICAS: Final = 10_000

_GROUPS: Final[Mapping[str, str]] = MappingProxyType(
    {"Deployment": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Job": "batch", "CronJob": "batch"}
)
_SCALED: Final = ("Deployment", "StatefulSet")
_POD_SPEC: Final = ("spec", "template", "spec")
_CRON_POD_SPEC: Final = ("spec", "jobTemplate", "spec", "template", "spec")
_CONTAINER_LISTS: Final = ("containers", "initContainers")
_AMOUNTS: Final = ("requests", "limits")

_MAX_QUANTITY: Final = 80
"""The largest number of characters of a quantity."""


@dataclass(frozen=True, slots=True)
class ContainerOverride:
    """The quantities to replace in one container.

    ``resources`` has ``requests`` and ``limits``. Each of them maps names of resources, such as ``cpu``, to quantities.
    """

    name: str
    resources: JsonObject


@dataclass(frozen=True, slots=True)
class WorkloadOverride:
    """The overrides of one workload; if ``replicas`` is None, the chart's number is kept."""

    kind: str
    name: str
    replicas: int | None = None
    containers: tuple[ContainerOverride, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def document(self) -> JsonObject:
        """Return the override in the form of an entry of ``spec.resourceRequests``."""
        written: JsonObject = {"kind": self.kind, "name": self.name}
        if self.replicas is not None:
            written["replicas"] = self.replicas
        if self.containers:
            written["containers"] = [{"name": each.name, "resources": each.resources} for each in self.containers]
        return written


def overrides_checksum(overrides: Sequence[WorkloadOverride]) -> str:
    """Return a checksum that does not depend on the order of workloads and containers; "" without overrides."""
    if not overrides:
        return ""
    documents: list[JsonValue] = []
    for one in sorted(overrides, key=str):
        containers = tuple(sorted(one.containers, key=lambda each: each.name))
        documents.append(WorkloadOverride(one.kind, one.name, one.replicas, containers).document)
    return checksum(documents)


def read_overrides(obj: JsonValue, where: str = FIELD) -> tuple[WorkloadOverride, ...]:
    """Read ``spec.resourceRequests``; null and an empty list give (). Raises ShapeError naming the field and the expected
    value.
    """
    entries = [] if obj is None else obj
    if not isinstance(entries, list):
        raise ShapeError(f"{where}: expected a list, found {type_name(entries)}")
    if len(entries) > MAX_WORKLOADS:
        raise ShapeError(f"{where}: expected at most {MAX_WORKLOADS} workloads, found {len(entries)}")
    found: dict[tuple[str, str], WorkloadOverride] = {}
    for index, entry in enumerate(entries):
        one = _read_workload(entry, at(where, index))
        if (one.kind, one.name) in found:
            raise ShapeError(f"{at(where, index)}: {one} is listed twice; put both into one entry")
        found[one.kind, one.name] = one
    return tuple(found.values())


def override_rendered(rendered: Rendered, overrides: Sequence[WorkloadOverride]) -> tuple[Rendered, tuple[str, ...]]:
    """Apply the overrides to a rendered chart; return it with the names of workloads and containers that were not found.

    The names have the forms ``Deployment web`` and ``Job init: container app``. A workload is found by kind and name, in every
    namespace. Blocking. Raises RenderError if the manifest is invalid.
    """
    if not overrides:
        return rendered, ()
    work = _Work(overrides)
    return rewritten(rendered, work.applied), work.unmatched()


@dataclass(slots=True)
class _Work:
    """One pass that applies overrides to objects, and records the workloads and containers that it found."""

    overrides: Sequence[WorkloadOverride]
    seen: set[tuple[str, str, str]] = field(default_factory=set)
    by_key: dict[tuple[str, str], WorkloadOverride] = field(init=False)

    def __post_init__(self) -> None:
        self.by_key = {(each.kind, each.name): each for each in self.overrides}

    def applied(self, obj: JsonObject) -> JsonObject:
        kind, name = obj.get("kind"), find(obj, "metadata", "name")
        if not isinstance(kind, str) or not isinstance(name, str) or not _is_workload(obj, kind):
            return obj
        wanted = self.by_key.get((kind, name))
        if wanted is None:
            return obj
        self.seen.add((kind, name, ""))
        if wanted.replicas is not None and isinstance(find(obj, "spec"), dict):
            replicas = wanted.replicas
            obj = _replaced(obj, ("spec",), lambda spec: {**spec, "replicas": replicas})
        path = _CRON_POD_SPEC if kind == "CronJob" else _POD_SPEC
        return _replaced(obj, path, lambda pod: self._with_resources(pod, wanted))

    def _with_resources(self, pod: JsonObject, wanted: WorkloadOverride) -> JsonObject:
        by_name = {each.name: each for each in wanted.containers}
        for key in _CONTAINER_LISTS:
            before = pod.get(key)
            if not isinstance(before, list):
                continue
            after: list[JsonValue] = [self._container(each, wanted, by_name) for each in before]
            if any(new is not old for new, old in zip(after, before, strict=True)):
                pod = {**pod, key: after}
        return pod

    def _container(
        self, container: JsonValue, wanted: WorkloadOverride, by_name: Mapping[str, ContainerOverride]
    ) -> JsonValue:
        name = find(container, "name")
        said = by_name.get(name) if isinstance(name, str) else None
        if said is None or not isinstance(container, dict):
            return container
        self.seen.add((wanted.kind, wanted.name, said.name))
        before = container.get("resources")
        resources: JsonObject = dict(before) if isinstance(before, dict) else {}
        for key, amounts in said.resources.items():
            old = resources.get(key)
            resources[key] = {**(old if isinstance(old, dict) else {}), **as_object(amounts, key)}
        return {**container, "resources": resources}

    def unmatched(self) -> tuple[str, ...]:
        missing: list[str] = []
        for each in self.overrides:
            if (each.kind, each.name, "") not in self.seen:
                missing.append(str(each))
                continue
            missing += [
                f"{each}: container {container.name}"
                for container in each.containers
                if (each.kind, each.name, container.name) not in self.seen
            ]
        return tuple(missing)


def _is_workload(obj: JsonObject, kind: str) -> bool:
    """Return whether an object has a built-in kind, and is not a custom resource with a kind of the same name."""
    version = obj.get("apiVersion")
    return isinstance(version, str) and kind in _GROUPS and version.partition("/")[0] == _GROUPS[kind]


def _replaced(obj: JsonObject, path: Sequence[str], change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Return the object with the part at ``path`` changed, if that part exists; the same object if nothing changes."""
    if not path:
        return change(obj)
    inner = obj.get(path[0])
    if not isinstance(inner, dict):
        return obj
    after = _replaced(inner, path[1:], change)
    return obj if after is inner else {**obj, path[0]: after}


def _read_workload(value: JsonValue, where: str) -> WorkloadOverride:
    entry = closed_object(as_object(value, where), where, ("kind", "name", "replicas", "containers"))
    kind = text(entry, "kind", where)
    if kind not in _GROUPS:
        raise ShapeError(f"{at(where, 'kind')}: {kind[:60]!r} is not one of {', '.join(_GROUPS)}")
    name = _name(entry, where, is_subdomain)
    replicas = number(entry, "replicas", where, most=MAX_REPLICAS)
    if replicas is not None and kind not in _SCALED:
        raise ShapeError(
            f"{at(where, 'replicas')}: a {kind} has no replicas; only {' and '.join(_SCALED)} have replicas"
        )
    containers = items(entry, "containers", where)
    if len(containers) > MAX_CONTAINERS:
        raise ShapeError(
            f"{at(where, 'containers')}: expected at most {MAX_CONTAINERS} entries, found {len(containers)}"
        )
    if replicas is None and not containers:
        raise ShapeError(
            f"{where}: {kind} {name}: neither replicas nor containers; set one of them, or remove the workload"
        )
    found: dict[str, ContainerOverride] = {}
    for index, each in enumerate(containers):
        one = _read_container(each, at(at(where, "containers"), index))
        if one.name in found:
            raise ShapeError(f"{at(at(where, 'containers'), index)}: container {one.name} is listed twice; keep one")
        found[one.name] = one
    return WorkloadOverride(kind, name, replicas, tuple(found.values()))


def _read_container(value: JsonValue, where: str) -> ContainerOverride:
    entry = closed_object(as_object(value, where), where, ("name", "resources"))
    name = _name(entry, where, is_label)
    path = at(where, "resources")
    said = closed_object(entry.get("resources"), path, _AMOUNTS)
    resources: JsonObject = {}
    for key in _AMOUNTS:
        amounts = _quantities(said.get(key), at(path, key))
        if amounts:
            resources[key] = amounts
    if not resources:
        raise ShapeError(f"{path}: neither requests nor limits; set one of them, or remove the container")
    return ContainerOverride(name, resources)


def _quantities(value: JsonValue, where: str) -> JsonObject:
    if value is None:
        return {}
    amounts = as_object(value, where)
    if len(amounts) > MAX_QUANTITIES:
        raise ShapeError(f"{where}: expected at most {MAX_QUANTITIES} quantities, found {len(amounts)}")
    found: JsonObject = {}
    for name, amount in amounts.items():
        if not is_qualified_name(name):
            raise ShapeError(f"{at(where, name)}: not the name of a resource, such as cpu or example.com/device")
        # bool is an int in Python, but YAML's `yes` is no quantity.
        written = str(amount) if isinstance(amount, str | int | float) and not isinstance(amount, bool) else ""
        parsed = parse_quantity(written) if len(written) <= _MAX_QUANTITY else None
        if parsed is None or parsed < 0:
            raise ShapeError(f"{at(where, name)}: expected a quantity such as 100m, 0.5 or 1Gi, found {_shown(amount)}")
        found[name] = written
    return found


def _name(entry: JsonObject, where: str, is_name: Callable[[str], bool]) -> str:
    name = text(entry, "name", where)
    if not name:
        raise ShapeError(f"{at(where, 'name')}: required")
    if not is_name(name):
        raise ShapeError(f"{at(where, 'name')}: {name[:60]!r} is not a valid name: lower-case letters, digits and '-'")
    return name


def _shown(value: JsonValue) -> str:
    return repr(value[:40]) if isinstance(value, str) else type_name(value)
