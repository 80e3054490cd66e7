"""A hook's configuration as a readable document, with its defaults filled in. Pure."""

from datetime import timedelta

from wharfinger.formats.duration import format_duration
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import (
    AdmissionBinding,
    ConversionBinding,
    HookConfig,
    HookPool,
    KubernetesBinding,
    ScheduleBinding,
    WatchVerb,
)
from wharfinger.hooks.config.webhooks import CONVERSION, MUTATING, VALIDATING


def config_document(config: HookConfig) -> JsonObject:
    """Return the configuration in the form of the document that a hook prints, but with selectors in short form.

    Selectors by name are lists of names, and label and field selectors are text. Fields without a value are left out.
    """
    document: JsonObject = {
        "configVersion": config.version,
        "onStartup": config.on_startup,
        "beforeHelm": config.before_helm,
        "afterHelm": config.after_helm,
        "beforeDeleteHelm": config.before_delete_helm,
        "afterDeleteHelm": config.after_delete_helm,
        "beforeAll": config.before_all,
        "afterAll": config.after_all,
        "kubernetes": [_kubernetes(binding) for binding in config.kubernetes],
        "schedule": [_schedule(binding) for binding in config.schedules],
        VALIDATING: [_admission(binding) for binding in config.validating],
        MUTATING: [_admission(binding) for binding in config.mutating],
        CONVERSION: [_conversion(binding) for binding in config.conversions],
    }
    if config.min_interval is not None:
        interval = format_duration(config.min_interval)
        document["settings"] = {"executionMinInterval": interval, "executionBurst": config.burst}
    if config.pool is not HookPool.WARM:
        document["pool"] = config.pool.value
    if config.worker_pool:
        document["workerPool"] = config.worker_pool
    return _without_blanks(document)


def _kubernetes(binding: KubernetesBinding) -> JsonObject:
    namespaces: JsonObject = {}
    if binding.namespaces is not None:
        namespaces = {"names": _listed(binding.namespaces.names), "labelSelector": binding.namespaces.labels}
    return _without_blanks(
        {
            "name": binding.name,
            "kind": binding.kind,
            "apiVersion": binding.api_version,
            "names": _listed(binding.names),
            "labelSelector": binding.label_selector,
            "fieldSelector": binding.field_selector,
            "namespaces": _without_blanks(namespaces),
            "jqFilter": binding.jq_filter,
            "executeHookOnSynchronization": binding.on_synchronization,
            "waitForSynchronization": binding.wait_for_synchronization,
            "keepFullObjectsInMemory": binding.keep_full_objects,
            "resynchronizationPeriod": _period(binding.resynchronization_s),
            **_common(binding),
        }
    ) | {"executeHookOnEvent": [verb.value for verb in WatchVerb if verb in binding.verbs]}


def _schedule(binding: ScheduleBinding) -> JsonObject:
    return _without_blanks({"name": binding.name, "crontab": binding.crontab, **_common(binding)})


def _admission(binding: AdmissionBinding) -> JsonObject:
    rules: list[JsonValue] = [
        {
            "apiGroups": list(rule.api_groups),
            "apiVersions": list(rule.api_versions),
            "resources": list(rule.resources),
            "operations": list(rule.operations),
            "scope": rule.scope,
        }
        for rule in binding.rules
    ]
    conditions: list[JsonValue] = [
        {"name": name, "expression": expression} for name, expression in binding.match_conditions
    ]
    return _without_blanks(
        {
            "name": binding.name,
            "rules": rules,
            "labelSelector": dict(binding.object_selector),
            "namespace": _without_blanks({"labelSelector": dict(binding.namespace_selector)}),
            "matchConditions": conditions,
            "failurePolicy": binding.failure_policy,
            "sideEffects": binding.side_effects,
            "timeoutSeconds": binding.timeout_s,
            "group": binding.group,
            "includeSnapshotsFrom": list(binding.include_snapshots_from),
        }
    )


def _conversion(binding: ConversionBinding) -> JsonObject:
    pairs: list[JsonValue] = [{"fromVersion": old, "toVersion": new} for old, new in binding.conversions]
    return _without_blanks(
        {
            "name": binding.name,
            "crdName": binding.crd_name,
            "conversions": pairs,
            "group": binding.group,
            "includeSnapshotsFrom": list(binding.include_snapshots_from),
        }
    )


def _period(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(timedelta(seconds=seconds))


def _common(binding: KubernetesBinding | ScheduleBinding) -> JsonObject:
    return {
        "allowFailure": binding.allow_failure,
        "queue": binding.queue,
        "group": binding.group,
        "includeSnapshotsFrom": list(binding.include_snapshots_from),
    }


def _listed(names: tuple[str, ...] | None) -> JsonValue:
    return list(names or ())


def _without_blanks(document: JsonObject) -> JsonObject:
    """Return the document without the entries whose value is null, or an empty text, list or mapping."""
    return {key: value for key, value in document.items() if value is not None and value not in ("", [], {})}
