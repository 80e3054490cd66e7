"""The configuration of a hook: the document that it prints when it is run with ``--config`` (spec hook-protocol §1.4).

The document is foreign data in one of two versions. It is read in three steps, as the contract prescribes. The version selects
the schema. The schema finds all wrong shapes. If there are none, the values are converted and checked. All problems that a step
finds are reported in one HookConfigError, in the words of the contract, because authors may rely on these words.

The result has one form for both versions. Version 0 is rewritten as version 1 before it is converted. A hook of version 0 still
behaves differently in three ways: it is not run on Synchronization, its contexts have another form, and its contexts are never
combined into one run. In the result for such a hook, ``version`` is "v0", and ``legacy`` of its bindings is true. An executable
with several hooks prints one document for all of them; :mod:`~wharfinger.hooks.config.batch_hooks` rewrites the part of each hook
as version 1.
"""

import re
from collections.abc import Callable
from datetime import UTC, timedelta
from functools import partial
from typing import Final

from wharfinger.formats.cron import parse_cron
from wharfinger.formats.duration import DurationError, parse_duration
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str, type_name
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml
from wharfinger.hooks.config.bindings import (
    HookConfig,
    HookPool,
    HookScope,
    KubernetesBinding,
    NamespaceSelector,
    ScheduleBinding,
    WatchVerb,
)
from wharfinger.hooks.config.object_names import need_namespace, need_object_name
from wharfinger.hooks.config.problems import HookConfigError, Problems
from wharfinger.hooks.config.schema import VERSION_0, VERSION_1
from wharfinger.hooks.config.selectors import field_selector, label_selector
from wharfinger.hooks.config.shapes import problems as shape_problems
from wharfinger.hooks.config.shapes import whole
from wharfinger.hooks.config.snapshots import Snapshots
from wharfinger.hooks.config.v0 import as_version_1, coerced
from wharfinger.hooks.config.webhooks import conversion_bindings, mutating_bindings, validating_bindings

MAIN_QUEUE: Final = "main"
MAX_BYTES: Final = 1024 * 1024
MAX_WATCHES: Final = 256
"""The limit on watches of one kubernetes binding, which has one watch for each of its names in each of its namespaces."""
LEAST_RESYNCHRONIZATION: Final = timedelta(seconds=10)
"""The shortest ``resynchronizationPeriod``, except for 0 (never). A shorter period is raised to this one, because each
listing costs the API server as much as the first one.
"""
_LIMITS: Final = YamlLimits(max_bytes=MAX_BYTES, max_nodes=100_000, max_characters=2 * MAX_BYTES)
_API_VERSION: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9]+")
_NEVER: Final = timedelta(0)


def read_hook_config(document: bytes, *, hook: str, scope: HookScope = HookScope.PACKAGE) -> HookConfig:
    """Read the output of ``hook`` for ``--config``: YAML or JSON, of either version. Raises HookConfigError.

    The syntax of ``jqFilter`` is not checked, because only jq can do that.
    """
    try:
        found = read_yaml(document, what="its output for --config", limits=_LIMITS)
    except FormatError as error:
        raise HookConfigError(hook, (str(error),)) from error
    if found is None:
        raise HookConfigError(hook, ("it printed nothing for --config; a hook must print its bindings and exit",))
    if not isinstance(found, dict):
        raise HookConfigError(hook, (f"expected a mapping with at least one binding, found {type_name(found)}",))
    return check_hook_config(found, hook=hook, scope=scope)


def check_hook_config(document: JsonObject, *, hook: str, scope: HookScope) -> HookConfig:
    """Check a parsed document of either version and return its configuration. Raises HookConfigError."""
    problems = Problems(hook)
    version_1 = _checked(document, scope, problems)
    config = _converted(version_1, problems, version="v1" if "configVersion" in document else "v0")
    problems.raise_any()
    return config


