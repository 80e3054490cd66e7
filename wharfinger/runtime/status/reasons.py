"""The reasons of a package's conditions: each possible ``reason``, its meaning, its remedy, and when the package is retried.

The reasons are an interface: programs match on them, docs/resources.md explains each of them, and the meaning of a reason never
changes. A reason has

* a *text*: its meaning in one line, which is shown if the reason was reported without a message;
* a *tip*: the action that a user can take, empty if no action is needed;
* *again*: the event for which the next attempt waits. Tips do not mention the next attempt, because :func:`advice` does.

An unknown reason (written by an older or a newer process) is shown as it is, with a tip that fits every problem.
"""

from enum import StrEnum
from typing import Final, Self

UNKNOWN_TIP: Final = "the message says what is wrong; the daemon's log has more details"


class Again(StrEnum):
    """The condition for the next attempt after a failure. The value of each member is a text for users."""

    ITSELF = "by itself"
    """The package is retried with growing pauses."""
    OTHERS = "when that object or package changes"
    """The package waits until another object or package appears or changes. The daemon watches that object or package."""
    CHANGE = "a change"
    """The package waits until an input changes, or until a user asks for another attempt. If the package is parked, and not
    only off, it is also tried again after ten minutes.
    """
    BY_ERROR = "by itself if a retry can help, else a change"
    """The error itself determines whether a retry can help; if not, the package is parked."""
    NOTHING = ""
    """No attempt is needed, because the reason is not a failure."""


