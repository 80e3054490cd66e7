"""The parser of Applications and Modules (``wharfinger.dev/v1alpha1``; their CRDs are in ``crds/``).

The API server validates resources with the CRDs. But if the cluster has older CRDs, a resource may still have invalid content.
So each function checks the fields that it reads, and a :class:`SpecError` names the field and the expected value.
"""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
    need_str,
    type_name,
)
from wharfinger.kube.names import is_subdomain
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.definition.depends_on import read_depends_on
from wharfinger.packages.definition.requirements import DependsOn
from wharfinger.packages.kustomizing.patches import Patch, read_patches
from wharfinger.packages.rendering.resource_overrides import WorkloadOverride, read_overrides
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId, ModuleId, PackageId
from wharfinger.runtime.resources.release_policy import ReleasePolicy, read_release_policy
from wharfinger.runtime.resources.static_values import read_static_values
from wharfinger.runtime.resources.upgrade_policy import (
    RollbackRequest,
    UpgradePolicy,
    read_rollback_request,
    read_upgrade_policy,
)
from wharfinger.runtime.versions.rollback_note import RollbackNote
from wharfinger.runtime.versions.version_policy import EXACT, VersionPolicy, read_version

GROUP: Final = "wharfinger.dev"
VERSION: Final = "v1alpha1"
FINALIZER: Final = "wharfinger.dev/installed"
REQUESTED: Final = "wharfinger.dev/reconcile-requested-at"
FORCED: Final = "wharfinger.dev/force-requested-at"
RESET: Final = "wharfinger.dev/reset-requested-at"
SKIP_DELETE_HOOKS: Final = "wharfinger.dev/skip-delete-hooks"
"""The annotation that, with any value, makes a removal skip the package's own delete hooks."""
IGNORE_DEPENDENTS: Final = "wharfinger.dev/ignore-dependents"
"""The annotation that, with the value ``"true"``, allows the package to be changed, disabled or removed even if that breaks
other packages.
"""
ENABLED_BY_DEFAULT: Final = "wharfinger.dev/enabled-by-default"
"""The annotation of a Module that states whether the Module is on by default according to its files (``"true"`` or
``"false"``). It is used if ``spec.enabled`` is not set.
"""
SETTINGS_MAP: Final = "wharfinger.dev/settings-map"
"""The annotation of a Module that names the ConfigMap (``NAMESPACE/NAME``) with the Module's settings. Settings that the
Module's hooks change are written into this ConfigMap.
"""
NO_RECONCILIATION: Final = "NoResourceReconciliation"
"""The only value of ``spec.maintenance``: applied objects are not reconciled."""
NO_POOL: Final = "none"
"""The value of ``spec.pool`` with which the daemon keeps no idle processes for the package's hooks."""
DEFAULT_REPOSITORY: Final = "default"
MAX_SETTINGS_SOURCES: Final = 64
DEFAULT_SETTINGS_KEY: Final = "settings.yaml"

APPLICATION: Final = ResourceType(GROUP, VERSION, "Application", "applications", namespaced=True)
MODULE: Final = ResourceType(GROUP, VERSION, "Module", "modules", namespaced=False)
PACKAGE_INDEX: Final = ResourceType(GROUP, VERSION, "PackageIndex", "packageindexes", namespaced=False)
PACKAGE_REPOSITORY: Final = ResourceType(GROUP, VERSION, "PackageRepository", "packagerepositories", namespaced=False)
SECRET: Final = ResourceType("", "v1", "Secret", "secrets", namespaced=True)
CONFIG_MAP: Final = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)

_SOURCE_KINDS: Final = {"Secret": SECRET, "ConfigMap": CONFIG_MAP}


class SpecError(Exception):
    """A custom resource is invalid; a retry does not help, because the resource must be edited."""


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """One entry of ``settingsFrom``: a key of a Secret or ConfigMap in the package's namespace.

    Without a ``path``, the value of the key is an object of settings in YAML. With a ``path``, the value is the text of the
    setting at that path.
    """

    source: ObjectKey
    key: str
    path: tuple[str, ...]
    optional: bool

    @property
    def is_secret(self) -> bool:
        """True if the value comes from a Secret; such values are never shown."""
        return self.source.resource == SECRET


