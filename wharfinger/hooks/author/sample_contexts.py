"""Sample binding contexts, one for each event that can run a hook. Authors can try the hook with them.

The samples are built by the code that builds real contexts (:mod:`~wharfinger.hooks.watching.contexts`). They describe one
invented object, whose kind, name and namespace come from the binding; the author fills in the rest. The contexts contain the
filter's result for this bare object. If the filter fails on this object (for example, because it expects a status), the result is
null. The sample reviews for webhooks are made in this module, because real reviews come from an API server.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, canonical_json, to_json
from wharfinger.hooks.config.bindings import (
    AdmissionBinding,
    ConversionBinding,
    HookConfig,
    KubernetesBinding,
    WatchVerb,
)
from wharfinger.hooks.watching import contexts
from wharfinger.hooks.watching.context_file import Context, ContextValue
from wharfinger.hooks.watching.filters import FilterError, Filters
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent
from wharfinger.kube.resource import ObjectKey, ResourceType, split_api_version

NAME: Final = "sample"
NAMESPACE: Final = "default"
UID: Final = "00000000-0000-0000-0000-000000000000"
_NULL: Final = PackedJson(b"null")


async def sample_contexts(config: HookConfig, filters: Filters) -> tuple[JsonObject, ...]:
    """Return a context for each event that can run a hook with this configuration, in the usual order of the runs.

    Raises FilterError, transient, if filters cannot be run now.
    """
    items = {id(binding): await _item(binding, filters) for binding in config.kubernetes}
    snapshots: dict[str, Sequence[Item]] = {}
    for binding in config.kubernetes:
        snapshots.setdefault(binding.name, (items[id(binding)],))
    made: list[Context] = [] if config.on_startup is None else [contexts.on_startup()]
    for binding in config.kubernetes:
        made += _of_kubernetes(binding, items[id(binding)], snapshots)
    made += [contexts.schedule(binding, snapshots) for binding in config.schedules]
    orders = {
        "beforeAll": config.before_all,
        "beforeHelm": config.before_helm,
        "afterHelm": config.after_helm,
        "afterAll": config.after_all,
        "beforeDeleteHelm": config.before_delete_helm,
        "afterDeleteHelm": config.after_delete_helm,
    }
    made += [contexts.helm_binding(name, snapshots) for name, order in orders.items() if order is not None]
    made += [contexts.validating(binding, _admission(binding), snapshots) for binding in config.validating]
    made += [contexts.mutating(binding, _admission(binding), snapshots) for binding in config.mutating]
    for conversion in config.conversions:
        made += [
            contexts.conversion(conversion, versions, _conversion(conversion, *versions), snapshots)
            for versions in conversion.conversions
        ]
    return tuple(as_object(_unpacked(context), "context") for context in made)


def _of_kubernetes(binding: KubernetesBinding, item: Item, snapshots: contexts.Snapshots) -> list[Context]:
    """Return the contexts of Synchronization and of each event that runs the hook.

    If the binding is in a group, return at most one context, because all contexts of a group are equal.
    """
    made = []
    if binding.on_synchronization and not binding.legacy:
        made.append(contexts.synchronization(binding, (item,), snapshots))
    made += [
        contexts.event(binding, MonitorEvent(verb, _key(binding), item), snapshots)
        for verb in WatchVerb
        if verb in binding.verbs
    ]
    return made[:1] if binding.group else made


async def _item(binding: KubernetesBinding, filters: Filters) -> Item:
    obj = canonical_json(_object(binding))
    result = None
    if binding.jq_filter:
        try:
            result = PackedJson(await filters.apply_text(binding.jq_filter, obj))
        except FilterError as error:
            if error.transient:
                raise
            result = _NULL
    return Item(PackedJson(obj) if binding.keep_full_objects else None, result)


def _key(binding: KubernetesBinding) -> ObjectKey:
    group, version = split_api_version(binding.api_version or "v1")
    resource = ResourceType(group, version, binding.kind, binding.kind.lower(), namespaced=True)
    namespaces = None if binding.namespaces is None else binding.namespaces.names
    return ObjectKey(resource, _first(namespaces, NAMESPACE), _first(binding.names, NAME))


def _object(binding: KubernetesBinding) -> JsonObject:
    key = _key(binding)
    labels: JsonObject = {}
    for term in binding.label_selector.split(","):
        name, equals, value = term.partition("=")
        if equals and not name.endswith("!") and " " not in name:
            labels[name] = value.removeprefix("=")
    metadata: JsonObject = {"name": key.name, "namespace": key.namespace, "uid": UID}
    return {
        "apiVersion": binding.api_version or "v1",
        "kind": binding.kind,
        "metadata": {**metadata, "labels": labels} if labels else metadata,
    }


def _first(names: tuple[str, ...] | None, default: str) -> str:
    return names[0] if names else default


def _admission(binding: AdmissionBinding) -> JsonObject:
    rule = binding.rules[0] if binding.rules else None
    group, version, resource, operation = (
        (rule.api_groups[0], rule.api_versions[0], rule.resources[0], rule.operations[0])
        if rule
        else ("", "v1", "configmaps", "CREATE")
    )
    metadata: JsonObject = {"name": NAME, "namespace": NAMESPACE}
    obj: JsonObject = {"apiVersion": f"{group}/{version}" if group else version, "metadata": metadata}
    operation = "CREATE" if operation == "*" else operation
    request: JsonObject = {
        "uid": UID,
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": operation,
        "name": NAME,
        "namespace": NAMESPACE,
        "object": None if operation == "DELETE" else to_json(obj),
        "oldObject": None if operation in ("CREATE", "CONNECT") else to_json(obj),
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _conversion(binding: ConversionBinding, old: str, new: str) -> JsonObject:
    group = binding.crd_name.partition(".")[2]
    source, target = (version if "/" in version else f"{group}/{version}" for version in (old, new))
    obj: JsonObject = {"apiVersion": source, "metadata": {"name": NAME, "namespace": NAMESPACE}}
    request: JsonObject = {"uid": UID, "desiredAPIVersion": target, "objects": [obj]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def _unpacked(value: ContextValue) -> JsonValue:
    if isinstance(value, PackedJson):
        return value.value()
    if isinstance(value, Mapping):
        return {key: _unpacked(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_unpacked(inner) for inner in value]
    return value