class Reason(StrEnum):
    """The reasons of the conditions in a package's status; the string value of each is a condition's ``reason``."""

    again: Again
    text: str
    tip: str

    def __new__(cls, word: str, again: Again = Again.NOTHING, text: str = "", tip: str = "") -> Self:
        """Make a reason from its string value and its properties."""
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.again, reason.text, reason.tip = again, text, tip
        return reason

    # The source of the package.
    SPEC_INVALID = (
        "SpecInvalid",
        Again.CHANGE,
        "the resource has an invalid field, or a name that another package already uses",
        "correct the field of the resource that the message names",
    )
    REPOSITORY_NOT_FOUND = (
        "RepositoryNotFound",
        Again.OTHERS,
        "the PackageRepository that the resource names does not exist",
        "create the PackageRepository, or correct spec.packageRepositoryName",
    )
    REPOSITORY_INVALID = (
        "RepositoryInvalid",
        Again.OTHERS,
        "the PackageRepository, or the Secret with its login, cannot be used",
        "correct the field of the PackageRepository, or the Secret, that the message names",
    )
    REGISTRY_FAILED = (
        "RegistryFailed",
        Again.ITSELF,
        "the registry cannot be reached, or has an internal error",
        "check the registry and the PackageRepository's address",
    )
    REGISTRY_REFUSED = (
        "RegistryRefused",
        Again.ITSELF,
        "the registry refused the request",
        "correct the PackageRepository's address, or its credentialsSecret",
    )
    ARTIFACT_NOT_FOUND = (
        "ArtifactNotFound",
        Again.ITSELF,
        "the registry does not have the requested package or version",
        "push the package, or correct spec.packageName or spec.packageVersion",
    )
    DIGEST_MISMATCH = (
        "DigestMismatch",
        Again.ITSELF,
        "the downloaded content does not match its digest",
        "push the package again, because the registry serves damaged content",
    )
    NOT_TRUSTED = (
        "NotTrusted",
        Again.ITSELF,
        "no signature of the artifact satisfies spec.verify of the PackageRepository",
        "sign the artifact with a trusted key, or correct spec.verify",
    )
    ARTIFACT_INVALID = (
        "ArtifactInvalid",
        Again.CHANGE,
        "the registry's artifact is not a package, or a file in it is wrong",
        (
            "push a valid package with this version (`wharfinger package push` checks the package), or request "
            "another version"
        ),
    )
    FOLDER_NOT_FOUND = (
        "FolderNotFound",
        Again.ITSELF,
        "the folder of packages on the daemon's machine does not have the requested package",
        "create the package's folder there, or correct spec.packageName or the path in the PackageRepository",
    )
    FOLDER_INVALID = (
        "FolderInvalid",
        Again.CHANGE,
        "the package's folder on the daemon's machine is not a package, or a file in it is wrong",
        (
            "correct the file that the message names (`wharfinger package check FOLDER` checks a folder), and then run "
            "`wharfinger retry NAME` (not needed for a module in a folder that --modules-dir names)"
        ),
    )
    STORE_FAILED = (
        "StoreFailed",
        Again.ITSELF,
        "the state folder is full or cannot be written",
        "free disk space, or correct the permissions of the daemon's state folder",
    )
    JOURNAL_FAILED = (
        "JournalFailed",
        Again.BY_ERROR,
        "a step cannot be recorded in the journal of the state folder",
        "free disk space, or correct the permissions of the daemon's state folder",
    )
    PROCESS_FAILED = (
        "ProcessFailed",
        Again.BY_ERROR,
        "a program that the daemon needs cannot be run",
        "correct the cause that the message names, so that the program can be run",
    )

    VERSIONS_UNKNOWN = (
        "VersionsUnknown",
        Again.OTHERS,
        "the repository has not been scanned for the versions of the package yet",
        "read the condition Ready of the PackageRepository, which shows whether the repository can be scanned",
    )
    NO_VERSION = (
        "NoVersion",
        Again.OTHERS,
        "the repository has no version in spec.versionRange, or does not have the channel that spec.releaseChannel names",
        (
            "correct spec.packageName, the range or the channel, or push a matching version; `wharfinger get versions` "
            "lists the versions in the repository"
        ),
    )

    # The decision whether the package may be on.
    KUBERNETES_UNMET = (
        "KubernetesRequirementsUnmet",
        Again.CHANGE,
        "the package does not support the cluster's version of Kubernetes",
        "use a version of the package that supports the cluster's version of Kubernetes, or upgrade the cluster",
    )
    PLATFORM_UNMET = (
        "PlatformRequirementsUnmet",
        Again.CHANGE,
        "the package does not support the platform's version, which the daemon's option --platform-version sets",
        "use a version of the package that supports the platform's version, or upgrade the platform",
    )
    VERSION_LOOKUP_FAILED = (
        "VersionLookupFailed",
        Again.CHANGE,
        "the package requires a version of the platform or of Kubernetes, but the present version is unknown or cannot be parsed",
        "set the platform's version with the daemon's option --platform-version VERSION",
    )
    BOOTSTRAP_UNMET = (
        "BootstrapRequirementsUnmet",
        Again.OTHERS,
        "the cluster is not bootstrapped yet",
        (
            "finish the bootstrap of the cluster, which ends when the ConfigMap named by the daemon's option --bootstrapped-by "
            "is created"
        ),
    )
    DEPENDENCY_NOT_ENABLED = (
        "DependencyNotEnabled",
        Again.OTHERS,
        "a package that this package requires is missing or off",
        "install or enable the required package",
    )
    DEPENDENCY_VERSION_MISMATCH = (
        "DependencyVersionMismatch",
        Again.OTHERS,
        "a package that this package requires is installed in a version that does not match",
        "install a matching version of the required package, or another version of this package",
    )
    ANY_OF_UNMET = (
        "AnyOfDependenciesUnmet",
        Again.OTHERS,
        "the package requires one package of a group, but each package of the group is off, missing or in a wrong version",
        "install or enable one of the named packages",
    )
    NONE_OF_UNMET = (
        "NoneOfDependenciesUnmet",
        Again.OTHERS,
        "a package that this package excludes is on",
        "remove the excluded package, or remove this package",
    )
    EXCLUSIVE_GROUP_TAKEN = (
        "ExclusiveGroupTaken",
        Again.OTHERS,
        "another Module of the same exclusive group takes precedence",
        "disable or delete the Module that the message names, or disable this Module",
    )
    DEPENDENCY_CYCLE = (
        "DependencyCycle",
        Again.CHANGE,
        "packages require each other in a cycle",
        "change one of the named packages so that it does not depend on the others",
    )
    WOULD_BREAK_DEPENDENTS = (
        "WouldBreakDependents",
        Again.OTHERS,
        "the requested removal, disable or version change would break packages that depend on this package",
        (
            "change or remove the dependents that the message names, or request a change that does not break them "
            "(with the annotation wharfinger.dev/ignore-dependents=true the change is made anyway, and the dependents "
            "are paused)"
        ),
    )
    WAITING_FOR_DEPENDENTS = (
        "WaitingForDependents",
        Again.OTHERS,
        "packages that need this package have to be removed or disabled first, or it is not known yet which packages need it",
        (
            "check the packages that the message names (with the annotation "
            "wharfinger.dev/ignore-dependents=true the daemon does not wait for these packages)"
        ),
    )
    ENABLED_BY_DEFAULT = ("EnabledByDefault", Again.NOTHING, "the package is on by default")
    ENABLED_IN_BUNDLE = (
        "EnabledInBundle",
        Again.NOTHING,
        "the package is on by default in the bundle that the daemon's option --bundle names",
    )
    ENABLED_BY_HOOK = ("EnabledByGlobalHook", Again.NOTHING, "a global hook enables the package")
    DYNAMICALLY_ENABLED = (
        "DynamicallyEnabled",
        Again.NOTHING,
        "spec.enabled is true, or is not set and counts as true",
    )
    DYNAMICALLY_DISABLED = (
        "DynamicallyDisabled",
        Again.CHANGE,
        "spec.enabled is false",
        "set spec.enabled to true to enable the package again",
    )
    DISABLED_BY_DEFAULT = (
        "DisabledByDefault",
        Again.CHANGE,
        "the package is off by default, and spec.enabled is not set",
        "set spec.enabled to true to enable the package",
    )
    DISABLED_BY_HOOK = (
        "DisabledByGlobalHook",
        Again.CHANGE,
        "a global hook disabled the package",
        "set spec.enabled to true, which takes precedence over global hooks",
    )
    DISABLED_BY_SCRIPT = (
        "DisabledByScript",
        Again.CHANGE,
        "the package's own enabled script has switched the package off",
        "remove the cause, which the message contains if the script gave a reason",
    )
    SCRIPT_PENDING = ("EnabledScriptPending", Again.NOTHING, "the package's enabled script is running")
    SCRIPT_ERROR = (
        "EnabledScriptError",
        Again.CHANGE,
        "the enabled script failed, or its output is neither true nor false",
        "correct the enabled script in the package; it is run again when its input changes, and every ten minutes",
    )

    # The run of the package.
    SETTINGS_INVALID = (
        "SettingsInvalid",
        Again.CHANGE,
        "settings or values do not match the package's schemas",
        (
            "correct spec.settings, or the object that spec.settingsFrom names, at each place that the message names "
            "(to change an immutable setting, set the annotation wharfinger.dev/reset-requested-at, so that the "
            "daemon forgets the former settings)"
        ),
    )
    SETTINGS_SOURCE_MISSING = (
        "SettingsSourceMissing",
        Again.OTHERS,
        "a Secret or ConfigMap that spec.settingsFrom names is missing or cannot be read",
        "create or edit the object that spec.settingsFrom names",
    )
    HOOK_INVALID = (
        "HookInvalid",
        Again.CHANGE,
        "a hook's configuration, or a filter in it, is invalid",
        "correct the hook in the package's folder; if the package comes from a registry, push it as another version",
    )
    PACKAGE_HOOK_FAILED = (
        "PackageHookFailed",
        Again.ITSELF,
        "a hook failed, and the package waits until this hook succeeds",
        (
            "read the hook's lines in the daemon's log, with `wharfinger logs NAME` (a removal skips the delete hooks "
            "if the resource has the annotation wharfinger.dev/skip-delete-hooks)"
        ),
    )
    EVENT_HOOK_FAILED = (
        "EventHookFailed",
        Again.ITSELF,
        "a hook failed on an event or on its schedule",
        "read the hook's lines in the daemon's log, with `wharfinger logs NAME`",
    )
    VALUES_LOOP = (
        "ValuesLoop",
        Again.CHANGE,
        "the afterHelm hooks change the values in each run, or the afterAll hooks change the global values in each round",
        "correct the afterHelm or afterAll hooks: if nothing else has changed, they must not change the values",
    )
    RENDER_FAILED = (
        "RenderFailed",
        Again.BY_ERROR,
        "Helm refuses the chart or its settings",
        "correct spec.settings or the chart; the message has helm's error",
    )
    APPLY_FAILED = (
        "ApplyFailed",
        Again.CHANGE,
        "the API server refuses a manifest",
        (
            "correct the manifest in the chart, or the settings that the manifest uses; the message has the API "
            "server's error"
        ),
    )
    CONFLICTING_OWNER = (
        "ConflictingOwner",
        Again.ITSELF,
        "an object of the chart exists already, and belongs to another release or to none",
        "remove the object from the other release, or uninstall that release, or delete the object if it belongs to no release",
    )
    FIELD_CONFLICT = (
        "FieldConflict",
        Again.ITSELF,
        "a field of an object belongs to another manager, and its value differs from the value in the chart",
        "set the other manager's value in spec.settings, or make the named manager stop setting the field",
    )
    MANIFEST_EMPTY = (
        "ManifestEmpty",
        Again.CHANGE,
        "the package's chart renders to nothing, and an apply would delete all objects of the package",
        "correct spec.settings, or set spec.allowEmpty to true if all objects should be deleted",
    )
    OUTSIDE_NAMESPACE = (
        "OutsideNamespace",
        Again.CHANGE,
        "the Application's chart writes or looks up an object outside of the Application's namespace",
        (
            "install the package as a Module, or set the label wharfinger.dev/cluster-scope=allowed on the namespace, "
            "which allows its Applications to change the whole cluster"
        ),
    )
    DEFINITION_UNSAFE = (
        "DefinitionUnsafe",
        Again.CHANGE,
        "a changed custom resource definition would lose stored data, or break its users",
        (
            "restore the part of the definition that the message names, or annotate the definition in the chart with "
            "wharfinger.dev/allow-unsafe-crd-upgrade=true"
        ),
    )
    RELEASE_BUSY = (
        "ReleaseBusy",
        Again.ITSELF,
        (
            "another writer is working on the package's release, or was interrupted during its work; the message names "
            "the writer, and how long the daemon waits for it"
        ),
        "wait until the named writer has finished, or until its lock has expired",
    )
    DEFINITIONS_NOT_ESTABLISHED = (
        "DefinitionsNotEstablished",
        Again.ITSELF,
        "the API server does not establish custom resource definitions that were applied",
        (
            "read the API server's log, then change an annotation of the definition that the message names "
            "(`kubectl annotate crd NAME --overwrite look=again`), so that the API server checks the definition again"
        ),
    )
    HOOK_FAILED = (
        "HookFailed",
        Again.ITSELF,
        "a Job or Pod with a helm.sh/hook annotation failed",
        "read the logs of the Job or Pod; it is created again at the next attempt",
    )
    CLUSTER_FAILED = (
        "ClusterFailed",
        Again.BY_ERROR,
        "the API server could not be reached, or refused a request",
        "check the API server; the message has its error",
    )
    NOT_PERMITTED = (
        "NotPermitted",
        Again.ITSELF,
        "the API server refused a request, because no rule of a role allows it",
        (
            "add the missing rule, which is the last part of the message, to a role of the account that made the request, or "
            "set another spec.serviceAccountName"
        ),
    )
    STATE_FAILED = (
        "StateFailed",
        Again.BY_ERROR,
        "the Secret with the package's state cannot be read or written",
        "check the Secret that the message names",
    )
    NOT_READY = (
        "NotReady",
        Again.OTHERS,
        "the package is applied, but not all of its objects are ready yet",
        "check the objects that the message names: each of them is still starting, or has failed",
    )
    WORKLOAD_FAILED = (
        "WorkloadFailed",
        Again.OTHERS,
        "the package is applied, but a workload has failed",
        (
            "check the workload that the message names: correct its program or its configuration, or wait until the "
            "workload recovers"
        ),
    )
    ROLLING_OUT = (
        "RollingOut",
        Again.NOTHING,
        "the package is installed and ready; some of its objects are being updated, scaled or replaced",
    )
    UNHEALTHY = (
        "Unhealthy",
        Again.OTHERS,
        "the package was ready, but some of its objects have been unready or missing for too long",
        "check the objects that the message names, and their events",
    )
    DRIFT_FOUGHT = (
        "DriftFought",
        Again.ITSELF,
        "another writer changes fields of the package's objects again each time the daemon corrects them",
        "make the named writer stop setting these fields, or ignore the fields with spec.drift.ignore",
    )
    NO_WAY_BACK = (
        "NoWayBack",
        Again.CHANGE,
        "the package cannot return to a former revision; nothing was changed",
        "remove the obstacles that the message names, or correct the resource so that the package can be upgraded",
    )
    PATCH_FAILED = (
        "PatchFailed",
        Again.CHANGE,
        "a patch of spec.patches matches no object, or cannot be applied",
        "correct the patch or its target in spec.patches; `wharfinger build` shows the objects of the chart",
    )
    INTERNAL = (
        "Internal",
        Again.BY_ERROR,
        "a bug in Wharfinger",
        "report this bug in Wharfinger, with the daemon's log",
    )

    # Work in progress.
    PENDING = "Pending"
    DOWNLOADING = ("Downloading", Again.NOTHING, "the package is being downloaded")
    INSTALLING = ("Installing", Again.NOTHING, "the package is being unpacked")
    LOADING = ("Loading", Again.NOTHING, "the files of the package are being read")
    STARTING_HOOKS = ("StartingHooks", Again.NOTHING, "the package's hooks are being started")
    APPLYING_CRDS = ("ApplyingCRDs", Again.NOTHING, "the package's custom resource definitions are being applied")
    WAITING_FOR_CRDS = (
        "WaitingForCRDs",
        Again.NOTHING,
        "waiting for the custom resource definitions of other packages",
    )
    APPLYING_WEBHOOKS = ("ApplyingWebhooks", Again.NOTHING, "the package's conversion webhooks are being applied")
    APPLYING_MANIFESTS = ("ApplyingManifests", Again.NOTHING, "the package's manifests are being applied")
    REMOVING = ("Removing", Again.NOTHING, "the release is being uninstalled")

    # Reconciliation was stopped by a user.
    SUSPENDED = (
        "Suspended",
        Again.CHANGE,
        "spec.suspend is true: nothing is reconciled, and nothing is deleted",
        "run `wharfinger resume NAME`, or set spec.suspend to false to resume the package",
    )
    NO_RECONCILIATION = (
        "NoResourceReconciliation",
        Again.CHANGE,
        "in maintenance, because spec.maintenance is set; the package's objects are not reconciled",
        "remove spec.maintenance to have the objects reconciled again",
    )

    # The package is in the state of a former revision, and not in the state that the resource asks for.
    ROLLED_BACK = (
        "RolledBack",
        Again.CHANGE,
        (
            "the package is in the state of a former revision, and the daemon does not try again to reach the state that "
            "the resource requests"
        ),
        (
            "change the resource (after a failure, correct its cause first), or request another attempt with the annotation "
            "wharfinger.dev/reconcile-requested-at"
        ),
    )

    # No problem.
    READY = "Ready"
    IDLE = "Idle"
    STALLED = "Stalled"
    NOT_STALLED = "NotStalled"


