"""How a package is: internal conditions per stage, and what they mean outside. Pure; the clock's reading comes in.

Inside, each stage of the pipeline has one condition. Outside, people and tools read kstatus' three (`Ready`, `Reconciling`,
`Stalled`, all with observedGeneration) and `status.summary {state, message, tip}`: one word, one line, one thing to do.

* A stage that fails transiently leaves the package Reconciling: it will be tried again.
* A stage that fails permanently makes it Stalled: nothing but a change of an input helps, and the tip says which.
* `Scaled` survives an update (the old version keeps serving), every other stage starts again as Unknown.
* `Installed` is sticky: it becomes True with the first success and stays until the removal.
* Times move only when a condition's status does, so writing the same status twice is writing nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from wharfinger.formats.json_value import JsonObject, JsonValue


class Stage(StrEnum):
    """The stages in pipeline order; the value is the internal condition's type (spec/runtime §6)."""

    FETCHED = "ReadyOnFilesystem"
    LOADED = "Loaded"
    CONFIGURED = "Configured"
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
    installed_since: datetime | None = None
    removing: bool = False
    blocked: Condition | None = None
    """Something before the pipeline is wrong: the spec cannot be read, the repository is missing."""


PENDING_REASON: Final = "Pending"

TIPS: Final[Mapping[str, str]] = {
    "ArtifactNotFound": "push the package, or correct spec.packageName or spec.packageVersion",
    "DigestMismatch": "the registry serves damaged content; push the package again",
    "ArtifactInvalid": "the artifact is not a Helm chart package; push it again with `wharfinger package push`",
    "RegistryFailed": "check the registry and the PackageRepository's address; it is tried again by itself",
    "RegistryRefused": "correct the PackageRepository's address or credentials",
    "ProcessFailed": "the daemon could not run a program it needs; the message says which and why",
    "StoreFailed": "make room or fix permissions in the daemon's state folder; it is tried again by itself",
    "RenderFailed": "correct spec.settings or the chart; helm's own words are in the message",
    "ApplyFailed": "correct what the API server refused; its own words are in the message",
    "ClusterFailed": "the API server did not accept the call; it is tried again by itself",
    "ConflictingOwner": "remove the object from the other release, or the other release",
    "HookFailed": "look at the logs of the hook's Job or Pod; it is made anew at the next attempt",
    "SpecInvalid": "edit the Application; the field is named in the message",
    "RepositoryNotFound": "create the PackageRepository, or correct spec.packageRepositoryName",
    "NotReady": "look at the objects named; they have been applied and are starting, or failing",
    "WorkloadFailed": "look at the failed workload; an edit or its recovery is noticed by itself",
    "Internal": "this is a defect of Wharfinger; please report it with the daemon's log",
}


def fresh(generation: int, now: datetime) -> PackageStatus:
    """The status of a package just heard of."""
    unknown = Condition(Truth.UNKNOWN, PENDING_REASON, "", now)
    return PackageStatus(generation, dict.fromkeys(Stage, unknown), now)


