"""How a package is: internal conditions per stage, and what they mean outside. Pure; the clock's reading comes in.

Inside, each stage of the pipeline has one condition. Outside, people and tools read kstatus' three (`Ready`, `Reconciling`,
`Stalled`, all with observedGeneration) and `status.summary {state, message, tip}`: one word, one line, one thing to do.

* A stage that fails transiently leaves the package Reconciling: it will be tried again.
* A stage that fails permanently makes it Stalled: nothing but a change of an input helps, and the tip says which.
* `Scaled` survives an update (the old version keeps serving), `RequirementsMet` is the scheduler's to change; every other stage
  starts again as Unknown.
* `Installed` is sticky: it becomes True with the first success and stays until the removal.
* What runs is judged anew after every apply: until it has been, a package is not Ready, however ready its old version was.
* Times move only when a condition's status does (inside and outside), so writing the same status twice is writing nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from wharfinger.formats.json_value import JsonObject, JsonValue, find_int, find_list, find_str


class Stage(StrEnum):
    """The stages in pipeline order; the value is the internal condition's type (spec/runtime §6)."""

    FETCHED = "ReadyOnFilesystem"
    LOADED = "Loaded"
    REQUIREMENTS = "RequirementsMet"
    CONFIGURED = "Configured"
    HOOKS = "HooksProcessed"
    APPLIED = "ManifestsApplied"
    SCALED = "Scaled"


class Truth(StrEnum):
    """A condition's status."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; ``permanent`` marks a failure that only a changed input can mend."""

    truth: Truth
    reason: str
    message: str
    since: datetime
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class PackageStatus:
    """All that is known about how one package is."""

    generation: int
    stages: Mapping[Stage, Condition]
    started: datetime
    version: str = ""
    digest: str = ""
    revision: int = 0
    namespace: str = ""
    """Where the release lives, from the moment something may be there; it stays there."""
    installed_since: datetime | None = None
    scale_checked: bool = False
    """What runs has been judged since it was last applied."""
    removal: Condition | None = None
    """Being removed: what that waits for, or what went wrong with it."""
    blocked: Condition | None = None
    """Something before the pipeline is wrong: the spec cannot be read, the repository is missing."""
    told: Mapping[str, tuple[Truth, datetime]] = field(default_factory=dict)
    """The external conditions as last told: their status, and since when it has been that."""


PENDING_REASON: Final = "Pending"
RETRIED_REASONS: Final = frozenset({"EnabledScriptError"})
"""Nothing that is watched mends these: the package counts as stalled, and is looked at anew like everything that is."""
OFF_REASONS: Final = frozenset({"DynamicallyDisabled", "DisabledByDefault", "DisabledByScript"})
"""Somebody does not want it: nothing is wrong, and nothing is waited for."""