OFF: Final = frozenset(
    {Reason.DYNAMICALLY_DISABLED, Reason.DISABLED_BY_DEFAULT, Reason.DISABLED_BY_HOOK, Reason.DISABLED_BY_SCRIPT}
)
"""The reasons of packages that are off because they are not wanted. This is no problem, and the packages wait for nothing."""
HELD: Final = frozenset({Reason.WOULD_BREAK_DEPENDENTS, Reason.WAITING_FOR_DEPENDENTS})
"""The reasons of changes that are held back to protect dependents. Such a change has not begun; the installed package is
unchanged.
"""
LOOKED_AT_ANEW: Final = frozenset({Reason.SCRIPT_ERROR})
"""The reasons of unmet requirements whose causes are not watched.

A package with such a reason counts as stalled, and is checked again every ten minutes like every stalled package.
"""

_BY_WORD: Final[dict[str, Reason]] = {str(reason.value): reason for reason in Reason}


def known(word: str) -> Reason | None:
    """Return the reason with this string value; None for a value that only another version of Wharfinger knows."""
    return _BY_WORD.get(word)


def explanation(word: str) -> str:
    """Return the text of a reason; empty if it is unknown, or needs no explanation."""
    reason = known(word)
    return reason.text if reason is not None else ""


def advice(word: str, *, permanent: bool = False) -> str:
    """Return the advice for users about a reason. If the daemon tries again by itself, the advice says so.

    ``permanent`` is True if it is known that a retry does not help; then the advice does not mention retries.
    """
    reason = known(word)
    if reason is None:
        return UNKNOWN_TIP
    match reason.again:
        case Again.ITSELF | Again.BY_ERROR if reason.tip and not permanent:
            return f"{reason.tip}; the daemon retries automatically"
        case Again.OTHERS:
            return f"{reason.tip}; the daemon then continues automatically"
        case _:
            return reason.tip