def _checked(document: JsonObject, scope: HookScope, problems: Problems) -> JsonObject:
    """Check the version and the shape of a document, and return it in the shape of version 1.

    Raises HookConfigError with all problems that were found.
    """
    version = document.get("configVersion")
    if legacy := "configVersion" not in document:
        document, shape = coerced(document), VERSION_0[scope]
    elif not isinstance(version, str):
        problems.add(f"'configVersion' must be a string, is {type_name(version)}")
        raise problems.error()
    elif version != "v1":
        problems.add(f"'configVersion' value '{version}' is unsupported")
        raise problems.error()
    else:
        shape = VERSION_1[scope]
        if len(document) == 1:
            problems.add("it should have at least 2 properties: it has no binding beside configVersion")
    for problem in shape_problems(document, shape):
        problems.add(problem)
    problems.raise_any()
    return as_version_1(document) if legacy else document


def _converted(document: JsonObject, problems: Problems, *, version: str) -> HookConfig:
    watched = find_list(document, "kubernetes")
    snapshots = Snapshots(watched, problems, default_name="kubernetes")
    legacy = version == "v0"
    min_interval, burst = _settings(document, problems)
    return HookConfig(
        on_startup=whole(document.get("onStartup")),
        before_helm=whole(document.get("beforeHelm")),
        after_helm=whole(document.get("afterHelm")),
        before_delete_helm=whole(document.get("beforeDeleteHelm")),
        after_delete_helm=whole(document.get("afterDeleteHelm")),
        before_all=whole(document.get("beforeAll")),
        after_all=whole(document.get("afterAll")),
        kubernetes=tuple(_kubernetes(item, snapshots, problems, legacy=legacy) for item in watched),
        schedules=tuple(
            _schedule(item, snapshots, problems, legacy=legacy) for item in find_list(document, "schedule")
        ),
        validating=validating_bindings(document, snapshots, problems),
        mutating=mutating_bindings(document, snapshots, problems),
        conversions=conversion_bindings(document, snapshots, problems),
        min_interval=min_interval,
        burst=burst,
        version=version,
        pool=HookPool(find_str(document, "pool") or HookPool.WARM),
        worker_pool=find_str(document, "workerPool"),
        warnings=problems.warnings(),
    )


def _kubernetes(item: JsonValue, snapshots: Snapshots, problems: Problems, *, legacy: bool) -> KubernetesBinding:
    where = "onKubernetesEvent" if legacy else "kubernetes"
    names, queue = _names(item, "nameSelector", problems, where, need_object_name), find_str(item, "queue")
    api_version = find_str(item, "apiVersion")
    if api_version and not _API_VERSION.fullmatch(api_version):
        problems.add(f"{where}.apiVersion is invalid: {api_version!r} is neither a version nor group/version")
    if names and any(find(term, "field") == "metadata.name" for term in _field_terms(item)):
        problems.add(f"{where}: nameSelector and a fieldSelector on metadata.name exclude each other; keep one of them")
    namespaces = _namespaces(item, problems, where)
    if (wanted := len(names or ("",)) * len((namespaces and namespaces.names) or ("",))) > MAX_WATCHES:
        problems.add(
            f"{where}: it needs {wanted} watches, one for each name in each namespace; the limit is {MAX_WATCHES}; select with "
            "labels instead"
        )
    return KubernetesBinding(
        name=_name(item, "kubernetes"),
        kind=find_str(item, "kind"),
        api_version=api_version,
        verbs=_verbs(item),
        on_synchronization=find(item, "executeHookOnSynchronization") is not False,
        wait_for_synchronization=not queue or find(item, "waitForSynchronization") is not False,
        keep_full_objects=find(item, "keepFullObjectsInMemory") is not False,
        jq_filter=find_str(item, "jqFilter"),
        allow_failure=find(item, "allowFailure") is True,
        queue=queue or MAIN_QUEUE,
        group=find_str(item, "group"),
        include_snapshots_from=snapshots.of(item, where),
        names=names,
        label_selector=problems.value_of(
            lambda: label_selector(find_object(item, "labelSelector")), f"{where}.labelSelector", ""
        ),
        field_selector=problems.value_of(
            lambda: field_selector(find_object(item, "fieldSelector")), f"{where}.fieldSelector", ""
        ),
        namespaces=namespaces,
        legacy=legacy,
        resynchronization_s=_resynchronization_s(item, problems, where),
    )


