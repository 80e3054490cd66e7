"""Why a package is as it is: every word that a condition's ``reason`` can be, what it means, what helps, and what it waits for.

These words are an interface: programs match on them, docs/resources.md explains each, and none changes its meaning. A word has

* a *text*: what it means, in one line, shown where whoever reported it had nothing more exact to say;
* a *tip*: the one thing that a person can do about it, empty where there is nothing to do;
* *again*: what has to happen before it is tried again. Tips do not say that themselves: :func:`advice` adds it.

A word that is not here (of an older process, or of a newer one) is shown as it is, with a tip that fits all.
"""

from enum import StrEnum
from typing import Final, Self

UNKNOWN_TIP: Final = "the message says what is wrong; the daemon's log has more"


class Again(StrEnum):
    """What a package waits for before something is tried again."""

    ITSELF = "by itself"
    """Tried again with growing pauses."""
    OTHERS = "when that changes"
    """Others have to come or change, and are watched."""
    CHANGE = "a change"
    """Parked until an input changes, or somebody asks."""
    SAID = "by itself, where that can help"
    """The error knows; where it cannot, it is parked."""
    NOTHING = ""
    """It is no failure."""


class Reason(StrEnum):
    """The words. As a text each is the ``reason`` itself."""

    again: Again
    text: str
    tip: str

    def __new__(cls, word: str, again: Again = Again.NOTHING, text: str = "", tip: str = "") -> Self:
        """A word with what is known of it."""
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.again, reason.text, reason.tip = again, text, tip
        return reason

    # Where the package comes from.
    SPEC_INVALID = (
        "SpecInvalid",
        Again.CHANGE,
        "the resource asks for something that cannot be",
        "edit the resource; the message says what of it",
    )
    REPOSITORY_NOT_FOUND = (
        "RepositoryNotFound",
        Again.OTHERS,
        "there is no PackageRepository of that name",
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
        "the registry cannot be reached, or has an error of its own",
        "check the registry and the PackageRepository's address",
    )
    REGISTRY_REFUSED = (
        "RegistryRefused",
        Again.ITSELF,
        "the registry said no",
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
        "what came is not what its digest says",
        "the registry serves damaged content; push the package again",
    )
    ARTIFACT_INVALID = (
        "ArtifactInvalid",
        Again.CHANGE,
        "what the registry has is no package, or a file in it is wrong",
        "push a package under this version (`wharfinger package push` checks it), or ask for another version",
    )
    FOLDER_NOT_FOUND = (
        "FolderNotFound",
        Again.ITSELF,
        "the folder of packages on this machine does not have that package",
        "put the package's folder there, or correct spec.packageName or the path that the PackageRepository names",
    )
    FOLDER_INVALID = (
        "FolderInvalid",
        Again.CHANGE,
        "the package's folder on this machine holds no package, or a file in it is wrong",
        (
            "correct the file that the message names (`wharfinger package check FOLDER` checks a folder); a modules directory is "
            "read again after a change, any other folder with the annotation wharfinger.dev/reconcile-requested-at"
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
        "a step cannot be written down in the journal of the state folder",
        "make room or fix permissions in the daemon's state folder",
    )
    PROCESS_FAILED = (
        "ProcessFailed",
        Again.SAID,
        "a program that the daemon needs cannot be run",
        "the daemon could not run a program it needs; the message says which and why",
    )

    # Whether it may be on.
    KUBERNETES_UNMET = (
        "KubernetesRequirementsUnmet",
        Again.CHANGE,
        "it is not for this version of Kubernetes",
        "use a version of the package that is for this version of Kubernetes",
    )
    PLATFORM_UNMET = (
        "PlatformRequirementsUnmet",
        Again.CHANGE,
        "it is not for this version of the platform",
        "use a version of the package that is for this version of the platform",
    )
    VERSION_LOOKUP_FAILED = (
        "VersionLookupFailed",
        Again.CHANGE,
        "it requires a version of the platform, and which one this is is not known",
        "tell the daemon the platform's version with --platform-version",
    )
    BOOTSTRAP_UNMET = (
        "BootstrapRequirementsUnmet",
        Again.OTHERS,
        "the cluster is not bootstrapped yet",
        "finish the cluster's bootstrap: it is over once the ConfigMap is there that the daemon's --bootstrapped-by names",
    )
    DEPENDENCY_NOT_ENABLED = (
        "DependencyNotEnabled",
        Again.OTHERS,
        "a package it requires is missing or off",
        "install the package that is missing, or enable the one that is off",
    )
    DEPENDENCY_VERSION_MISMATCH = (
        "DependencyVersionMismatch",
        Again.OTHERS,
        "a package it requires is there in another version",
        "install a version of the dependency that fits, or another version of this package",
    )
    ANY_OF_UNMET = (
        "AnyOfDependenciesUnmet",
        Again.OTHERS,
        "none of a group that it requires one of is there",
        "install one of the packages named as a Module",
    )
    NONE_OF_UNMET = (
        "NoneOfDependenciesUnmet",
        Again.OTHERS,
        "a package that it excludes is there",
        "remove the package it excludes, or this one",
    )
    DEPENDENCY_CYCLE = (
        "DependencyCycle",
        Again.CHANGE,
        "packages require each other in a circle",
        "one of the packages named must not depend on the others",
    )
    WOULD_BREAK_DEPENDENTS = (
        "WouldBreakDependents",
        Again.OTHERS,
        "packages that are on need it as it is",
        (
            "change or remove the packages named first, or ask for what suits them (with the annotation "
            "wharfinger.dev/ignore-dependents=true it is done all the same, and they are paused)"
        ),
    )
    WAITING_FOR_DEPENDENTS = (
        "WaitingForDependents",
        Again.OTHERS,
        "packages that need it go first, or are not loaded yet",
        (
            "look at the packages named (with the annotation wharfinger.dev/ignore-dependents=true they are not waited for)"
        ),
    )
    DYNAMICALLY_DISABLED = (
        "DynamicallyDisabled",
        Again.CHANGE,
        "spec.enabled is false",
        "set spec.enabled to true to have it back",
    )
    DISABLED_BY_DEFAULT = (
        "DisabledByDefault",
        Again.CHANGE,
        "nobody has asked for it yet",
        "set spec.enabled to true to have it",
    )
    DISABLED_BY_HOOK = (
        "DisabledByGlobalHook",
        Again.CHANGE,
        "a global hook switched it off",
        "a hook of the Module global switched it off; spec.enabled of the Module itself counts more",
    )
    DISABLED_BY_SCRIPT = (
        "DisabledByScript",
        Again.CHANGE,
        "the package's enabled script said no",
        "the package's own enabled script said no, with this reason",
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
            "edit spec.settings, or what spec.settingsFrom names, where the message says (the annotation "
            "wharfinger.dev/reset-requested-at forgets what was configured before, which immutable settings are compared with)"
        ),
    )
    SETTINGS_SOURCE_MISSING = (
        "SettingsSourceMissing",
        Again.OTHERS,
        "something that settingsFrom names is missing or cannot be read",
        "create or edit what spec.settingsFrom names",
    )
    HOOK_INVALID = (
        "HookInvalid",
        Again.CHANGE,
        "a hook's configuration, or a filter in it, is refused",
        "correct the hook in the package's folder, or, if it comes from a registry, push the package as another version",
    )
    PACKAGE_HOOK_FAILED = (
        "PackageHookFailed",
        Again.ITSELF,
        "a hook that the package waits for failed",
        (
            "look at the hook's lines in the daemon's log (a removal goes on without hooks once the resource has the annotation "
            "wharfinger.dev/skip-delete-hooks)"
        ),
    )
    EVENT_HOOK_FAILED = (
        "EventHookFailed",
        Again.ITSELF,
        "a hook failed on an event or at its time",
        "look at the hook's lines in the daemon's log",
    )
    VALUES_LOOP = (
        "ValuesLoop",
        Again.CHANGE,
        "afterHelm hooks change the values time after time",
        "correct the afterHelm hook in the package: it must come to rest",
    )
    RENDER_FAILED = (
        "RenderFailed",
        Again.SAID,
        "Helm refuses the chart, or the settings for it",
        "correct spec.settings or the chart; helm's own words are in the message",
    )
    APPLY_FAILED = (
        "ApplyFailed",
        Again.CHANGE,
        "the API server refuses a manifest",
        "correct the manifest in the chart, or the settings that it is made from; the API server's own words are in the message",
    )
    CONFLICTING_OWNER = (
        "ConflictingOwner",
        Again.ITSELF,
        "an object belongs to another release",
        "remove the object from the other release, or the other release",
    )
    FIELD_CONFLICT = (
        "FieldConflict",
        Again.ITSELF,
        "a field of an object belongs to another manager and has another value",
        "the manager named has set these fields: set the same in spec.settings, or let it give them up",
    )
    MANIFEST_EMPTY = (
        "ManifestEmpty",
        Again.CHANGE,
        "its chart renders to nothing, which would delete all of its objects",
        "correct spec.settings; or set spec.allowEmpty to true, if that is what you want",
    )
    OUTSIDE_NAMESPACE = (
        "OutsideNamespace",
        Again.CHANGE,
        "its chart writes or looks up something outside of the namespace to which an Application is confined",
        (
            "install the package as a Module, or let the namespace's Applications reach the cluster with the label "
            "wharfinger.dev/cluster-scope=allowed on the namespace"
        ),
    )
    DEFINITION_UNSAFE = (
        "DefinitionUnsafe",
        Again.CHANGE,
        "a custom resource definition would lose what is stored, or what others use",
        (
            "keep in the chart's definition what the message names, or annotate that with "
            "wharfinger.dev/allow-unsafe-crd-upgrade=true"
        ),
    )
    RELEASE_BUSY = (
        "ReleaseBusy",
        Again.ITSELF,
        "somebody else is at work on its release, or was interrupted; the message says who, and how long that is waited for",
        "let whoever is named finish, or wait until he is taken for gone",
    )
    DEFINITIONS_NOT_ESTABLISHED = (
        "DefinitionsNotEstablished",
        Again.ITSELF,
        "the API server does not establish custom resource definitions that were applied",
        "touch the definition named (`kubectl annotate crd NAME --overwrite look=again`), and look at the API server's log",
    )
    HOOK_FAILED = (
        "HookFailed",
        Again.ITSELF,
        "a Job or Pod with a helm.sh/hook annotation failed",
        "look at the logs of the hook's Job or Pod; it is made anew at the next attempt",
    )
    CLUSTER_FAILED = (
        "ClusterFailed",
        Again.SAID,
        "the API server could not be reached, or did not accept a call",
        "the API server did not accept the call; its own words are in the message",
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
        "applied, and not all of it ready yet",
        "look at the objects named; they have been applied and are starting, or failing",
    )
    WORKLOAD_FAILED = (
        "WorkloadFailed",
        Again.OTHERS,
        "applied, and a workload failed for good",
        "look at the failed workload; an edit or its recovery helps",
    )
    ROLLING_OUT = (
        "RollingOut",
        Again.NOTHING,
        "installed and ready; some of its objects are being updated, scaled or replaced",
    )
    UNHEALTHY = (
        "Unhealthy",
        Again.OTHERS,
        "it was ready, and part of it has not been for a minute or more",
        "look at the objects named, and at their events",
    )
    DRIFT_FOUGHT = (
        "DriftFought",
        Again.ITSELF,
        "somebody sets fields of its objects again and again after they were corrected",
        "let the writer named leave these fields alone, or let them be ignored with spec.drift.ignore",
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

    # Left alone, because somebody said so.
    SUSPENDED = (
        "Suspended",
        Again.CHANGE,
        "suspended by spec.suspend; nothing is reconciled, nothing is deleted",
        "set spec.suspend to false to have it go on",
    )
    NO_RECONCILIATION = (
        "NoResourceReconciliation",
        Again.CHANGE,
        "in maintenance by spec.maintenance; what is applied is left to people",
        "take spec.maintenance out to have its objects reconciled again",
    )

    # All as it should be.
    READY = "Ready"
    IDLE = "Idle"
    STALLED = "Stalled"
    NOT_STALLED = "NotStalled"


OFF: Final = frozenset(
    {Reason.DYNAMICALLY_DISABLED, Reason.DISABLED_BY_DEFAULT, Reason.DISABLED_BY_HOOK, Reason.DISABLED_BY_SCRIPT}
)
"""Somebody does not want it: nothing is wrong, and nothing is waited for."""
HELD: Final = frozenset({Reason.WOULD_BREAK_DEPENDENTS, Reason.WAITING_FOR_DEPENDENTS})
"""Nothing was begun, for others' sake: what is there is as it was."""
LOOKED_AT_ANEW: Final = frozenset({Reason.SCRIPT_ERROR})
"""Of requirements: nothing that is watched mends these, so the package is stalled, and looked at anew like all that are."""

_BY_WORD: Final[dict[str, Reason]] = {str(reason.value): reason for reason in Reason}


def known(word: str) -> Reason | None:
    """The reason of that word; None for one of another version of this program."""
    return _BY_WORD.get(word)


def explanation(word: str) -> str:
    """What the word means; empty where there is no more to say than the word."""
    reason = known(word)
    return reason.text if reason is not None else ""


def advice(word: str, *, permanent: bool = False) -> str:
    """What to do about it, and whether it mends by itself; ``permanent``: whoever reported it said that trying does not help."""
    reason = known(word)
    if reason is None:
        return UNKNOWN_TIP
    match reason.again:
        case Again.ITSELF | Again.SAID if reason.tip and not permanent:
            return f"{reason.tip}; it is tried again by itself"
        case Again.OTHERS:
            return f"{reason.tip}; that is noticed by itself"
        case _:
            return reason.tip