@dataclass(frozen=True, slots=True)
class Directives:
    """The options for managing a package, besides its version and its settings.

    ``requested``, ``forced`` and ``reset`` are values of annotations (``wharfinger.dev/reconcile-requested-at``,
    ``force-requested-at``, ``reset-requested-at``). A change of any of these values requests a complete reconciliation. A
    change of ``forced`` also requests a new download and a run of all hooks. A change of ``reset`` also makes the daemon
    forget three things: which one-time steps are done, the values patches of hooks, and the former values of immutable
    settings.
    """

    requested: str = ""
    forced: str = ""
    reset: str = ""
    suspended: bool = False
    """True if the package is suspended: nothing is reconciled, and nothing is deleted except by a removal."""
    maintenance: str = ""
    """NO_RECONCILIATION, or empty."""
    pool: str = ""
    """The WorkerPool in whose pods hooks run, or NO_POOL; "" if the configuration of each hook decides."""
    is_digest_named: bool = False
    """True if the resource itself names the digest; then the version in the package may differ from the tag."""
    settings_version: int = 0
    """The version of the settings schema for which the settings are written; 0 means the newest."""
    overrides: tuple[WorkloadOverride, ...] = ()
    """The replicas and resources of workloads that override those of the chart."""
    depends_on: tuple[DependsOn, ...] = ()
    """The dependencies in the resource, which are added to those of the package."""
    release_policy: ReleasePolicy = ReleasePolicy()  # noqa: RUF009 - frozen
    """The policy for applied objects, and for their deletion."""
    ignore_dependents: bool = False
    """True if the package may be changed or removed even if that breaks dependents."""
    default: bool | None = None
    """The value of a Module's annotation ENABLED_BY_DEFAULT; None if the annotation is not set."""
    account: str = ""
    """The name of the service account whose rights the package uses, in the namespace of the release; "" means the rights of
    the daemon.
    """
    cluster_scope: bool = False
    """True if an Application may have objects outside of its namespace; only a label of its namespace can allow this, not the
    Application itself.
    """
    digest: str = ""
    """The digest that the package must have. It comes from the resource, or from the choice of the version; "" accepts the
    digest to which the tag of the version points.
    """
    kept_digest: str = ""
    """The digest of the wanted version as it is installed, if the package must not follow its tag to another digest; otherwise
    "". A download then gets the content with this digest.
    """
    patches: tuple[Patch, ...] = ()
    """Kustomize's patches of the rendered objects."""
    upgrade: UpgradePolicy = UpgradePolicy()  # noqa: RUF009 - frozen
    """The policy for failed upgrades."""
    rollback: RollbackRequest | None = None
    """The last request of a user for a rollback, which may already be done."""
    asked: str = ""
    """The checksum of everything that the resource asks for (:mod:`wharfinger.runtime.core.desired_states`); "" if it is not
    computed.
    """
    rolled_back: RollbackNote | None = None
    """The rollback in force. The digest, the settings version, the overrides and the patches are then those of the former
    revision. None if no rollback is in force.
    """
    static_values: JsonObject | None = field(default=None, hash=False)
    """The values that a modules directory has for the Module; the Module's own values override them.

    None if the Module is not from a modules directory.
    """


@dataclass(frozen=True, slots=True)
class PackageSpec:
    """The specification of an Application or a Module, and its last written status."""

    id: PackageId
    generation: int
    package: str
    version: str
    """The exact version; empty if a version has to be chosen by the policy."""
    repository: str
    settings: JsonObject
    settings_from: tuple[SettingsSource, ...]
    status: JsonObject
    """The status that was last written."""
    enabled: bool | None = None
    """The user's decision about a Module: ``spec.enabled``, or the daemon's default if neither this field nor the annotation
    ENABLED_BY_DEFAULT is set. None if another rule decides, and for Applications, which have no such field.
    """
    directives: Directives = Directives()
    policy: VersionPolicy = EXACT
    """The policy for updates: which versions are accepted, and when they are installed."""


