"""The status of a PackageRepository: the time of its last scan, its packages, and whether it can be used. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_str
from wharfinger.formats.listing import counted, listed
from wharfinger.kube.resource import ObjectKey
from wharfinger.kube.times import format_time, transition_time
from wharfinger.runtime.resources.resources import APPLICATION
from wharfinger.runtime.status.reasons import Reason, advice
from wharfinger.runtime.versions.package_index import PackageIndex

MAX_PACKAGES: Final = 200
"""The limit on the number of packages that the status lists."""
MAX_MESSAGE: Final = 1_000
MOST_NAMED: Final = 5
SCANNED: Final = "Scanned"
IN_USE: Final = "InUse"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The condition `Ready` of a repository."""

    ready: Literal["True", "False"]
    reason: str
    message: str


def scan_verdict(indexes: Sequence[PackageIndex], problems: Mapping[str, str]) -> Verdict:
    """Return the condition of a repository that was scanned; ``problems`` are the problems by the name of the package."""
    if problems:
        name, message = sorted(problems.items())[0]
        more = f" (and {counted(len(problems) - 1, 'more package')})" if len(problems) > 1 else ""
        return Verdict("False", Reason.ARTIFACT_NOT_FOUND, f"{name}: {message}{more}")
    count = sum(len(each.versions) for each in indexes)
    if not indexes:
        return Verdict(
            "True", SCANNED, "the repository can be reached; no Application or Module follows versions of its packages"
        )
    return Verdict("True", SCANNED, f"{counted(count, 'version')} of {counted(len(indexes), 'package')}")


def failure_verdict(reason: Reason, message: str) -> Verdict:
    """Return the condition of a repository that cannot be used."""
    tip = advice(reason)
    return Verdict("False", reason, f"{message}; {tip}" if tip else message)


def in_use_verdict(users: Sequence[ObjectKey]) -> Verdict:
    """Return the condition of a repository whose deletion waits until no resource uses it."""
    names = listed((user_text(key) for key in users), MOST_NAMED)
    return Verdict(
        "False",
        IN_USE,
        f"its deletion waits for {names}; delete these resources, or make them use another repository",
    )


def ready_problem(obj: JsonObject | None) -> str:
    """Return why a repository cannot be used, according to its status; "" if it can be used, or if that is not known."""
    conditions = find(obj, "status", "conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if (find_str(each, "type"), find_str(each, "status")) == ("Ready", "False"):
            return find_str(each, "message")
    return ""


def user_text(key: ObjectKey) -> str:
    """Return the kind and the name of a resource: a text such as ``Application prod/shop`` or ``Module ingress``."""
    return f"Application {key.namespace}/{key.name}" if key.resource == APPLICATION else f"Module {key.name}"


def status_object(
    written: JsonObject,
    generation: int,
    verdict: Verdict,
    now: datetime,
    *,
    scanned: datetime | None = None,
    changed: datetime | None = None,
    indexes: Sequence[PackageIndex] | None = None,
    problems: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return the new status, based on the ``written`` status.

    ``scanned`` is the time of a new scan, and ``changed`` the time of new results; None keeps the written time. ``indexes``
    are the indexes of all followed packages; None keeps the written packages.
    """
    body: JsonObject = {
        "observedGeneration": generation,
        "conditions": [_condition(written, generation, verdict, now)],
    }
    for name, moment in (("lastScanTime", scanned), ("lastChangeTime", changed)):
        before = find(written, name)
        if moment is not None:
            body[name] = format_time(moment)
        elif before is not None:
            body[name] = before
    if indexes is not None:
        packages: list[JsonValue] = [_package(each, problems or {}) for each in indexes[:MAX_PACKAGES]]
        body["packagesCount"] = len(indexes)
        body["packages"] = packages
    else:
        body |= {name: value for name in ("packagesCount", "packages") if (value := find(written, name)) is not None}
    return body


def _package(index: PackageIndex, problems: Mapping[str, str]) -> JsonObject:
    shown: JsonObject = {"name": index.package, "versions": len(index.versions)}
    if index.versions:
        shown["newest"] = index.versions[0]
    if problem := problems.get(index.package):
        shown["problem"] = problem[:MAX_MESSAGE]
    return shown


def _condition(written: JsonObject, generation: int, verdict: Verdict, now: datetime) -> JsonObject:
    before = find_list(written, "conditions")
    return {
        "type": "Ready",
        "status": verdict.ready,
        "reason": str(verdict.reason),
        "message": verdict.message[:MAX_MESSAGE],
        "lastTransitionTime": transition_time(before, "Ready", verdict.ready, format_time(now)),
        "observedGeneration": generation,
    }