TIPS: Final[Mapping[str, str]] = {
    "ArtifactNotFound": "push the package, or correct spec.packageName or spec.packageVersion",
    "DigestMismatch": "the registry serves damaged content; push the package again",
    "ArtifactInvalid": "push a package under this version (`wharfinger package push` checks it), or ask for another version",
    "RegistryFailed": "check the registry and the PackageRepository's address; it is tried again by itself",
    "RegistryRefused": "correct the PackageRepository's address, or its credentialsSecret",
    "ProcessFailed": "the daemon could not run a program it needs; the message says which and why",
    "StoreFailed": "make room or fix permissions in the daemon's state folder; it is tried again by itself",
    "RenderFailed": "correct spec.settings or the chart; helm's own words are in the message",
    "SettingsInvalid": "edit spec.settings, or what spec.settingsFrom names; the message says which fields",
    "SettingsSourceMissing": "create or edit what spec.settingsFrom names; it is noticed by itself",
    "HookInvalid": "correct the hook in the package and push it as another version",
    "PackageHookFailed": "look at the hook's lines in the daemon's log; it is run again by itself (a removal goes on without "
    "hooks once the resource has the annotation wharfinger.dev/skip-delete-hooks)",
    "EventHookFailed": "look at the hook's lines in the daemon's log; it is run again by itself",
    "ValuesLoop": "correct the afterHelm hook in the package: it must come to rest",
    "StateFailed": "look at the Secret that the message names",
    "DependencyCycle": "one of the packages named must not depend on the others",
    "DependencyNotEnabled": "install the package that is missing as a Module; its arrival is noticed by itself",
    "DependencyVersionMismatch": "install a version of the dependency that fits, or another version of this package",
    "AnyOfDependenciesUnmet": "install one of the packages named as a Module; its arrival is noticed by itself",
    "NoneOfDependenciesUnmet": "remove the package it excludes, or this one",
    "KubernetesRequirementsUnmet": "use a version of the package that is for this version of Kubernetes",
    "PlatformRequirementsUnmet": "use a version of the package that is for this version of the platform",
    "VersionLookupFailed": "tell the daemon the platform's version with --platform-version",
    "DynamicallyDisabled": "set spec.enabled to true to have it back",
    "DisabledByDefault": "set spec.enabled to true to have it",
    "DisabledByScript": "the package's own enabled script said no, with this reason",
    "EnabledScriptError": "correct the enabled script in the package; it is asked again when something changes",
    "EnabledScriptPending": "the package's enabled script is being asked",
    "ApplyFailed": "correct what the API server refused; its own words are in the message",
    "ClusterFailed": "the API server did not accept the call; it is tried again by itself",
    "ConflictingOwner": "remove the object from the other release, or the other release",
    "FieldConflict": "the manager named has set these fields: set the same in spec.settings, or let it give them up",
    "HookFailed": "look at the logs of the hook's Job or Pod; it is made anew at the next attempt",
    "SpecInvalid": "edit the resource; the message says what of it",
    "RepositoryInvalid": "edit the PackageRepository; the field is named in the message",
    "RepositoryNotFound": "create the PackageRepository, or correct spec.packageRepositoryName",
    "NotReady": "look at the objects named; they have been applied and are starting, or failing",
    "WorkloadFailed": "look at the failed workload; an edit or its recovery is noticed by itself",
    "Internal": "this is a defect of Wharfinger; please report it with the daemon's log",
}


def fresh(generation: int, now: datetime) -> PackageStatus:
    """The status of a package just heard of."""
    unknown = Condition(Truth.UNKNOWN, PENDING_REASON, "", now)
    return _told(PackageStatus(generation, dict.fromkeys(Stage, unknown), now), now)


def restored(generation: int, written: JsonObject, now: datetime) -> PackageStatus:
    """The status of a package that an earlier process looked after, from what that wrote: what is installed stays so."""
    status = fresh(generation, now)
    conditions = {find_str(entry, "type"): entry for entry in find_list(written, "conditions")}
    told = dict(status.told)
    for kind, entry in conditions.items():
        truth, since = find_str(entry, "status"), _moment(find_str(entry, "lastTransitionTime"))
        if kind in told and since is not None and truth == told[kind][0].value:
            told[kind] = (told[kind][0], since)
    installed = conditions.get("Installed", {})
    since = _moment(find_str(installed, "lastTransitionTime")) if find_str(installed, "status") == "True" else None
    return _told(
        replace(
            status,
            version=find_str(written, "currentVersion", "version"),
            digest=find_str(written, "currentVersion", "digest"),
            revision=find_int(written, "release", "revision"),
            namespace=find_str(written, "release", "namespace"),
            installed_since=since,
            told=told if since is None else {**told, "Installed": (Truth.TRUE, since)},
        ),
        now,
    )


