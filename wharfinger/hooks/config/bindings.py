"""What a hook may be bound to: the vocabulary its configuration is read into (spec hook-protocol §1.4). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from wharfinger.formats.json.value import JsonValue


class HookScope(StrEnum):
    """Whose hook it is: a package's, or the operator's own for all packages (§1.5)."""

    PACKAGE = "package"
    GLOBAL = "global"


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
    ``legacy``: it came from a version 0 document. ``resynchronization_s``: how often the objects are listed anew besides
    being watched; None is never.
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
    resynchronization_s: float | None = None


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
class AdmissionRule:
    """Requests that a webhook is asked about; ``*`` is any. ``scope``: Cluster, Namespaced or ``*``."""

    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    scope: str = "*"


@dataclass(frozen=True, slots=True)
class AdmissionBinding:
    """Requests the hook is asked to allow, or to change (§1.4.4).

    The selectors are in the form of a webhook configuration; an empty one selects everything. ``match_conditions`` are pairs
    of a name and a CEL expression. ``timeout_s`` is in seconds.
    """

    name: str
    rules: tuple[AdmissionRule, ...]
    object_selector: Mapping[str, JsonValue] = field(default_factory=dict)
    namespace_selector: Mapping[str, JsonValue] = field(default_factory=dict)
    match_conditions: tuple[tuple[str, str], ...] = ()
    failure_policy: str = "Fail"
    side_effects: str = "None"
    timeout_s: int = 10
    group: str = ""
    include_snapshots_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConversionBinding:
    """Versions of a custom resource the hook converts, as pairs from → to; short (``v1``) or full (``group/v1``) (§1.4.5)."""

    name: str
    crd_name: str
    conversions: tuple[tuple[str, str], ...]
    group: str = ""
    include_snapshots_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookConfig:
    """All bindings of one hook.

    The orders (``on_startup`` … ``after_all``) are among the hooks of a package, or among the global ones; None means that it is
    not bound there. ``min_interval`` and ``burst`` bound how often it runs; None is no bound. ``version`` is "v1" or "v0";
    contexts of "v0" are never combined. ``warnings``: what the contract lets pass, and its author would want to know.
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
    before_all: int | None = None
    after_all: int | None = None
    validating: tuple[AdmissionBinding, ...] = ()
    mutating: tuple[AdmissionBinding, ...] = ()
    conversions: tuple[ConversionBinding, ...] = ()
    warnings: tuple[str, ...] = ()


UNBOUND = HookConfig(None, None, None, None, None, (), (), None, 1)
"""Of a hook that nothing runs by itself."""