def read_application(obj: JsonObject) -> PackageSpec:
    """Read an Application. Raises SpecError."""
    try:
        identity = AppId(find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))
        return _read_package(obj, identity, package=_required(obj, "packageName"), enabled=None)
    except FormatError as error:
        raise SpecError(f"{error}; correct the Application's spec") from error


def read_module(obj: JsonObject, *, enabled_by_default: bool | None = True) -> PackageSpec:
    """Read a Module. Its package has the Module's name, unless the spec names another package. Raises SpecError.

    ``enabled_by_default`` is used if neither ``spec.enabled`` nor the annotation ENABLED_BY_DEFAULT is set; None means that
    another rule decides, such as the bundle.
    """
    try:
        name = find_str(obj, "metadata", "name")
        identity = ModuleId(name, find_str(obj, "spec", "namespace", default=SYSTEM_NAMESPACE))
        package = find_str(obj, "spec", "packageName", default=name)
        enabled = enabled_by_default if _default(obj) is None else None
        if find(obj, "spec", "enabled") is not None:
            enabled = _flag(obj, "spec", "enabled", default=False)
        return _read_package(obj, identity, package=package, enabled=enabled)
    except FormatError as error:
        raise SpecError(f"{error}; correct the Module's spec") from error


def is_object_name(text: str) -> bool:
    """Return whether a text is a valid object name (RFC 1123, a DNS subdomain)."""
    return is_subdomain(text)


def resource_key(identity: PackageId) -> ObjectKey:
    """Return the key of the Application or Module of a package."""
    if isinstance(identity, AppId):
        return ObjectKey(APPLICATION, identity.namespace, identity.instance)
    return ObjectKey(MODULE, "", identity.name)


def is_deleting(obj: JsonObject) -> bool:
    """Return whether a deletion was requested; the object may still exist because of finalizers."""
    return find(obj, "metadata", "deletionTimestamp") is not None


def ignores_dependents(obj: JsonObject) -> bool:
    """Return whether an annotation of a package's resource allows changes that break dependents. The spec of the resource is
    not read, so it may be invalid.

    Raises SpecError if the annotation is neither true nor false.
    """
    return _yes_or_no(obj, IGNORE_DEPENDENTS) is True


def _yes_or_no(obj: JsonObject, annotation: str) -> bool | None:
    """Return True for an annotation with the value ``true``, and False for ``false``; None if it is not set or empty. Raises
    SpecError for any other value.
    """
    annotations = find(obj, "metadata", "annotations")
    said = annotations.get(annotation) if isinstance(annotations, dict) else None
    if said not in (None, "", "false", "true"):
        raise SpecError(f"metadata.annotations: {annotation}: {said!r:.80} is neither true nor false; correct it")
    return said == "true" if said else None


def _default(obj: JsonObject) -> bool | None:
    return _yes_or_no(obj, ENABLED_BY_DEFAULT)


def finalizers_of(obj: JsonObject) -> tuple[str, ...]:
    """Return ``metadata.finalizers``; entries that are not strings are left out."""
    return tuple(entry for entry in find_list(obj, "metadata", "finalizers") if isinstance(entry, str))


def _read_package(obj: JsonObject, identity: PackageId, *, package: str, enabled: bool | None) -> PackageSpec:
    version, policy = read_version(obj)
    return PackageSpec(
        id=identity,
        generation=find_int(obj, "metadata", "generation"),
        package=package,
        version=version,
        repository=find_str(obj, "spec", "packageRepositoryName", default=DEFAULT_REPOSITORY),
        settings=find_object(obj, "spec", "settings"),
        settings_from=_settings_sources(obj, identity.namespace),
        status=find_object(obj, "status"),
        enabled=enabled,
        directives=_directives(obj, identity, policy),
        policy=policy,
    )