def _resynchronization_s(item: JsonValue, problems: Problems, where: str) -> float | None:
    """Return the seconds between two listings of the watched objects; None for never.

    shell-operator ignores this field, so existing hooks may have any text here. A text that is not a duration is ignored with a
    warning.
    """
    if not (written := find_str(item, "resynchronizationPeriod")):
        return None
    try:
        period = parse_duration(written)
    except DurationError as error:
        problems.warn(f"{where}.resynchronizationPeriod is ignored: {error}")
        return None
    if _NEVER < period < LEAST_RESYNCHRONIZATION:
        problems.warn(
            f"{where}.resynchronizationPeriod {written} is raised to {LEAST_RESYNCHRONIZATION.seconds}s, the minimum"
        )
        period = LEAST_RESYNCHRONIZATION
    return period.total_seconds() or None


def _schedule(item: JsonValue, snapshots: Snapshots, problems: Problems, *, legacy: bool) -> ScheduleBinding:
    crontab = find_str(item, "crontab")
    problems.value_of(lambda: parse_cron(crontab, zone=UTC), "schedule.crontab", None)
    return ScheduleBinding(
        name=_name(item, "schedule"),
        crontab=crontab,
        allow_failure=find(item, "allowFailure") is True,
        queue=find_str(item, "queue") or MAIN_QUEUE,
        group=find_str(item, "group"),
        include_snapshots_from=snapshots.of(item, "schedule"),
        legacy=legacy,
    )


def _settings(document: JsonObject, problems: Problems) -> tuple[timedelta | None, int]:
    """Return the minimum time between runs, and the number of runs that may follow each other without waiting for this time.

    The time is None if there is no minimum.
    """
    settings = find_object(document, "settings")
    interval = problems.value_of(
        lambda: parse_duration(find_str(settings, "executionMinInterval", default="0s")),
        "settings.executionMinInterval",
        _NEVER,
    )
    return interval or None, max(1, whole(settings.get("executionBurst")) or 1)


def _namespaces(item: JsonValue, problems: Problems, where: str) -> NamespaceSelector | None:
    """Return the selector of namespaces; None if every namespace is selected. A label selector takes precedence over names."""
    if find(item, "namespace", "labelSelector") is not None:
        labels = problems.value_of(
            lambda: label_selector(find_object(item, "namespace", "labelSelector")),
            f"{where}.namespace.labelSelector",
            "",
        )
        return NamespaceSelector(None, labels) if labels else None
    names = _names(find(item, "namespace"), "nameSelector", problems, f"{where}.namespace", need_namespace)
    return None if names is None else NamespaceSelector(names, "")


def _names(
    item: JsonValue, key: str, problems: Problems, where: str, need: Callable[[str, str], str]
) -> tuple[str, ...] | None:
    """Return the names of a nameSelector without duplicates. If it is missing or empty, return None, which means any name."""
    names = tuple(dict.fromkeys(str(name) for name in find_list(item, key, "matchNames")))
    for name in names:
        problems.check(partial(need, name, f"{where}.{key}.matchNames"))
    return names or None


def _verbs(item: JsonValue) -> frozenset[WatchVerb]:
    """Return the changes that run the hook; all by default. ``executeHookOnEvent`` overrides its older name ``watchEvent``."""
    for key in ("executeHookOnEvent", "watchEvent"):
        if find(item, key) is not None:
            return frozenset(WatchVerb(str(verb)) for verb in find_list(item, key))
    return frozenset(WatchVerb)


def _field_terms(item: JsonValue) -> list[JsonValue]:
    return find_list(item, "fieldSelector", "matchExpressions")


def _name(item: JsonValue, default: str) -> str:
    return find_str(item, "name") or default
