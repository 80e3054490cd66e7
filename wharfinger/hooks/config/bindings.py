"""The bindings of a hook: the types that its configuration is read into (spec hook-protocol §1.4). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from wharfinger.formats.json.value import JsonValue


class HookScope(StrEnum):
    """The owner of a hook: one package, or the daemon itself.

    A hook of the daemon is called a global hook. It belongs to no package (§1.5).
    """

    PACKAGE = "package"
    GLOBAL = "global"


class HookPool(StrEnum):
    """The process in which a hook runs."""

    WARM = "warm"
    """The default: a worker process that has started already, or a new process if no worker is available."""
    NONE = "none"
    """A new process for each run."""
    PERSISTENT = "persistent"
    """A process that only this hook uses. The runs of the hook follow one another in it."""


class WatchVerb(StrEnum):
    """A change of an object, in the words of binding contexts."""

    ADDED = "Added"
    MODIFIED = "Modified"
    DELETED = "Deleted"


@dataclass(frozen=True, slots=True)
class NamespaceSelector:
    """A selector of namespaces by name or by label. ``labels`` is a label selector in API form; "" if the names decide."""

    names: tuple[str, ...] | None
    labels: str


@dataclass(frozen=True, slots=True)
class KubernetesBinding:
    """Objects that the hook watches.

    ``include_snapshots_from`` contains the names from the field ``includeSnapshotsFrom``, and the names of all kubernetes
    bindings in the same group.

    ``names`` limits the binding to objects with these names; None means any. ``api_version`` "" means the preferred version.
    ``jq_filter`` "" means no filter. ``legacy`` is true for a binding of a version 0 document. ``resynchronization_s`` is
    the interval at which the objects are listed anew, in addition to the watch; None means never.
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
    """A schedule on which the hook runs."""

    name: str
    crontab: str
    allow_failure: bool
    queue: str
    group: str
    include_snapshots_from: tuple[str, ...]
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class AdmissionRule:
    """A rule for the requests that an API server sends to a webhook.

    ``*`` in a field means any value. ``scope`` is Cluster, Namespaced or ``*``.
    """

    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    scope: str = "*"


@dataclass(frozen=True, slots=True)
class AdmissionBinding:
    """Requests that the hook is asked to allow or to change (§1.4.4).

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
    """The binding of a hook that converts a custom resource between versions (spec hook-protocol §1.4.5).

    ``conversions`` are pairs of a source version and a target version. A version is short (``v1``) or full (``group/v1``).
    """

    name: str
    crd_name: str
    conversions: tuple[tuple[str, str], ...]
    group: str = ""
    include_snapshots_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookConfig:
    """All bindings of one hook.

    The orders (``on_startup`` … ``after_all``) are relative to the other hooks of the package, or to the other global hooks;
    None means that there is no such binding. ``min_interval`` and ``burst`` limit how often the hook runs; a ``min_interval``
    of None means no limit. ``version`` is "v1" or "v0". The contexts of a hook of "v0" are never combined into one run.
    ``warnings`` name settings that the contract accepts, but that the author should check.
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
    pool: HookPool = HookPool.WARM
    worker_pool: str = ""
    """The WorkerPool whose pods run the hook; "" if the daemon runs the hook on its own machine."""


UNBOUND = HookConfig(None, None, None, None, None, (), (), None, 1)
"""The configuration of a hook without bindings, such as the settings check of a batch (`batch_hooks`)."""