def _directives(obj: JsonObject, identity: PackageId, policy: VersionPolicy) -> Directives:
    annotations = find_object(obj, "metadata", "annotations")
    return Directives(
        requested=find_str(annotations, REQUESTED),
        forced=find_str(annotations, FORCED),
        reset=find_str(annotations, RESET),
        suspended=_flag(obj, "spec", "suspend", default=False),
        maintenance=_maintenance(obj),
        pool=_pool(obj),
        settings_version=_settings_version(obj),
        overrides=read_overrides(find(obj, "spec", "resourceRequests")),
        depends_on=read_depends_on(
            find(obj, "spec", "dependsOn"),
            own=identity.name,
            namespace=identity.namespace if isinstance(identity, AppId) else "",
        ),
        release_policy=read_release_policy(find_object(obj, "spec")),
        account=read_account(obj),
        ignore_dependents=ignores_dependents(obj),
        digest=policy.digest,
        is_digest_named=bool(policy.digest),
        default=_default(obj) if isinstance(identity, ModuleId) else None,
        patches=read_patches(find(obj, "spec", "patches")),
        upgrade=read_upgrade_policy(find_object(obj, "spec")),
        rollback=read_rollback_request(annotations),
        static_values=read_static_values(obj) if isinstance(identity, ModuleId) else None,
    )


def read_account(obj: JsonObject) -> str:
    """Return ``spec.serviceAccountName``; empty if it is not set. Raises SpecError if it is not the name of an object."""
    name = find_str(obj, "spec", "serviceAccountName")
    if name and not is_object_name(name):
        raise SpecError(
            f"spec.serviceAccountName: {name!r:.80} is not the name of a ServiceAccount; name it without its namespace"
        )
    return name


def _maintenance(obj: JsonObject) -> str:
    mode = find_str(obj, "spec", "maintenance")
    if mode not in ("", NO_RECONCILIATION):
        raise SpecError(f"spec.maintenance: {mode!r} is not {NO_RECONCILIATION}; correct it or leave it out")
    return mode


def _pool(obj: JsonObject) -> str:
    pool = find_str(obj, "spec", "pool")
    if pool and not is_object_name(pool):
        raise SpecError(f"spec.pool: {pool!r} is neither {NO_POOL} nor the name of a WorkerPool; correct it")
    return pool


def _settings_version(obj: JsonObject) -> int:
    version = find_int(obj, "spec", "settingsVersion")
    if version < 0:
        raise SpecError(f"spec.settingsVersion: {version} is not the number of a version; 1 is the first")
    return version


def _settings_sources(obj: JsonObject, namespace: str) -> tuple[SettingsSource, ...]:
    entries = find_list(obj, "spec", "settingsFrom")
    if len(entries) > MAX_SETTINGS_SOURCES:
        raise SpecError(f"spec.settingsFrom: expected at most {MAX_SETTINGS_SOURCES} entries, found {len(entries)}")
    return tuple(_settings_source(entry, namespace, f"spec.settingsFrom[{at}]") for at, entry in enumerate(entries))


def _settings_source(entry: JsonValue, namespace: str, where: str) -> SettingsSource:
    kind, name = find_str(entry, "kind"), find_str(entry, "name")
    if kind not in _SOURCE_KINDS:
        raise SpecError(f"{where}.kind: {kind!r} is neither Secret nor ConfigMap")
    if not name:
        raise SpecError(f"{where}.name: required")
    path = find_str(entry, "path")
    parts = tuple(path.split(".")) if path else ()
    if not all(parts):
        raise SpecError(f"{where}.path: {path!r} is not a path of names such as database.password")
    key = find_str(entry, "key", default="" if parts else DEFAULT_SETTINGS_KEY)
    if not key:
        raise SpecError(f"{where}.key: required if path is set")
    source = ObjectKey(_SOURCE_KINDS[kind], namespace, name)
    return SettingsSource(source, key, parts, _flag(entry, "optional", default=False))


def _flag(obj: JsonValue, *path: str, default: bool) -> bool:
    found = find(obj, *path)
    if found is None:
        return default
    if not isinstance(found, bool):
        raise ShapeError(f"{'.'.join(path)}: expected true or false, found {type_name(found)}")
    return found


def _required(obj: JsonObject, field: str) -> str:
    if not find_str(obj, "spec", field):
        raise SpecError(f"spec.{field}: required")
    return need_str(obj, "spec", field)
