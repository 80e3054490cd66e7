"""The reasons of a package's conditions: every possible ``reason``, its meaning, its remedy, and the event that a retry waits
for.

These words are an interface: programs match on them, docs/resources.md explains each, and none changes its meaning. A word
has

* a *text*: its meaning in one line, shown if the reporter had nothing more exact to say;
* a *tip*: the one thing that a user can do about it, empty if there is nothing to do;
* *again*: the event that the next attempt waits for. Tips do not state this event: :func:`advice` adds it.

A word that is not here (written by an older or a newer process) is shown as it is, with a tip that fits every problem.
"""

from enum import StrEnum
from typing import Final, Self

UNKNOWN_TIP: Final = "the message says what is wrong; the daemon's log has more"


class Again(StrEnum):
    """The event that a package waits for before something is tried again."""

    ITSELF = "by itself"
    """Retried with growing pauses."""
    OTHERS = "when that changes"
    """Another object or package, which is watched, has to appear or change."""
    CHANGE = "a change"
    """Parked until an input changes, or a user asks for another attempt."""
    SAID = "by itself, where that can help"
    """The error itself determines whether a retry can help; if not, the package is parked."""
    NOTHING = ""
    """The reason is not a failure."""


class Reason(StrEnum):
    """The reasons. The string value of each is the ``reason`` itself."""

    again: Again
    text: str
    tip: str

    def __new__(cls, word: str, again: Again = Again.NOTHING, text: str = "", tip: str = "") -> Self:
        """Make a reason from its word and its properties."""
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.again, reason.text, reason.tip = again, text, tip
        return reason

    # The source of the package.
    SPEC_INVALID = (
        "SpecInvalid",
        Again.CHANGE,
        "the resource asks for something impossible",
        "edit the resource; the message says what is wrong",
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
        "edit the PackageRepository; the field is named in the message",
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
        "the registry does not have that package or version",
        "push the package, or correct spec.packageName or spec.packageVersion",
    )
    DIGEST_MISMATCH = (
        "DigestMismatch",
        Again.ITSELF,
        "the downloaded content does not match its digest",
        "the registry serves damaged content; push the package again",
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
        "push a package under this version (`wharfinger package push` checks it), or ask for another version",
    )
    FOLDER_NOT_FOUND = (
        "FolderNotFound",
        Again.ITSELF,
        "the folder of packages on the daemon's machine does not have that package",
        "put the package's folder into that folder, or correct spec.packageName or the path that the PackageRepository names",
    )
    FOLDER_INVALID = (
        "FolderInvalid",
        Again.CHANGE,
        "the package's folder on the daemon's machine is not a package, or a file in it is wrong",
        (
            "correct the file that the message names (`wharfinger package check FOLDER` checks a folder); a modules directory is "
            "read again after a change, any other folder when the annotation wharfinger.dev/reconcile-requested-at changes"
        ),
    )
    STORE_FAILED = (
        "StoreFailed",
        Again.ITSELF,
        "the state folder is full or cannot be written",
        "make room or fix permissions in the daemon's state folder",
    )
    JOURNAL_FAILED = (
        "JournalFailed",
        Again.SAID,
        "a step cannot be recorded in the journal of the state folder",
        "make room or fix permissions in the daemon's state folder",
    )
    PROCESS_FAILED = (
        "ProcessFailed",
        Again.SAID,
        "a program that the daemon needs cannot be run",
        "read the message: it says which program could not be run, and why",
    )

    VERSIONS_UNKNOWN = (
        "VersionsUnknown",
        Again.OTHERS,
        "the repository has not been scanned for the versions of the package yet",
        "read the condition of the PackageRepository, which says whether it can be scanned",
    )
    NO_VERSION = (
        "NoVersion",
        Again.OTHERS,
        "the repository has no version that spec.versionRange or spec.releaseChannel names",
        "correct spec.packageName or the range or channel, or push such a version; `wharfinger get versions` lists all",
    )

    # The decision whether it may be on.
    KUBERNETES_UNMET = (
        "KubernetesRequirementsUnmet",
        Again.CHANGE,
        "the package does not support this version of Kubernetes",
        "use a version of the package that supports this version of Kubernetes",
    )
    PLATFORM_UNMET = (
        "PlatformRequirementsUnmet",
        Again.CHANGE,
        "the package does not support this version of the platform",
        "use a version of the package that supports this version of the platform",
    )
    VERSION_LOOKUP_FAILED = (
        "VersionLookupFailed",
        Again.CHANGE,
        "it requires a version of the platform, but the platform's version is not known",
        "start the daemon with --platform-version and the platform's version",
    )
    BOOTSTRAP_UNMET = (
        "BootstrapRequirementsUnmet",
        Again.OTHERS,
        "the cluster is not bootstrapped yet",
        "finish the cluster's bootstrap: it is over once the ConfigMap that the daemon's option --bootstrapped-by names exists",
    )
    DEPENDENCY_NOT_ENABLED = (
        "DependencyNotEnabled",
        Again.OTHERS,
        "a package it requires is missing or off",
        "install the missing package, or enable the package that is off",
    )
    DEPENDENCY_VERSION_MISMATCH = (
        "DependencyVersionMismatch",
        Again.OTHERS,
        "a package it requires is installed in another version",
        "install a version of the dependency that fits, or another version of this package",
    )
    ANY_OF_UNMET = (
        "AnyOfDependenciesUnmet",
        Again.OTHERS,
        "it requires one package of a group, but no package of the group is on",
        "install one of the named packages as a Module",
    )
    NONE_OF_UNMET = (
        "NoneOfDependenciesUnmet",
        Again.OTHERS,
        "a package that it excludes is on",
        "remove the package that it excludes, or remove this one",
    )
    EXCLUSIVE_GROUP_TAKEN = (
        "ExclusiveGroupTaken",
        Again.OTHERS,
        "another Module of its exclusive group takes precedence",
        "disable or delete the named Module to install this one instead, or disable this one",
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
        "the change would break packages that depend on it",
        (
            "change or remove the named packages first, or ask for a change that suits them (with the annotation "
            "wharfinger.dev/ignore-dependents=true the change is made anyway, and they are paused)"
        ),
    )
    WAITING_FOR_DEPENDENTS = (
        "WaitingForDependents",
        Again.OTHERS,
        "other packages that need it have to be removed or disabled first, or are not loaded yet",
        (
            "look at the named packages (with the annotation wharfinger.dev/ignore-dependents=true they are not waited for)"
        ),
    )
    ENABLED_BY_DEFAULT = ("EnabledByDefault", Again.NOTHING, "it is on by default")
    ENABLED_IN_BUNDLE = ("EnabledInBundle", Again.NOTHING, "the platform's bundle enables it")
    ENABLED_BY_HOOK = ("EnabledByGlobalHook", Again.NOTHING, "a global hook enables it")
    DYNAMICALLY_ENABLED = ("DynamicallyEnabled", Again.NOTHING, "spec.enabled is true")
    DYNAMICALLY_DISABLED = (
        "DynamicallyDisabled",
        Again.CHANGE,
        "spec.enabled is false",
        "set spec.enabled to true to enable it again",
    )
    DISABLED_BY_DEFAULT = (
        "DisabledByDefault",
        Again.CHANGE,
        "it is off by default, and spec.enabled is not set",
        "set spec.enabled to true to enable it",
    )
    DISABLED_BY_HOOK = (
        "DisabledByGlobalHook",
        Again.CHANGE,
        "a global hook disabled it",
        "set spec.enabled to true, which takes precedence over the hook of the Module global",
    )
    DISABLED_BY_SCRIPT = (
        "DisabledByScript",
        Again.CHANGE,
        "the package's enabled script answered no",
        "change what the package's enabled script objects to (the message has its reason)",
    )
    SCRIPT_PENDING = ("EnabledScriptPending", Again.NOTHING, "the package's enabled script is being asked")
    SCRIPT_ERROR = (
        "EnabledScriptError",
        Again.CHANGE,
        "the enabled script failed, or gave no clear answer",
        "correct the enabled script in the package; it is asked again when something changes",
    )

    # Running it.
    SETTINGS_INVALID = (
        "SettingsInvalid",
        Again.CHANGE,
        "settings or values do not fit the package's schemas",
        (
            "edit spec.settings, or the object that spec.settingsFrom names, at the place that the message names (immutable "
            "settings are compared with the settings before; the annotation wharfinger.dev/reset-requested-at makes the daemon "
            "forget those)"
        ),
    )
    SETTINGS_SOURCE_MISSING = (
        "SettingsSourceMissing",
        Again.OTHERS,
        "something that spec.settingsFrom names is missing or cannot be read",
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
        "a hook that the package waits for failed",
        (
            "look at the hook's lines in the daemon's log (a removal skips the hooks if the resource has the annotation "
            "wharfinger.dev/skip-delete-hooks)"
        ),
    )
    EVENT_HOOK_FAILED = (
        "EventHookFailed",
        Again.ITSELF,
        "a hook failed on an event or on its schedule",
        "look at the hook's lines in the daemon's log",
    )
    VALUES_LOOP = (
        "ValuesLoop",
        Again.CHANGE,
        "afterHelm hooks change the values again and again",
        "correct the afterHelm hook in the package: it must stop changing the values when nothing else changes",
    )
    RENDER_FAILED = (
        "RenderFailed",
        Again.SAID,
        "Helm refuses the chart, or the settings for it",
        "correct spec.settings or the chart; the message has helm's error",
    )
    APPLY_FAILED = (
        "ApplyFailed",
        Again.CHANGE,
        "the API server refuses a manifest",
        "correct the manifest in the chart, or the settings that it is made from; the message has the API server's error",
    )
    CONFLICTING_OWNER = (
        "ConflictingOwner",
        Again.ITSELF,
        "an object belongs to another release",
        "remove the object from the other release, or uninstall that release",
    )
    FIELD_CONFLICT = (
        "FieldConflict",
        Again.ITSELF,
        "a field of an object belongs to another manager and has another value",
        "set the same values in spec.settings, or make the named manager give up these fields",
    )
    MANIFEST_EMPTY = (
        "ManifestEmpty",
        Again.CHANGE,
        "its chart renders to nothing, which would delete all of its objects",
        "correct spec.settings, or set spec.allowEmpty to true if all objects are to be deleted",
    )
    OUTSIDE_NAMESPACE = (
        "OutsideNamespace",
        Again.CHANGE,
        "the Application's chart writes or looks up something outside of the Application's namespace",
        (
            "install the package as a Module, or let the namespace's Applications reach the whole cluster with the label "
            "wharfinger.dev/cluster-scope=allowed on the namespace"
        ),
    )
    DEFINITION_UNSAFE = (
        "DefinitionUnsafe",
        Again.CHANGE,
        "a changed custom resource definition would lose stored data, or break its users",
        (
            "keep in the chart's definition what the message names, or annotate that definition with "
            "wharfinger.dev/allow-unsafe-crd-upgrade=true"
        ),
    )
    RELEASE_BUSY = (
        "ReleaseBusy",
        Again.ITSELF,
        "another writer is working on its release, or was interrupted; the message names it, and the time limit",
        "wait for the named writer to finish, or for its lock to expire",
    )
    DEFINITIONS_NOT_ESTABLISHED = (
        "DefinitionsNotEstablished",
        Again.ITSELF,
        "the API server does not establish custom resource definitions that were applied",
        "touch the named definition (`kubectl annotate crd NAME --overwrite look=again`), and look at the API server's log",
    )
    HOOK_FAILED = (
        "HookFailed",
        Again.ITSELF,
        "a Job or Pod with a helm.sh/hook annotation failed",
        "look at the logs of the hook's Job or Pod; it is created again at the next attempt",
    )
    CLUSTER_FAILED = (
        "ClusterFailed",
        Again.SAID,
        "the API server could not be reached, or refused a request",
        "check the API server; the message has its error",
    )
    NOT_PERMITTED = (
        "NotPermitted",
        Again.ITSELF,
        "the API server refused a request, because no rule of a role allows it",
        "add the rule that the message ends with to a role of the account, or set another spec.serviceAccountName",
    )
    STATE_FAILED = (
        "StateFailed",
        Again.SAID,
        "the Secret with the package's state cannot be read or written",
        "look at the Secret that the message names",
    )
    NOT_READY = (
        "NotReady",
        Again.OTHERS,
        "applied, but not all of its objects are ready yet",
        "look at the named objects: they are applied, and still starting or failing",
    )
    WORKLOAD_FAILED = (
        "WorkloadFailed",
        Again.OTHERS,
        "applied, but a workload failed permanently",
        "look at the failed workload: correct what it runs, or wait until it recovers",
    )
    ROLLING_OUT = (
        "RollingOut",
        Again.NOTHING,
        "installed and ready; some of its objects are being updated, scaled or replaced",
    )
    UNHEALTHY = (
        "Unhealthy",
        Again.OTHERS,
        "it was ready, but some of its objects have not been ready for a minute or more",
        "look at the named objects, and at their events",
    )
    DRIFT_FOUGHT = (
        "DriftFought",
        Again.ITSELF,
        "another writer sets fields of its objects again each time they are corrected",
        "make the named writer stop setting these fields, or ignore them with spec.drift.ignore",
    )
    NO_WAY_BACK = (
        "NoWayBack",
        Again.CHANGE,
        "the package cannot return to a former revision; nothing was changed",
        "make the change that the message names, or change the resource so that its upgrade succeeds",
    )
    PATCH_FAILED = (
        "PatchFailed",
        Again.CHANGE,
        "a patch of spec.patches matches no object, or cannot be applied",
        "correct the patch or its target in spec.patches; `wharfinger build` shows the objects of the chart",
    )
    INTERNAL = (
        "Internal",
        Again.ITSELF,
        "a defect of Wharfinger",
        "this is a defect of Wharfinger; please report it with the daemon's log",
    )

    # Work being done.
    PENDING = "Pending"
    DOWNLOADING = ("Downloading", Again.NOTHING, "the package is being fetched")
    INSTALLING = ("Installing", Again.NOTHING, "the package is being unpacked")
    LOADING = ("Loading", Again.NOTHING, "the package is being read")
    STARTING_HOOKS = ("StartingHooks", Again.NOTHING, "its hooks are being started")
    APPLYING_CRDS = ("ApplyingCRDs", Again.NOTHING, "its custom resource definitions are being applied")
    WAITING_FOR_CRDS = ("WaitingForCRDs", Again.NOTHING, "waiting for the definitions of other packages")
    APPLYING_WEBHOOKS = ("ApplyingWebhooks", Again.NOTHING, "its conversion webhooks are being applied")
    APPLYING_MANIFESTS = ("ApplyingManifests", Again.NOTHING, "its manifests are being applied")
    REMOVING = ("Removing", Again.NOTHING, "the release is being uninstalled")

    # Not reconciled, because a user asked for that.
    SUSPENDED = (
        "Suspended",
        Again.CHANGE,
        "suspended by spec.suspend; nothing is reconciled, nothing is deleted",
        "run `wharfinger resume NAME`, or set spec.suspend to false to resume it",
    )
    NO_RECONCILIATION = (
        "NoResourceReconciliation",
        Again.CHANGE,
        "in maintenance by spec.maintenance; its objects are not reconciled",
        "remove spec.maintenance to have its objects reconciled again",
    )

    # Not what the resource asks for.
    ROLLED_BACK = (
        "RolledBack",
        Again.CHANGE,
        "the package is in a former revision; the state that the resource asks for is not tried again",
        (
            "change the resource, which is then tried again, or request another attempt with the annotation "
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
"""The reasons of packages that are not wanted: nothing is wrong, and the package waits for nothing."""
HELD: Final = frozenset({Reason.WOULD_BREAK_DEPENDENTS, Reason.WAITING_FOR_DEPENDENTS})
"""The reasons of changes that are held back for dependents: nothing has begun, and the installed package is unchanged."""
LOOKED_AT_ANEW: Final = frozenset({Reason.SCRIPT_ERROR})
"""Reasons of unmet requirements that no watched event can resolve.

The package is stalled, and checked again like all stalled ones.
"""

_BY_WORD: Final[dict[str, Reason]] = {str(reason.value): reason for reason in Reason}


def known(word: str) -> Reason | None:
    """Return the reason with this word; None for a word that only another version of this program knows."""
    return _BY_WORD.get(word)


def explanation(word: str) -> str:
    """Return the meaning of the word; empty if the word needs no explanation."""
    reason = known(word)
    return reason.text if reason is not None else ""


def advice(word: str, *, permanent: bool = False) -> str:
    """Return the tip of the word, with a note if the daemon retries automatically. ``permanent`` is True if the reporter knows
    that a retry does not help.
    """
    reason = known(word)
    if reason is None:
        return UNKNOWN_TIP
    match reason.again:
        case Again.ITSELF | Again.SAID if reason.tip and not permanent:
            return f"{reason.tip}; it is retried automatically"
        case Again.OTHERS:
            return f"{reason.tip}; the daemon notices this automatically"
        case _:
            return reason.tip