def update_started(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """Every stage starts again, except Scaled (what is running keeps running) and what the scheduler has decided."""
    stages = dict(status.stages)
    for stage in Stage:
        if stage not in (Stage.SCALED, Stage.REQUIREMENTS):
            stages[stage] = _moved(stages[stage], Truth.UNKNOWN, PENDING_REASON, "", now)
    return _told(replace(status, generation=generation, stages=stages, blocked=None, scale_checked=False), now)


def reconfigure_started(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """The stages from Configured on start again."""
    stages = dict(status.stages)
    for stage in (Stage.CONFIGURED, Stage.APPLIED):
        # A hook that failed stays a failure until it has run again.
        stages[stage] = _moved(stages[stage], Truth.UNKNOWN, PENDING_REASON, "", now)
    return _told(replace(status, generation=generation, stages=stages, blocked=None, scale_checked=False), now)


def observed(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """A new generation that asks for nothing new, or a wish that can be acted on again."""
    return _told(replace(status, generation=generation, blocked=None), now)


def progressing(status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime) -> PackageStatus:
    """A stage is at work and not done; a message like ``waiting for Deployment.apps prod/web``."""
    truth = Truth.FALSE if stage is Stage.SCALED else Truth.UNKNOWN
    return _with(status, stage, _moved(status.stages[stage], truth, reason, message, now), now)


def succeeded(status: PackageStatus, stage: Stage, now: datetime) -> PackageStatus:
    """A stage is done."""
    if stage is Stage.SCALED:
        status = replace(status, scale_checked=True)
    status = _with(status, stage, _moved(status.stages[stage], Truth.TRUE, stage.value, "", now), now)
    if status.installed_since is None and _open(status) is None:
        status = _told(replace(status, installed_since=now), now)
    return status


def failed(
    status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime, *, permanent: bool
) -> PackageStatus:
    """A stage failed; if not ``permanent`` it will be tried again."""
    condition = replace(_moved(status.stages[stage], Truth.FALSE, reason, message, now), permanent=permanent)
    return _with(status, stage, condition, now)


def released(status: PackageStatus, version: str, digest: str, revision: int) -> PackageStatus:
    """The version is applied, as this revision of the release."""
    return replace(status, version=version, digest=digest, revision=revision)


def required(status: PackageStatus, reason: str, message: str, now: datetime, *, met: bool) -> PackageStatus:
    """What the scheduler decided: whether everything that the package requires is there, and wanted."""
    before = status.stages[Stage.REQUIREMENTS]
    condition = (
        _moved(before, Truth.TRUE, Stage.REQUIREMENTS.value, "", now)
        if met
        else replace(_moved(before, Truth.FALSE, reason, message, now), permanent=reason in RETRIED_REASONS)
    )
    return _with(status, Stage.REQUIREMENTS, condition, now)


def stopped(status: PackageStatus, now: datetime) -> PackageStatus:
    """Its hooks rest and nothing is applied any more: what was true of its run has to be made true again."""
    stages = dict(status.stages)
    for stage in (Stage.CONFIGURED, Stage.HOOKS, Stage.APPLIED):
        stages[stage] = _moved(stages[stage], Truth.UNKNOWN, PENDING_REASON, "", now)
    return _told(replace(status, stages=stages, scale_checked=False), now)


def placed(status: PackageStatus, namespace: str) -> PackageStatus:
    """From now on something of it may be in this namespace."""
    return replace(status, namespace=namespace)


def uninstalled(status: PackageStatus, now: datetime) -> PackageStatus:
    """Nothing of it is in the cluster any more, though it is still looked after."""
    unknown = Condition(Truth.UNKNOWN, PENDING_REASON, "", now)
    stages = {**status.stages, Stage.APPLIED: unknown, Stage.SCALED: unknown}
    return _told(
        replace(
            status,
            version="",
            digest="",
            revision=0,
            namespace="",
            installed_since=None,
            stages=stages,
            scale_checked=False,
        ),
        now,
    )


def blocked(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """The pipeline cannot even start."""
    before = status.blocked
    since = before.since if before is not None else now
    condition = Condition(Truth.FALSE, reason, message, since, permanent=True)
    return _told(replace(status, generation=generation, blocked=condition), now)


def removing(status: PackageStatus, reason: str, message: str, now: datetime) -> PackageStatus:
    """A removal has begun (reason Removing), waits for something, or failed and will be tried again."""
    since = status.removal.since if status.removal is not None else now
    return _told(replace(status, removal=Condition(Truth.FALSE, reason, message, since)), now)


def is_stalled(status: PackageStatus) -> bool:
    """A stage failed permanently: nothing is tried any more by itself."""
    problem = _open(status)
    return status.removal is None and status.blocked is None and problem is not None and problem.permanent


def summary(status: PackageStatus) -> tuple[str, str, str]:
    """``(state, message, tip)``: one of Pending, Updating, Ready, Degraded, Failed, Suspended, Disabling, Disabled, Removing."""
    if status.removal is not None:
        return "Removing", status.removal.message, TIPS.get(status.removal.reason, "")
    problem = status.blocked or _open(status)
    under_way = "Updating" if status.installed_since else "Pending"
    if problem is None:
        return "Ready", f"version {status.version} is installed and ready", ""
    if problem.truth is not Truth.FALSE:
        return under_way, problem.message or "waiting for its turn", ""
    if problem.reason in OFF_REASONS:
        return ("Disabling" if status.version else "Disabled"), problem.message, TIPS[problem.reason]
    if problem is not status.blocked and _is_gate(status):
        return ("Suspended" if status.installed_since else "Pending"), problem.message, TIPS.get(problem.reason, "")
    if problem.reason == "NotReady":
        return under_way, problem.message, TIPS["NotReady"]
    return ("Degraded" if status.installed_since else "Failed"), problem.message, TIPS.get(problem.reason, "")


def external(status: PackageStatus) -> JsonObject:
    """The body of the resource's ``status``."""
    state, message, tip = summary(status)
    conditions: list[JsonValue] = [
        _external(kind, condition, status.told[kind][1], status.generation)
        for kind, condition in _mapped(status).items()
    ]
    body: JsonObject = {
        "observedGeneration": status.generation,
        "conditions": conditions,
        "summary": {"state": state, "message": message, "tip": tip},
    }
    if status.version:
        body["currentVersion"] = {"version": status.version, "digest": status.digest}
    if status.namespace:
        body["release"] = {"namespace": status.namespace, "revision": status.revision}
    return body


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _mapped(status: PackageStatus) -> dict[str, Condition]:
    """The external conditions, in the order a reader wants them (spec/runtime §6.1; kstatus). Their times are in `told`."""
    problem = status.removal or status.blocked or _open(status)
    stalled = problem is not None and problem.permanent
    ready = problem is None
    reason = problem.reason if problem else "Ready"
    message = summary(status)[1]

    def verdict(reason_if: str, reason_if_not: str, *, holds: bool) -> Condition:
        truth = Truth.TRUE if holds else Truth.FALSE
        return Condition(truth, reason_if if holds else reason_if_not, message if holds else "", status.started)

    return {
        "Ready": Condition(Truth.TRUE if ready else Truth.FALSE, reason, message, status.started),
        "Reconciling": verdict(
            reason, "Stalled" if stalled else "Idle", holds=not ready and not stalled and not _at_rest(status, reason)
        ),
        "Stalled": verdict(reason, "NotStalled", holds=stalled),
        "Installed": (
            Condition(Truth.TRUE, "Installed", "", status.started)
            if status.installed_since is not None
            else Condition(Truth.FALSE, "NotInstalled", "", status.started)
        ),
        "ConfigurationApplied": _weakest(status.stages[Stage.CONFIGURED], status.stages[Stage.APPLIED]),
        "Scaled": status.stages[Stage.SCALED],
    }


def _external(kind: str, condition: Condition, since: datetime, generation: int) -> JsonObject:
    return {
        "type": kind,
        "status": condition.truth.value,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": timestamp(since),
        "observedGeneration": generation,
    }


def _told(status: PackageStatus, now: datetime) -> PackageStatus:
    """Note the external conditions; the time of one moves only if its status does."""
    told: dict[str, tuple[Truth, datetime]] = {}
    for kind, condition in _mapped(status).items():
        before = status.told.get(kind)
        told[kind] = before if before is not None and before[0] is condition.truth else (condition.truth, now)
    return replace(status, told=told)


def _at_rest(status: PackageStatus, reason: str) -> bool:
    """Nobody wants it, and nothing of it is there."""
    return reason in OFF_REASONS and not status.version


def _is_gate(status: PackageStatus) -> bool:
    """What is open first is the package's requirements: others, not itself, have to change."""
    earlier = (Stage.FETCHED, Stage.LOADED)
    return (
        all(status.stages[stage].truth is Truth.TRUE for stage in earlier)
        and status.stages[Stage.REQUIREMENTS].truth is Truth.FALSE
    )


def _open(status: PackageStatus) -> Condition | None:
    """The first stage that is not done, as a condition that is not True; None when all are."""
    for stage in Stage:
        condition = status.stages[stage]
        if condition.truth is not Truth.TRUE:
            return replace(condition, message=condition.message or f"waiting for {stage.value}")
        if stage is Stage.SCALED and not status.scale_checked:
            return Condition(Truth.UNKNOWN, PENDING_REASON, "looking at what was applied", condition.since)
    return None


def _weakest(first: Condition, second: Condition) -> Condition:
    return second if first.truth is Truth.TRUE else first


def _with(status: PackageStatus, stage: Stage, condition: Condition, now: datetime) -> PackageStatus:
    return _told(replace(status, stages={**status.stages, stage: condition}), now)


def _moved(before: Condition, truth: Truth, reason: str, message: str, now: datetime) -> Condition:
    return Condition(truth, reason, message, before.since if before.truth is truth else now)


def _moment(text: str) -> datetime | None:
    """A time as `timestamp` writes it; None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
