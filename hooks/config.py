"""What a hook asks for: the document it prints when it is run with ``--config`` (spec hook-protocol §1.4).

The document is foreign data in one of two versions. It is read in three steps, as the contract says: the version decides the
schema; the schema finds everything of the wrong shape at once; only then is the rest converted and checked for sense. Whatever
is wrong comes out as one HookConfigError that lists it all in the words the contract prescribes, because authors match on them.

Everything behind this module sees one form: version 0 is rewritten as version 1 before it is converted, and what it does
differently (no run on Synchronization, its own contexts, no combining) is told by ``legacy`` and ``version``.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from enum import StrEnum
from functools import partial
from typing import Final, TypeVar

from wharfinger.formats.cron import parse_cron
from wharfinger.formats.duration import parse_duration
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, find, find_list, find_object, find_str, type_name
from wharfinger.formats.yaml_reader import YamlLimits, read_yaml
from wharfinger.hooks.config_schema import VERSION_0, VERSION_1, whole
from wharfinger.hooks.config_schema import problems as shape_problems
from wharfinger.hooks.config_selectors import field_selector, label_selector
from wharfinger.hooks.config_v0 import as_version_1, coerced
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.object_names import need_namespace, need_object_name

MAIN_QUEUE: Final = "main"
MAX_BYTES: Final = 1024 * 1024
MAX_WATCHES: Final = 256
"""Of one kubernetes binding: one for each of its names in each of its namespaces."""
_LIMITS: Final = YamlLimits(max_bytes=MAX_BYTES, max_nodes=100_000, max_characters=2 * MAX_BYTES)
_MAX_PROBLEMS: Final = 20
_MAX_CHARS: Final = 300
_API_VERSION: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9]+")
_T = TypeVar("_T")


class WatchVerb(StrEnum):
    """What happened to an object, in the words of binding contexts."""

    ADDED = "Added"
    MODIFIED = "Modified"
    DELETED = "Deleted"


@dataclass(frozen=True, slots=True)
class NamespaceSelector:
    """Namespaces by name, or those whose labels match. ``labels`` is a label selector in API form; "" where names decide."""

    names: tuple[str, ...] | None
    labels: str


@dataclass(frozen=True, slots=True)
class KubernetesBinding:
    """Objects the hook watches. ``include_snapshots_from`` already has the names of its group in it.

    ``names``: only objects so called; None is any. ``api_version``: "" is the preferred one. ``jq_filter``: "" is none.
    ``legacy``: it came from a version 0 document.
    """

    name: str
    kind: str
    api_version: str
    verbs: frozenset[WatchVerb]
    on_synchronization: bool
    wait_for_synchronization: bool
    keep_full_objects: bool
    jq_filter: str
    allow_failure: bool
    queue: str
    group: str
    include_snapshots_from: tuple[str, ...]
    names: tuple[str, ...] | None
    label_selector: str
    field_selector: str
    namespaces: NamespaceSelector | None
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleBinding:
    """Times at which the hook runs."""

    name: str
    crontab: str
    allow_failure: bool
    queue: str
    group: str
    include_snapshots_from: tuple[str, ...]
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class HookConfig:
    """All bindings of one hook.

    The six numbers are orders among the hooks of a package; None means that it is not bound there. ``min_interval`` and
    ``burst`` bound how often it runs; None is no bound. ``version`` is "v1" or "v0"; contexts of "v0" are never combined.
    """

    on_startup: int | None
    before_helm: int | None
    after_helm: int | None
    before_delete_helm: int | None
    after_delete_helm: int | None
    kubernetes: tuple[KubernetesBinding, ...]
    schedules: tuple[ScheduleBinding, ...]
    min_interval: timedelta | None
    burst: int
    version: str = "v1"


class HookConfigError(HookError):
    """The configuration of a hook is refused; ``problems`` has every reason. Permanent: only a changed hook helps."""

    def __init__(self, hook: str, problems: tuple[str, ...]) -> None:
        super().__init__(hook, f"its configuration is refused: {'; '.join(problems)}")
        self.problems = problems


def read_hook_config(document: bytes, *, hook: str) -> HookConfig:
    """Read what ``hook`` printed for ``--config``: YAML or JSON, of either version. Raises HookConfigError.

    The syntax of ``jqFilter`` is not looked at: only a jq can do that.
    """
    try:
        found = read_yaml(document, what="what it prints for --config", limits=_LIMITS)
    except FormatError as error:
        raise HookConfigError(hook, (str(error),)) from error
    problems = _Problems(hook)
    if found is None:
        problems.add("it printed nothing for --config; a hook prints its bindings then, and ends")
        raise problems.error()
    if not isinstance(found, dict):
        problems.add(f"{type_name(found)} instead of a mapping with a binding in it")
        raise problems.error()
    version_1 = _checked(found, problems)
    config = _converted(version_1, problems, version="v1" if "configVersion" in found else "v0")
    problems.raise_any()
    return config


class _Problems:
    """What was found wrong so far. As many as anybody reads are kept."""

    def __init__(self, hook: str) -> None:
        self._hook = hook
        self._found: list[str] = []
        self._left_out = 0

    def add(self, problem: str) -> None:
        if len(self._found) < _MAX_PROBLEMS:
            self._found.append(problem if len(problem) <= _MAX_CHARS else problem[:_MAX_CHARS] + "…")
        else:
            self._left_out += 1

    def error(self) -> HookConfigError:
        more = (f"and {self._left_out} more",) if self._left_out else ()
        return HookConfigError(self._hook, (*self._found, *more))

    def raise_any(self) -> None:
        if self._found:
            raise self.error()

    def check(self, read: Callable[[], object]) -> None:
        """Note what ``read`` refuses with."""
        try:
            read()
        except FormatError as error:
            self.add(str(error))

    def value_of(self, read: Callable[[], _T], where: str, default: _T) -> _T:
        """What ``read`` gives; ``default`` where it refuses, which is noted under ``where``."""
        try:
            return read()
        except FormatError as error:
            self.add(f"{where} is invalid: {error}")
            return default


def _checked(document: JsonObject, problems: _Problems) -> JsonObject:
    """The document in the shape of version 1. Raises HookConfigError with all that is wrong with its own shape."""
    version = document.get("configVersion")
    if "configVersion" not in document:
        document, shape = coerced(document), VERSION_0
    elif not isinstance(version, str):
        problems.add(f"'configVersion' must be a string, is {type_name(version)}")
        raise problems.error()
    elif version != "v1":
        problems.add(f"'configVersion' value '{version}' is unsupported")
        raise problems.error()
    else:
        shape = VERSION_1
        if len(document) == 1:
            problems.add("it should have at least 2 properties: there is no binding beside configVersion")
    for problem in shape_problems(document, shape):
        problems.add(problem)
    problems.raise_any()
    return document if shape is VERSION_1 else as_version_1(document)


def _converted(document: JsonObject, problems: _Problems, *, version: str) -> HookConfig:
    watched = find_list(document, "kubernetes")
    names = Counter(_name(item, "kubernetes") for item in watched)
    snapshots = _Snapshots(names, _groups(watched), problems)
    legacy = version == "v0"
    min_interval, burst = _settings(document, problems)
    return HookConfig(
        on_startup=whole(document.get("onStartup")),
        before_helm=whole(document.get("beforeHelm")),
        after_helm=whole(document.get("afterHelm")),
        before_delete_helm=whole(document.get("beforeDeleteHelm")),
        after_delete_helm=whole(document.get("afterDeleteHelm")),
        kubernetes=tuple(_kubernetes(item, snapshots, problems, legacy=legacy) for item in watched),
        schedules=tuple(
            _schedule(item, snapshots, problems, legacy=legacy) for item in find_list(document, "schedule")
        ),
        min_interval=min_interval,
        burst=burst,
        version=version,
    )


@dataclass(frozen=True, slots=True)
class _Snapshots:
    """Which snapshots a binding sees: those it names, then those of its group."""

    names: Counter[str]
    groups: Mapping[str, tuple[str, ...]]
    problems: _Problems

    def of(self, item: JsonValue, where: str) -> tuple[str, ...]:
        own = [str(name) for name in find_list(item, "includeSnapshotsFrom")]
        for name in own:
            if self.names[name] == 0:
                self.problems.add(f"{where}.includeSnapshotsFrom is invalid: '{name}' binding name not found")
            elif self.names[name] > 1:
                self.problems.add(
                    f"{where}.includeSnapshotsFrom is invalid: there are {self.names[name]} '{name}' binding names"
                )
        return tuple(dict.fromkeys((*own, *self.groups.get(find_str(item, "group"), ()))))


def _groups(watched: Sequence[JsonValue]) -> dict[str, tuple[str, ...]]:
    """The names of the kubernetes bindings of each group, in their order."""
    groups: dict[str, tuple[str, ...]] = {}
    for item in watched:
        if group := find_str(item, "group"):
            groups[group] = (*groups.get(group, ()), _name(item, "kubernetes"))
    return groups


def _kubernetes(item: JsonValue, snapshots: _Snapshots, problems: _Problems, *, legacy: bool) -> KubernetesBinding:
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
            f"{where}: {wanted} watches, one for each name in each namespace, are more than {MAX_WATCHES}; select with labels"
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
    )


def _schedule(item: JsonValue, snapshots: _Snapshots, problems: _Problems, *, legacy: bool) -> ScheduleBinding:
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


def _settings(document: JsonObject, problems: _Problems) -> tuple[timedelta | None, int]:
    """The least time between runs, None where there is none, and how many may come at once."""
    settings = find_object(document, "settings")
    interval = problems.value_of(
        lambda: parse_duration(find_str(settings, "executionMinInterval", default="0s")),
        "settings.executionMinInterval",
        timedelta(0),
    )
    return interval or None, max(1, whole(settings.get("executionBurst")) or 1)


def _namespaces(item: JsonValue, problems: _Problems, where: str) -> NamespaceSelector | None:
    """Labels decide where there are any; what selects every namespace is no selector."""
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
    item: JsonValue, key: str, problems: _Problems, where: str, need: Callable[[str, str], str]
) -> tuple[str, ...] | None:
    """The names of a nameSelector, each once; None where it is missing or empty, which both mean any."""
    names = tuple(dict.fromkeys(str(name) for name in find_list(item, key, "matchNames")))
    for name in names:
        problems.check(partial(need, name, f"{where}.{key}.matchNames"))
    return names or None


def _verbs(item: JsonValue) -> frozenset[WatchVerb]:
    """``executeHookOnEvent`` wins over its older name; an empty list is a binding that only keeps snapshots."""
    for key in ("executeHookOnEvent", "watchEvent"):
        if find(item, key) is not None:
            return frozenset(WatchVerb(str(verb)) for verb in find_list(item, key))
    return frozenset(WatchVerb)


def _field_terms(item: JsonValue) -> list[JsonValue]:
    return find_list(item, "fieldSelector", "matchExpressions")


def _name(item: JsonValue, default: str) -> str:
    return find_str(item, "name") or default