def update_started(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """Every stage starts again, except Scaled: what is running keeps running."""
    stages = dict(status.stages)
    for stage in Stage:
        if stage is not Stage.SCALED:
            stages[stage] = _moved(stages[stage], Truth.UNKNOWN, PENDING_REASON, "", now)
    return replace(status, generation=generation, stages=stages, blocked=None)


def reconfigure_started(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """The stages from Configured on start again."""
    stages = dict(status.stages)
    for stage in (Stage.CONFIGURED, Stage.APPLIED):
        stages[stage] = _moved(stages[stage], Truth.UNKNOWN, PENDING_REASON, "", now)
    return replace(status, generation=generation, stages=stages, blocked=None)


def observed(status: PackageStatus, generation: int) -> PackageStatus:
    """A new generation that asks for nothing new, or a wish that can be acted on again."""
    return replace(status, generation=generation, blocked=None)


def progressing(status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime) -> PackageStatus:
    """A stage is at work and not done; a message like ``waiting for Deployment.apps prod/web``."""
    truth = Truth.FALSE if stage is Stage.SCALED else Truth.UNKNOWN
    return _with(status, stage, _moved(status.stages[stage], truth, reason, message, now))


def succeeded(status: PackageStatus, stage: Stage, now: datetime) -> PackageStatus:
    """A stage is done."""
    status = _with(status, stage, _moved(status.stages[stage], Truth.TRUE, stage.value, "", now))
    if status.installed_since is None and _first_open(status) is None:
        status = replace(status, installed_since=now)
    return status


def failed(
    status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime, *, permanent: bool
) -> PackageStatus:
    """A stage failed; if not ``permanent`` it will be tried again."""
    condition = replace(_moved(status.stages[stage], Truth.FALSE, reason, message, now), permanent=permanent)
    return _with(status, stage, condition)


def released(status: PackageStatus, version: str, digest: str, revision: int) -> PackageStatus:
    """The version is applied, as this revision of the release."""
    return replace(status, version=version, digest=digest, revision=revision)


def blocked(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """The pipeline cannot even start."""
    before = status.blocked
    since = before.since if before is not None else now
    return replace(
        status, generation=generation, blocked=Condition(Truth.FALSE, reason, message, since, permanent=True)
    )


def removing(status: PackageStatus, now: datetime) -> PackageStatus:
    """A removal has begun; the status is frozen but for this."""
    return replace(status, removing=True, started=now)


def summary(status: PackageStatus) -> tuple[str, str, str]:
    """``(state, message, tip)``: state is one of Pending, Updating, Ready, Degraded, Failed, Removing."""
    if status.removing:
        return "Removing", "the release is being uninstalled", ""
    problem = status.blocked
    if problem is None:
        stage = _first_open(status)
        if stage is None:
            return "Ready", f"version {status.version} is installed and ready", ""
        problem = status.stages[stage]
        if problem.truth is not Truth.FALSE:
            message = problem.message or f"waiting for {stage.value}"
            return ("Updating" if status.installed_since else "Pending"), message, ""
        if stage is Stage.SCALED and not problem.permanent and problem.reason == "NotReady":
            return ("Updating" if status.installed_since else "Pending"), problem.message, TIPS["NotReady"]
    return ("Degraded" if status.installed_since else "Failed"), problem.message, TIPS.get(problem.reason, "")


def external(status: PackageStatus) -> JsonObject:
    """The body of the resource's ``status``."""
    state, message, tip = summary(status)
    conditions: list[JsonValue] = [_external(kind, condition, status.generation) for kind, condition in _mapped(status)]
    body: JsonObject = {
        "observedGeneration": status.generation,
        "conditions": conditions,
        "summary": {"state": state, "message": message, "tip": tip},
    }
    if status.version:
        body["currentVersion"] = {"version": status.version, "digest": status.digest}
    if status.revision:
        body["release"] = {"revision": status.revision}
    return body


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _mapped(status: PackageStatus) -> list[tuple[str, Condition]]:
    """The external conditions, in the order a reader wants them (spec/runtime §6.1; kstatus)."""
    open_stage = _first_open(status)
    problem = status.blocked or (status.stages[open_stage] if open_stage else None)
    stalled = problem is not None and problem.permanent and not status.removing
    ready = problem is None and not status.removing
    since = max([status.started, *(condition.since for condition in status.stages.values())])
    reason = "Removing" if status.removing else problem.reason if problem else "Ready"
    message = summary(status)[1]

    def verdict(*, holds: bool, reason: str, message: str) -> Condition:
        return Condition(Truth.TRUE if holds else Truth.FALSE, reason, message, problem.since if problem else since)

    return [
        ("Ready", verdict(holds=ready, reason=reason, message=message)),
        (
            "Reconciling",
            verdict(
                holds=not ready and not stalled,
                reason=reason if not ready and not stalled else ("Stalled" if stalled else "Idle"),
                message=message if not ready and not stalled else "",
            ),
        ),
        (
            "Stalled",
            verdict(holds=stalled, reason=reason if stalled else "NotStalled", message=message if stalled else ""),
        ),
        (
            "Installed",
            Condition(Truth.TRUE, "Installed", "", status.installed_since)
            if status.installed_since
            else Condition(Truth.FALSE, "NotInstalled", "", status.started),
        ),
        ("ConfigurationApplied", _weakest(status.stages[Stage.CONFIGURED], status.stages[Stage.APPLIED])),
        ("Scaled", status.stages[Stage.SCALED]),
    ]


def _external(kind: str, condition: Condition, generation: int) -> JsonObject:
    return {
        "type": kind,
        "status": condition.truth.value,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": timestamp(condition.since),
        "observedGeneration": generation,
    }


def _first_open(status: PackageStatus) -> Stage | None:
    return next((stage for stage in Stage if status.stages[stage].truth is not Truth.TRUE), None)


def _weakest(first: Condition, second: Condition) -> Condition:
    return second if first.truth is Truth.TRUE else first


def _with(status: PackageStatus, stage: Stage, condition: Condition) -> PackageStatus:
    return replace(status, stages={**status.stages, stage: condition})


def _moved(before: Condition, truth: Truth, reason: str, message: str, now: datetime) -> Condition:
    return Condition(truth, reason, message, before.since if before.truth is truth else now)
