"""The controller of the Flux Operator's ResourceSets: templates of objects, executed for each input of the set.

The inputs come from the set itself, and from the ResourceSetInputProviders that it names or selects. A provider of type Static
has its inputs in its spec. All other providers get their inputs from a service; here they are read from the provider's
``status.exportedInputs``, if the file has it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_object, find_str
from wharfinger.offline.building.metadata import with_common_metadata
from wharfinger.offline.building.resource_inputs import Provider, Strategy, combined, input_id
from wharfinger.offline.building.resource_templates import (
    DISABLED,
    RECONCILE,
    Template,
    TemplateEngine,
    TemplateError,
    objects_of,
)
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, MissingError, Need, ReconcileError
from wharfinger.offline.controllers.readiness import Readiness
from wharfinger.offline.controllers.references import secret_bytes, with_encoded_data
from wharfinger.offline.controllers.selections import Selections
from wharfinger.offline.store.identity import group_of, is_cluster_scoped, kind_id, object_id, shown
from wharfinger.offline.store.kinds import CONFIG_MAP, CRD, RESOURCE_SET_INPUT_PROVIDER, SECRET
from wharfinger.offline.store.store import Stored
from wharfinger.runtime.fixpoint.model import Id

API_VERSION: Final = "fluxcd.controlplane.io/v1"
COPY_FROM: Final = "fluxcd.controlplane.io/copyFrom"
COMPUTED: Final = ("fluxcd.controlplane.io/convertKubeConfigFrom", "fluxcd.controlplane.io/checksumFrom")
"""Annotations whose effect the operator computes from other objects in the cluster."""
MAX_STEPS: Final = 20
STATIC: Final = "Static"
_FLUX_GROUPS: Final = (".toolkit.fluxcd.io", ".fluxcd.controlplane.io")


@dataclass(slots=True)
class _Work:
    """The run of one ResourceSet: its object, its gate, and its warnings for the report."""

    stored: Stored
    spec: JsonObject
    gate: Gate
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SetTools:
    """The tools that build ResourceSets."""

    templates: TemplateEngine
    selections: Selections
    readiness: Readiness


class ResourceSetController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that builds ResourceSets."""

    def __init__(self, run: RunContext, tools: SetTools) -> None:
        self._run = run
        self._tools = tools

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Build one set. Raises ReconcileError, FormatError, or the errors of the gate."""
        if find_str(stored.object, "metadata", "annotations", RECONCILE) == DISABLED:
            return NodeResult(skipped=f"disabled by its annotation {RECONCILE}")
        work = _Work(stored, find_object(stored.object, "spec"), gate)
        await self._require(work)
        inputs = self._inputs(work)
        steps = _steps(work.spec)
        if not inputs and find_list(work.spec, "inputsFrom"):
            return NodeResult(skipped="its providers have no inputs")
        objects: list[JsonObject] = []
        made: dict[Id, str] = {}
        for name, templates in steps:
            try:
                step = objects_of(await self._tools.templates.execute(templates, inputs))
            except TemplateError as error:
                raise ReconcileError(str(error)) from error
            for obj in step:
                who = object_id(obj)
                if who in made:
                    raise ReconcileError(
                        f"spec.steps: {shown(who)} is made by the steps {made[who]} and {name}; keep it in one of them"
                    )
                made[who] = name
            objects += step
        common = find_object(work.spec, "commonMetadata")
        finished = with_common_metadata(tuple(self._copied(work, each) for each in objects), common)
        return NodeResult(finished, namespace=stored.id.namespace, warnings=tuple(work.warnings))

    async def _require(self, work: _Work) -> None:
        """Check that everything in ``spec.dependsOn`` exists, and is ready if the set asks for it."""
        entries = [
            as_object(each, f"spec.dependsOn[{number}]")
            for number, each in enumerate(find_list(work.spec, "dependsOn"))
        ]
        needs = [_dependency(each, f"spec.dependsOn[{number}]", work.stored) for number, each in enumerate(entries)]
        asked = [each for each in needs if not _is_flux(each.id)]
        soft = [each for each in asked if each.id.kind == CRD and self._run.options.allow_missing_crds]
        work.gate.require(each for each in asked if each not in soft)
        for need in soft:
            try:
                work.gate.require([need])
            except MissingError:
                work.warnings.append(f"{need.field}: {shown(need.id)} is not in the tree; it is assumed to exist")
        for need, entry in zip(needs, entries, strict=True):
            expression = find_str(entry, "readyExpr")
            found = self._run.store.get(need.id)
            if expression and found is not None:
                field = f"{need.field}.readyExpr"
                work.warnings += await self._tools.readiness.of_object(_readable(found, work.stored), expression, field)

    def _inputs(self, work: _Work) -> tuple[JsonObject, ...]:
        stored, spec = work.stored, work.spec
        own = tuple(as_object(each, f"spec.inputs[{number}]") for number, each in enumerate(find_list(spec, "inputs")))
        providers = [Provider(API_VERSION, "ResourceSet", stored.id.namespace, stored.id.name, own)]
        chosen: dict[Id, tuple[str, Stored]] = {}
        for where, each in self._providers(work):
            chosen.setdefault(each.id, (where, each))
        providers += [_read_provider(each, where) for _, (where, each) in sorted(chosen.items())]
        name = find_str(spec, "inputStrategy", "name", default=Strategy.FLATTEN)
        if name not in set(Strategy):
            raise ReconcileError(f"spec.inputStrategy.name: expected Flatten or Permute, found {name!r}")
        include_empty = find(spec, "inputStrategy", "includeEmptyProviders") is True
        return combined(providers, Strategy(name), include_empty=include_empty)

    def _providers(self, work: _Work) -> Iterator[tuple[str, Stored]]:
        """Yield the providers of ``spec.inputsFrom``, each with the field that names it."""
        namespace = work.stored.id.namespace
        entries = [
            (f"spec.inputsFrom[{number}]", as_object(each, f"spec.inputsFrom[{number}]"))
            for number, each in enumerate(find_list(work.spec, "inputsFrom"))
        ]
        named = [(where, find_str(entry, "name")) for where, entry in entries if find_str(entry, "name")]
        needs = [Need(Id(RESOURCE_SET_INPUT_PROVIDER, namespace, name), where) for where, name in named]
        work.gate.require(needs)
        for need in needs:
            if (found := self._run.store.get(need.id)) is not None:
                yield need.field, found
        for where, entry in entries:
            if find_str(entry, "name"):
                continue
            selector = find(entry, "selector")
            if not isinstance(selector, dict):
                raise ReconcileError(f"{where}: needs a name or a selector")
            who, selected = self._tools.selections.read(namespace, selector, f"{where}.selector")
            work.gate.reads.add(who)
            work.gate.selected |= {each.id for each in selected}
            yield from ((where, each) for each in selected)

    def _copied(self, work: _Work, obj: JsonObject) -> JsonObject:
        """Return an object. If it is a ConfigMap or Secret with the annotation COPY_FROM, it gets the data of the object that
        the annotation names.
        """
        annotations = find_object(obj, "metadata", "annotations")
        kind = find_str(obj, "kind")
        for each in COMPUTED:
            if each in annotations:
                work.warnings.append(
                    f"{shown(object_id(obj))}: the effect of its annotation {each} is computed in a cluster "
                    f"only, so it is missing"
                )
        source = find_str(annotations, COPY_FROM)
        if not source or kind not in {CONFIG_MAP, SECRET} or find_str(obj, "apiVersion") != "v1":
            return obj
        namespace, slash, name = source.partition("/")
        if not slash or not namespace or not name:
            raise ReconcileError(f"annotation {COPY_FROM}: expected namespace/name, found {source!r}")
        who = Id(kind, namespace, name)
        try:
            work.gate.require([Need(who, f"annotation {COPY_FROM} of {shown(object_id(obj))}")])
        except MissingError:
            if kind == SECRET and self._run.options.allow_missing_secrets:
                return obj
            raise
        found = self._run.store.get(who)
        if found is None:
            raise AssertionError(f"{shown(who)}: not in the store, although the gate required it")
        if kind == SECRET:
            copied = with_encoded_data(obj, secret_bytes(found))
            return {**copied, "type": find_str(found.object, "type", default="Opaque")}
        return {**obj, **{key: found.object[key] for key in ("data", "binaryData") if key in found.object}}


def _readable(found: Stored, reader: Stored) -> Stored:
    """Return a dependency without data that an expression must not read, namely the data of a Secret in another namespace."""
    if found.id.kind != SECRET or found.id.namespace == reader.id.namespace:
        return found
    return replace(found, object={key: found.object[key] for key in found.object if key not in {"data", "stringData"}})


def _dependency(entry: JsonObject, where: str, stored: Stored) -> Need:
    group, kind, name = group_of(find_str(entry, "apiVersion")), find_str(entry, "kind"), find_str(entry, "name")
    if not kind or not name or not find_str(entry, "apiVersion"):
        raise ReconcileError(f"{where}: needs apiVersion, kind and name")
    namespace = "" if is_cluster_scoped(group, kind) else find_str(entry, "namespace", default=stored.id.namespace)
    return Need(Id(kind_id(group, kind), namespace, name), where)


def _is_flux(who: Id) -> bool:
    """Return whether an id is that of a custom resource definition of Flux, which exists in every cluster with ResourceSets."""
    return who.kind == CRD and who.name.endswith(_FLUX_GROUPS)


def _read_provider(stored: Stored, where: str) -> Provider:
    """Return a provider with its inputs. Raises ReconcileError if the file of the provider does not contain the inputs."""
    namespace, name = stored.id.namespace, stored.id.name
    exported = find(stored.object, "status", "exportedInputs")
    kind = find_str(stored.object, "spec", "type")
    try:
        if kind == STATIC:
            # In a cluster the ID is computed from the UID, which is unknown here. The operator's own tool uses the name, too.
            values = {**find_object(stored.object, "spec", "defaultValues"), "id": input_id(name)}
            inputs: tuple[JsonObject, ...] = (values,)
        elif isinstance(exported, list):
            inputs = tuple(as_object(each, "status.exportedInputs") for each in exported)
        else:
            raise ReconcileError(
                f"{where}: {shown(stored.id)} gets its inputs from a service (type {kind or 'none'}), which is not queried here; "
                "write the inputs into its status.exportedInputs, or use the type Static"
            )
    except FormatError as error:
        raise ReconcileError(f"{shown(stored.id)}: {error}", stored.place) from error
    return Provider(API_VERSION, "ResourceSetInputProvider", namespace, name, inputs)


def _steps(spec: JsonObject) -> list[tuple[str, tuple[Template, ...]]]:
    """Return the name and the templates of each step. The templates of a set without steps are returned as a single step."""
    steps = find_list(spec, "steps")
    if not steps:
        return [("", tuple(_templates(spec, "spec")))]
    if find_list(spec, "resources") or find_str(spec, "resourcesTemplate"):
        raise ReconcileError("spec.steps: not allowed beside resources and resourcesTemplate; use one of them")
    if len(steps) > MAX_STEPS:
        raise ReconcileError(f"spec.steps: {len(steps)} steps; at most {MAX_STEPS} are allowed")
    read: dict[str, tuple[Template, ...]] = {}
    for number, value in enumerate(steps):
        where = f"spec.steps[{number}]"
        step = as_object(value, where)
        name, templates = find_str(step, "name"), tuple(_templates(step, where))
        if not name or name in read:
            raise ReconcileError(f"{where}.name: expected a name that no other step has, found {name!r}")
        if not templates:
            raise ReconcileError(f"{where}: needs resources or resourcesTemplate")
        read[name] = templates
    return [*read.items()]


def _templates(spec: JsonObject, where: str) -> Iterator[Template]:
    for number, each in enumerate(find_list(spec, "resources")):
        name = f"{where}.resources[{number}]"
        yield Template(name, as_object(each, name))
    if text := find_str(spec, "resourcesTemplate"):
        yield Template(f"{where}.resourcesTemplate", text)
